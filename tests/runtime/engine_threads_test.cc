// Several threads at once on an engine. To be run under ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

// The owner of each address, for all threads.
class LiveMap {
 public:
  void Add(DeviceAddress address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto next = live_.lower_bound(address);
    bool apart = (next == live_.end() || next->first >= address + bytes) &&
                 (next == live_.begin() || std::prev(next)->first + std::prev(next)->second <= address);
    overlaps_ += !apart;
    live_[address] = bytes;
  }
  void Remove(DeviceAddress address) {
    std::lock_guard lock(mutex_);
    live_.erase(address);
  }
  int overlaps() const { return overlaps_; }

 private:
  std::mutex mutex_;
  std::map<DeviceAddress, uint64_t> live_;
  int overlaps_ = 0;
};

class Stress {
 public:
  Stress(uint64_t device_bytes, uint64_t seed, const EngineOptions& options = {})
      : seed_(seed), device_(device_bytes, 64 << 10), engine_(&device_, options) {}
  ~Stress() {
    EXPECT_EQ(map_.overlaps(), 0);
    EXPECT_EQ(wrong_, 0);
    EXPECT_EQ(device_.FirstFault(), "");
  }

  DeviceAddress Ask(uint64_t bytes) {
    DeviceAddress address = 0;
    EngineStatus status = engine_.Allocate(bytes, 0, &address);
    if (status == EngineStatus::kOutOfMemory) return 0;
    wrong_ += status != EngineStatus::kOk || !device_.Accessible(address, bytes);
    map_.Add(address, bytes);
    return address;
  }
  void Give(DeviceAddress address) {
    if (address == 0) return;
    map_.Remove(address);
    wrong_ += engine_.Release(address, 0) != EngineStatus::kOk;
  }

  // Requests of any size, released in any order.
  void Random(int thread, int requests) {
    std::mt19937_64 random(seed_ + static_cast<uint64_t>(thread));
    std::vector<DeviceAddress> live;
    for (int i = 0; i < requests; ++i) {
      live.push_back(Ask(512 + random() % (random() % 8 == 0 ? 1 << 20 : 50000)));
      while (live.size() > 20) {
        std::swap(live[random() % live.size()], live.back());
        Give(live.back());
        live.pop_back();
      }
      if (i % 64 == thread) engine_.Stats();
      if (i % 512 == 100) engine_.Interrupt();
      if (i % 512 == 120) engine_.Resume();
      DeviceAddress base = 0;
      uint64_t bytes = 0;
      if (i % 16 == 3 && live.back() != 0) wrong_ += !engine_.FindBlock(live.back(), &base, &bytes);
    }
    for (DeviceAddress address : live) Give(address);
  }
  // An iteration, with one block carried from each to the next.
  void Iterate(int iterations, int requests, int scale = 1) {
    DeviceAddress carried = 0;
    for (int i = 0; i < iterations; ++i) {
      std::vector<DeviceAddress> live;
      for (int k = 0; k < requests; ++k) {
        live.push_back(Ask(static_cast<uint64_t>(scale * (1000 + k * 7919 % 200000))));
        if (k % 3 == 2) {
          Give(live[live.size() - 2]);
          live.erase(live.end() - 2);
        }
        if (k == requests / 2) Give(std::exchange(carried, 0));
      }
      carried = live.back();
      live.pop_back();
      for (DeviceAddress address : live) Give(address);
    }
    Give(carried);
  }

  Engine& engine() { return engine_; }
  FakeDeviceMemory& device() { return device_; }

 private:
  uint64_t seed_;
  FakeDeviceMemory device_;
  Engine engine_;
  LiveMap map_;
  std::atomic<int> wrong_{0};
};

int Scale() {  // HOTPACK_TEST_SCALE: so many times as long
  const char* text = std::getenv("HOTPACK_TEST_SCALE");
  return text != nullptr ? std::max(1, std::atoi(text)) : 1;
}

void RunThreads(Stress* stress) {
  std::vector<std::thread> threads;
  threads.emplace_back([stress] { stress->Iterate(150 * Scale(), 60); });
  for (int t = 0; t < 7; ++t) threads.emplace_back([stress, t] { stress->Random(t, 1000 * Scale()); });
  for (std::thread& thread : threads) thread.join();
}

TEST(EngineThreads, AnIterationAndSevenRandomThreads) {
  Stress stress(uint64_t{1} << 30, TestSeed());
  RunThreads(&stress);
}

// So little memory that pages are moved and scripts given up all the time.
TEST(EngineThreads, WithHardlyEnoughMemory) {
  uint64_t seed = TestSeed();
  for (uint64_t mib : {6, 12, 20}) {
    Stress stress(mib << 20, seed);
    RunThreads(&stress);
  }
}

TEST(EngineThreads, WhileTheDeviceFails) {
  uint64_t seed = TestSeed();
  for (uint64_t k : {3, 11, 29}) {
    Stress stress(uint64_t{24} << 20, seed);
    DeviceAddress first = stress.Ask(512);
    stress.device().FailEvery(k);
    RunThreads(&stress);
    stress.Give(first);
  }
}

// A planned iteration, in which random threads come and go: planned again after it.
TEST(EngineThreads, AnIterationIsPlannedAgainAfterwards) {
  Stress stress(uint64_t{1} << 30, TestSeed());
  stress.Iterate(10, 60);
  stress.engine().WaitPlan(-1);
  RunThreads(&stress);
  for (int i = 0; i < 30; ++i) {
    stress.Iterate(4, 60);
    stress.engine().WaitPlan(-1);
  }
  hotpack_stats before = stress.engine().Stats();
  stress.Iterate(4, 60);
  hotpack_stats after = stress.engine().Stats();
  EXPECT_GE((after.planned - before.planned) * 100, (after.requests - before.requests) * 90);
}

// The first request of many threads at once opens the arena once.
TEST(EngineThreads, AllAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Stress stress(uint64_t{64} << 20, 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) stress.Give(stress.Ask(100000));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// Marks and planning from other threads.
TEST(EngineThreads, Marks) {
  Stress stress(uint64_t{256} << 20, TestSeed());
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      stress.engine().WaitPlan(1);
      stress.engine().Stats();
    }
  });
  for (int i = 0; i < 100; ++i) {
    stress.engine().Mark();
    stress.Iterate(1, 60);
    if (i % 10 == 5) stress.engine().WaitPlan(-1);
  }
  stop = true;
  other.join();
  EXPECT_GT(stress.engine().Stats().planned, 0u);
}

// Places of an envelope, while other threads request, and take pages from under free places.
TEST(EngineThreads, IterationsThatDiffer) {
  EngineOptions options;
  options.envelopes = true;
  options.plan_time_limit_ns = 3'000'000;
  Stress stress(uint64_t{512} << 20, TestSeed(), options);
  std::mt19937_64 random(TestSeed());
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  others.emplace_back([&] {
    while (!stop) {
      stress.engine().Trim(uint64_t{1} << 20);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  others.emplace_back([&] {
    for (int thread = 1; !stop; ++thread) {
      stress.Random(thread, 40);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  for (int i = 0; i < 40; ++i) {
    if (i == 25) {
      stop = true;  // from now on alone
      for (std::thread& other : others) other.join();
    }
    stress.Iterate(1, 60, 2 + static_cast<int>(random() % 5));
    stress.engine().Mark();
    stress.engine().WaitPlan(-1);
  }
  EXPECT_GT(stress.engine().Stats().planned, 0u);
}

}  // namespace
}  // namespace hotpack
