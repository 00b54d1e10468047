// Managed memory for requests that exceed the device, until a plan is in force.
#include "runtime/memory/managed_spill.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/managed_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}
void Say(const char* line) { Lines().push_back(line); }

EngineOptions Overcommit(uint64_t limit) {
  EngineOptions options;
  options.managed_limit = limit;
  options.log = Say;
  Lines().clear();
  return options;
}

// A step that asks for `sizes`, then gives all back.
void Step(Engine* engine, const std::vector<uint64_t>& sizes, std::vector<DeviceAddress>* at = nullptr) {
  std::vector<DeviceAddress> blocks(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_EQ(engine->Allocate(sizes[i], 0, &blocks[i]), EngineStatus::kOk) << i;
  }
  if (at != nullptr) *at = blocks;
  for (DeviceAddress block : blocks) ASSERT_EQ(engine->Release(block, 0), EngineStatus::kOk);
  engine->WaitPlan(-1);
}

TEST(ManagedSpill, BlocksDoNotOverlapAndStayInTheirSegments) {
  ManagedSpill spill(uint64_t{1} << 30);
  std::mt19937_64 random(TestSeed());
  std::map<DeviceAddress, uint64_t> live, segments;
  DeviceAddress next = uint64_t{1} << 45;
  uint64_t used = 0;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() > 50 || (random() % 2 != 0 && !live.empty())) {
      auto it = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      ASSERT_TRUE(spill.Owns(it->first) && spill.Owns(it->first + it->second - 1));
      spill.Free(it->first, it->second);
      used -= it->second;
      live.erase(it);
      continue;
    }
    const uint64_t bytes = 512 * (1 + random() % (random() % 8 == 0 ? 300000 : 3000));
    DeviceAddress address = 0;
    if (!spill.TryAllocate(bytes, &address)) {
      const uint64_t segment = spill.BeginGrowth(bytes);
      if (segment == 0) {
        DeviceAddress base = 0;
        uint64_t gone = 0;
        while (spill.TakeEmpty(&base, &gone)) {
          ASSERT_EQ(segments[base], gone);
          segments.erase(base);
          ASSERT_FALSE(spill.Owns(base));
        }
        continue;
      }
      ASSERT_TRUE(spill.FinishGrowth(segment, next));
      segments[next] = segment;
      next += segment;  // segments may touch: blocks must not lie across
      ASSERT_TRUE(spill.TryAllocate(bytes, &address));
    }
    auto segment = std::prev(segments.upper_bound(address));
    ASSERT_LE(address + bytes, segment->first + segment->second);
    auto after = live.lower_bound(address);
    ASSERT_TRUE(after == live.end() || address + bytes <= after->first);
    ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= address);
    live[address] = bytes;
    used += bytes;
    ASSERT_EQ(spill.used(), used);
    uint64_t total = 0;
    for (const auto& [base, size] : segments) total += size;
    ASSERT_LE(total, spill.limit());
  }
}

TEST(Overcommit, ObservingMayNeedMoreThanThePlan) {
  // Best fit breaks chunks into pieces: 24 MiB of blocks need more than 26 MiB of chunks, the plan does not.
  const std::vector<uint64_t> sizes = {5 * kMiB + 512, 7 * kMiB, 3 * kMiB + 1024, 9 * kMiB};
  ManagedDeviceMemory memory(26 * kMiB);
  std::vector<DeviceAddress> at;
  Engine engine(&memory, Overcommit(256 * kMiB));
  DeviceAddress other = 0;  // holds memory through the first step only
  ASSERT_EQ(engine.Allocate(6 * kMiB, 0, &other), EngineStatus::kOk);
  Step(&engine, sizes, &at);
  EXPECT_GT(engine.Stats().managed_peak, 0u);
  EXPECT_GT(memory.held_managed(), 0u);
  ASSERT_EQ(engine.Release(other, 0), EngineStatus::kOk);
  for (int i = 0; i < 60; ++i) Step(&engine, sizes, &at);
  for (DeviceAddress address : at) EXPECT_FALSE(memory.InManaged(address, 1)) << "the plan is in force";
  EXPECT_GE(engine.Stats().steady_iteration, 0);
  EXPECT_EQ(memory.held_managed(), 0u) << "given back";
  ASSERT_EQ(Lines().size(), 2u);
  EXPECT_THAT(Lines()[0], testing::HasSubstr("the device is full"));
  EXPECT_THAT(Lines()[1], testing::HasSubstr("the plan is in force"));
  EXPECT_EQ(memory.faults(), 0);
  EXPECT_EQ(memory.FirstFault(), "");
}

TEST(Overcommit, APlanThatDoesNotFitSaysByHowMuch) {
  const std::vector<uint64_t> sizes = {8 * kMiB, 10 * kMiB, 12 * kMiB};  // alone they would fit
  ManagedDeviceMemory memory(32 * kMiB);
  Engine engine(&memory, Overcommit(256 * kMiB));
  DeviceAddress weights = 0;
  ASSERT_EQ(engine.Allocate(4 * kMiB, 0, &weights), EngineStatus::kOk);
  for (int i = 0; i < 60; ++i) Step(&engine, sizes);
  EXPECT_EQ(engine.Stats().planned, 0u);
  EXPECT_EQ(engine.Stats().no_plan_reason, HOTPACK_NO_PLAN_TOO_LARGE);
  ASSERT_EQ(Lines().size(), 2u) << Lines().back();
  EXPECT_THAT(Lines()[1],
              testing::HasSubstr("the plan does not fit: 30 MiB for it and 4 MiB for blocks that stay, but the "
                                 "device gave 32 MiB (of 32): 2 MiB too few"));
  EXPECT_EQ(memory.FirstFault(), "");
}

// Blocks that stay and landed in managed memory are served, found and released there; they do not count against the
// device.
TEST(Overcommit, WhatStaysStaysWhereItIs) {
  const std::vector<uint64_t> sizes = {10 * kMiB, 12 * kMiB};
  ManagedDeviceMemory memory(26 * kMiB);
  Engine engine(&memory, Overcommit(256 * kMiB));
  std::vector<DeviceAddress> blocks(2);
  ASSERT_EQ(engine.Allocate(sizes[0], 0, &blocks[0]), EngineStatus::kOk);
  ASSERT_EQ(engine.Allocate(sizes[1], 0, &blocks[1]), EngineStatus::kOk);
  DeviceAddress weights = 0, base = 0;
  uint64_t bytes = 0;
  ASSERT_EQ(engine.Allocate(20 * kMiB, 0, &weights), EngineStatus::kOk);
  ASSERT_TRUE(memory.InManaged(weights, 20 * kMiB));
  for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  for (int i = 0; i < 60; ++i) Step(&engine, sizes);
  EXPECT_GE(engine.Stats().steady_iteration, 0);
  EXPECT_GT(memory.held_managed(), 0u);
  EXPECT_TRUE(engine.Owns(weights + kMiB));
  ASSERT_TRUE(engine.FindBlock(weights + kMiB, &base, &bytes));
  EXPECT_EQ(base, weights);
  EXPECT_EQ(bytes, 20 * kMiB);
  EXPECT_EQ(engine.Release(weights + kMiB, 0), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Release(weights, 0), EngineStatus::kOk);
  Step(&engine, sizes);
  EXPECT_EQ(memory.held_managed(), 0u);
  EXPECT_FALSE(engine.Owns(weights));
}

TEST(Overcommit, NeverMoreThanTheLimitAndNothingWithoutTheOption) {
  ManagedDeviceMemory memory(32 * kMiB);
  DeviceAddress address = 0;
  {
    Engine engine(&memory, {});
    EXPECT_EQ(engine.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
    EXPECT_EQ(memory.held_managed(), 0u);
  }
  ManagedDeviceMemory other(32 * kMiB);
  Engine engine(&other, Overcommit(64 * kMiB));
  std::vector<DeviceAddress> blocks;
  while (engine.Allocate(4 * kMiB, 0, &address) == EngineStatus::kOk) blocks.push_back(address);
  EXPECT_EQ(blocks.size(), 24u) << "eight in device memory, sixteen in managed memory";
  EXPECT_LE(other.held_managed(), 64 * kMiB);
  for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  ASSERT_EQ(engine.Allocate(60 * kMiB, 0, &address), EngineStatus::kOk) << "segments without blocks make room";
  EXPECT_LE(other.held_managed(), 64 * kMiB);
}

TEST(Overcommit, NoManagedMemoryToBeHadIsOutOfMemory) {
  ManagedDeviceMemory memory(32 * kMiB);
  memory.Refuse();
  Engine engine(&memory, Overcommit(64 * kMiB));
  DeviceAddress address = 0;
  EXPECT_EQ(engine.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
  EXPECT_EQ(engine.Allocate(30 * kMiB, 0, &address), EngineStatus::kOk);
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], testing::HasSubstr("the driver refused it"));
  FakeDeviceMemory without(32 * kMiB);  // a device that has no such thing
  Engine plain(&without, Overcommit(64 * kMiB));
  EXPECT_EQ(plain.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
}

// While a stream captures the engine cannot wait for the device, and work may still use a segment's former blocks.
TEST(Overcommit, ASegmentIsGivenBackOnlyWhenTheDeviceHasBeenWaitedFor) {
  ManagedDeviceMemory memory(32 * kMiB);
  Engine engine(&memory, Overcommit(128 * kMiB));
  DeviceAddress blocks[2] = {}, large = 0;
  for (DeviceAddress& block : blocks) ASSERT_EQ(engine.Allocate(60 * kMiB, 0, &block), EngineStatus::kOk);
  for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  memory.SetCapturing(true);
  EXPECT_EQ(engine.Allocate(100 * kMiB, 0, &large), EngineStatus::kOutOfMemory);
  EXPECT_EQ(memory.held_managed(), 128 * kMiB);
  EXPECT_EQ(engine.Allocate(60 * kMiB, 0, &large), EngineStatus::kOk) << "the segments are as they were";
  EXPECT_EQ(engine.Release(large, 0), EngineStatus::kOk);
  memory.SetCapturing(false);
  EXPECT_EQ(engine.Allocate(100 * kMiB, 0, &large), EngineStatus::kOk);
  EXPECT_LE(memory.held_managed(), 128 * kMiB);
}

// Offsets in the arena have 32 bits of 512 bytes: 2^41 further on, a managed block would pass for a planned one.
TEST(Overcommit, AManagedBlockIsNotTakenForAPlannedOne) {
  const std::vector<uint64_t> sizes = {10 * kMiB, 12 * kMiB};
  DeviceAddress planned = 0;
  for (int round = 0; round < 2; ++round) {
    ManagedDeviceMemory memory(26 * kMiB);
    if (round == 1) memory.SetNext(planned + (uint64_t{1} << 41));
    Engine engine(&memory, Overcommit(256 * kMiB));
    DeviceAddress temporary = 0, weights = 0, base = 0;
    uint64_t bytes = 0;
    ASSERT_EQ(engine.Allocate(20 * kMiB, 0, &temporary), EngineStatus::kOk);
    ASSERT_EQ(engine.Allocate(20 * kMiB, 0, &weights), EngineStatus::kOk);
    ASSERT_EQ(engine.Release(temporary, 0), EngineStatus::kOk);
    std::vector<DeviceAddress> at;
    for (int i = 0; i < 60; ++i) Step(&engine, sizes, &at);
    ASSERT_GE(engine.Stats().steady_iteration, 0);
    if (round == 0) {
      planned = at[0];
      continue;
    }
    ASSERT_EQ(planned, at[0]);
    ASSERT_EQ(weights, planned + (uint64_t{1} << 41));
    DeviceAddress block = 0;
    ASSERT_EQ(engine.Allocate(sizes[0], 0, &block), EngineStatus::kOk);
    ASSERT_EQ(block, planned);
    ASSERT_TRUE(engine.FindBlock(weights, &base, &bytes));
    EXPECT_EQ(bytes, 20 * kMiB);
    EXPECT_EQ(engine.Release(weights, 0), EngineStatus::kOk);
    ASSERT_TRUE(engine.FindBlock(block, &base, &bytes)) << "still live";
    EXPECT_EQ(base, block);
    EXPECT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  }
}

// Runs `other` in a thread when `memory` gets its first call named `call`, and waits for it there, 100 ms at most.
class MeanwhileAt {
 public:
  MeanwhileAt(ManagedDeviceMemory* memory, const std::string& call, std::function<void()> other) : memory_(memory) {
    memory->SetHook([this, call, other = std::move(other)](const char* name) {
      if (name != call || begun_.exchange(true)) return;
      thread_ = std::thread([this, other] {
        other();
        ended_ = true;
      });
      for (int i = 0; i < 100 && !ended_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  void Join() {
    ASSERT_TRUE(begun_);
    thread_.join();
  }
  ~MeanwhileAt() { memory_->SetHook({}); }  // the engine outlives this, and calls on its way out

 private:
  ManagedDeviceMemory* const memory_;
  std::atomic<bool> begun_{false}, ended_{false};
  std::thread thread_;
};

// Another thread allocates the last segment of the limit: it has a place for both.
TEST(Overcommit, ASegmentThatAnotherThreadAddsIsWaitedFor) {
  ManagedDeviceMemory memory(32 * kMiB);
  Engine engine(&memory, Overcommit(64 * kMiB));
  DeviceAddress full = 0, first = 0, second = 0;
  ASSERT_EQ(engine.Allocate(30 * kMiB, 0, &full), EngineStatus::kOk);
  EngineStatus status = EngineStatus::kOutOfMemory;
  MeanwhileAt other(&memory, "AllocateManaged", [&] { status = engine.Allocate(20 * kMiB, 0, &second); });
  EXPECT_EQ(engine.Allocate(20 * kMiB, 0, &first), EngineStatus::kOk);
  other.Join();
  EXPECT_EQ(status, EngineStatus::kOk);
  EXPECT_TRUE(memory.InManaged(first, 20 * kMiB));
  EXPECT_TRUE(memory.InManaged(second, 20 * kMiB));
  EXPECT_EQ(memory.held_managed(), 64 * kMiB);
}

// A segment that another thread gives back is held until the driver has taken it.
TEST(Overcommit, ASegmentBeingGivenBackCountsUntilItIsGone) {
  ManagedDeviceMemory memory(32 * kMiB);
  Engine engine(&memory, Overcommit(192 * kMiB));
  DeviceAddress blocks[2] = {}, first = 0, second = 0;
  for (DeviceAddress& block : blocks) ASSERT_EQ(engine.Allocate(40 * kMiB, 0, &block), EngineStatus::kOk);
  ASSERT_EQ(engine.Release(blocks[0], 0), EngineStatus::kOk);
  EngineStatus status = EngineStatus::kOk;
  MeanwhileAt other(&memory, "Synchronize", [&] { status = engine.Allocate(70 * kMiB, 0, &second); });
  EXPECT_EQ(engine.Allocate(100 * kMiB, 0, &first), EngineStatus::kOk) << "in the place of the empty segment";
  other.Join();
  EXPECT_EQ(status, EngineStatus::kOutOfMemory);
  EXPECT_LE(memory.most_managed(), 192 * kMiB);
}

// Four threads on a device that is always full: their blocks are in both kinds of memory, and no two share memory.
TEST(Overcommit, ThreadsShareManagedMemory) {
  ManagedDeviceMemory memory(32 * kMiB);
  Engine engine(&memory, Overcommit(256 * kMiB));
  std::mutex mutex;
  std::map<DeviceAddress, uint64_t> live;
  std::atomic<int> faults{0};
  auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<DeviceAddress, uint64_t>> mine;
    for (int i = 0; i < 2000; ++i) {
      if (mine.size() > 20) {
        const size_t victim = random() % mine.size();
        const auto [address, bytes] = mine[victim];
        mine[victim] = mine.back();
        mine.pop_back();
        {
          std::lock_guard lock(mutex);
          live.erase(address);
        }
        if (!engine.Owns(address) || engine.Release(address, 0) != EngineStatus::kOk) ++faults;
        continue;
      }
      const uint64_t bytes = 512 * (1 + random() % 4000);
      DeviceAddress address = 0;
      if (engine.Allocate(bytes, 0, &address) != EngineStatus::kOk) {
        ++faults;
        continue;
      }
      mine.emplace_back(address, bytes);
      std::lock_guard lock(mutex);
      auto after = live.lower_bound(address);
      if (after != live.end() && after->first < address + bytes) ++faults;
      if (after != live.begin() && std::prev(after)->first + std::prev(after)->second > address) ++faults;
      live[address] = bytes;
    }
    for (const auto& [address, bytes] : mine) {
      {
        std::lock_guard lock(mutex);
        live.erase(address);
      }
      faults += engine.Release(address, 0) == EngineStatus::kOk ? 0 : 1;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_GT(engine.Stats().managed_peak, 0u);
  EXPECT_EQ(memory.FirstFault(), "");
}

}  // namespace
}  // namespace hotpack
