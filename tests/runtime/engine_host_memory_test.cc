// The host has no memory: if any operator new inside the engine fails, its functions return. No block overlaps another,
// every block can be released, and nothing is thrown.
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"
#include "tests/support/sanitized.h"

namespace {

// operator new calls until one fails, on all threads while the engine is at work; 0: none fails.
std::atomic<int64_t> until_failure{0};
std::atomic<bool> armed{false};
std::atomic<bool> failed{false};
thread_local int outside = 0;  // in the device, which is not the engine's

void* AllocateOrFail(std::size_t size) {
  if (armed && outside == 0 && until_failure > 0 && until_failure.fetch_sub(1) == 1) {
    failed = true;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return AllocateOrFail(size); }
void* operator new[](std::size_t size) { return AllocateOrFail(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return AllocateOrFail(size);
  } catch (...) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  std::free(AllocateOrFail(1));
  const auto align = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace hotpack {
namespace {

class Outside {
 public:
  Outside() { ++outside; }
  ~Outside() { --outside; }
};

// The engine's part of the test's thread.
template <typename Call>
auto Inside(Call call) {
  const int before = std::exchange(outside, 0);
  auto result = call();
  outside = before;
  return result;
}

// Its own bookkeeping never fails.
class Device : public FakeDeviceMemory {
 public:
  Device() : FakeDeviceMemory(uint64_t{1} << 30, 64 << 10) {}
  MemoryStatus Reserve(uint64_t bytes, DeviceAddress* base) override {
    Outside scope;
    return FakeDeviceMemory::Reserve(bytes, base);
  }
  MemoryStatus CreateChunk(uint64_t bytes, ChunkHandle* chunk) override {
    Outside scope;
    return FakeDeviceMemory::CreateChunk(bytes, chunk);
  }
  MemoryStatus ReleaseChunk(ChunkHandle chunk) override {
    Outside scope;
    return FakeDeviceMemory::ReleaseChunk(chunk);
  }
  MemoryStatus Map(DeviceAddress address, uint64_t bytes, ChunkHandle chunk) override {
    Outside scope;
    return FakeDeviceMemory::Map(address, bytes, chunk);
  }
  MemoryStatus Enable(DeviceAddress address, uint64_t bytes) override {
    Outside scope;
    return FakeDeviceMemory::Enable(address, bytes);
  }
  MemoryStatus Unmap(DeviceAddress address, uint64_t bytes) override {
    Outside scope;
    return FakeDeviceMemory::Unmap(address, bytes);
  }
};

class Job {
 public:
  ~Job() {
    armed = false;
    engine_.reset();
    EXPECT_EQ(device_.FirstFault(), "");
  }

  // A training step that becomes hot, is planned, deviates, grows, and keeps a block for the next.
  void Play() {
    Outside scope;
    armed = true;
    for (int step = 0; step < 10; ++step) {
      std::vector<DeviceAddress> live;
      for (int k = 0; k < 24; ++k) {
        const bool odd = step == 7 && k % 5 == 0;
        live.push_back(Ask(1000 + static_cast<uint64_t>(k * 7919 % 200000) * (odd ? 3 : 1)));
        if (k % 3 == 2) Give(&live, live.size() - 2);
        if (k == 12) Give(&carried_, 0);
      }
      carried_.push_back(live.back());
      live.pop_back();
      while (!live.empty()) Give(&live, 0);
      Inside([&] {
        if (step == 3) engine_->Mark();
        return engine_->WaitPlan(-1);
      });
      Inside([&] { return engine_->Stats(); });
    }
    while (!carried_.empty()) Give(&carried_, 0);
    Inside([&] { return engine_->Finish(), true; });
    armed = false;
  }
  int refused() const { return refused_; }
  uint64_t planned() { return engine_->Stats().planned; }
  uint64_t no_plan_reason() { return engine_->Stats().no_plan_reason; }

 private:
  DeviceAddress Ask(uint64_t bytes) {
    DeviceAddress address = 0;
    const EngineStatus status = Inside([&] { return engine_->Allocate(bytes, 0, &address); });
    if (status != EngineStatus::kOk) {
      EXPECT_TRUE(failed);
      ++refused_;
      return 0;
    }
    EXPECT_TRUE(device_.Accessible(address, bytes));
    auto next = live_.lower_bound(address);
    EXPECT_TRUE(next == live_.end() || next->first >= address + bytes);
    EXPECT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second <= address);
    live_[address] = bytes;
    return address;
  }
  void Give(std::vector<DeviceAddress>* blocks, size_t index) {
    if (index >= blocks->size()) return;
    const DeviceAddress address = (*blocks)[index];
    blocks->erase(blocks->begin() + static_cast<std::ptrdiff_t>(index));
    if (address == 0) return;
    live_.erase(address);
    DeviceAddress base = 0;
    uint64_t bytes = 0;
    const bool found = Inside([&] { return engine_->FindBlock(address, &base, &bytes); });
    EXPECT_TRUE(found || failed);
    EXPECT_EQ(Inside([&] { return engine_->Release(address, 0); }), EngineStatus::kOk);
  }

  Device device_;
  std::unique_ptr<Engine> engine_ = std::make_unique<Engine>(&device_, EngineOptions());
  std::map<DeviceAddress, uint64_t> live_;
  std::vector<DeviceAddress> carried_;
  int refused_ = 0;
};

TEST(EngineHostMemory, EveryAllocationFailsOnce) {
#ifdef HOTPACK_SANITIZED
  constexpr int kPart = 20;  // of the later ones a part: each takes long there
#else
  constexpr int kPart = 1 << 30;
#endif
  int n = 1, runs = 0, with_refusals = 0, without_plan = 0;
  for (;; n += 1 + n / kPart, ++runs) {
    failed = false;
    until_failure = n;
    Job job;
    job.Play();
    if (!failed) {
      EXPECT_GT(job.planned(), 0u) << "the job is not one that is planned";
      break;
    }
    with_refusals += job.refused() > 0 ? 1 : 0;
    without_plan += job.no_plan_reason() == HOTPACK_NO_PLAN_GIVEN_UP ? 1 : 0;
    ASSERT_LT(n, 100000);
  }
  until_failure = 0;
  EXPECT_GT(n, 200) << "too few allocations to mean anything";
  EXPECT_GT(with_refusals, 10) << "the engine itself was never hit";
  EXPECT_GT(without_plan, 10) << "the figures do not say that it gave up";
  printf("%d allocations, of which %d failed in turn; after %d of them the engine gave up\n", n - 1, runs,
         with_refusals);
}

}  // namespace
}  // namespace hotpack
