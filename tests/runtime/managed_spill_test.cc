// Managed memory for what the device has no room for, until a plan is in force.
#include "runtime/managed_spill.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/engine.h"
#include "tests/runtime/fake_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class Managed : public FakeDeviceMemory {
 public:
  using FakeDeviceMemory::FakeDeviceMemory;
  MemoryStatus AllocateManaged(uint64_t bytes, DeviceAddress* address) override {
    std::lock_guard lock(mutex_);
    if (refuse_) return MemoryStatus::kOutOfMemory;
    *address = next_;
    next_ += bytes + (uint64_t{4} << 20);
    segments_[*address] = bytes;
    return MemoryStatus::kOk;
  }
  MemoryStatus FreeManaged(DeviceAddress address) override {
    std::lock_guard lock(mutex_);
    faults_ += segments_.erase(address) == 1 ? 0 : 1;
    return MemoryStatus::kOk;
  }
  bool InManaged(DeviceAddress address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto it = segments_.upper_bound(address);
    if (it == segments_.begin()) return false;
    --it;
    return address + bytes <= it->first + it->second;
  }
  uint64_t held_managed() {
    std::lock_guard lock(mutex_);
    uint64_t sum = 0;
    for (const auto& [address, bytes] : segments_) sum += bytes;
    return sum;
  }
  void Refuse() { refuse_ = true; }
  int faults() const { return faults_; }

 private:
  std::mutex mutex_;
  std::map<DeviceAddress, uint64_t> segments_;
  DeviceAddress next_ = uint64_t{1} << 45;
  int faults_ = 0;
  bool refuse_ = false;
};

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}
void Say(const char* line) { Lines().push_back(line); }

EngineOptions Overcommit(uint64_t limit) {
  EngineOptions options;
  options.managed_limit = limit;
  options.say = Say;
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
  Managed memory(26 * kMiB);
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
  const std::vector<uint64_t> sizes = {10 * kMiB, 12 * kMiB, 14 * kMiB};
  Managed memory(32 * kMiB);
  Engine engine(&memory, Overcommit(256 * kMiB));
  DeviceAddress weights = 0;
  ASSERT_EQ(engine.Allocate(2 * kMiB, 0, &weights), EngineStatus::kOk);
  for (int i = 0; i < 60; ++i) Step(&engine, sizes);
  EXPECT_EQ(engine.Stats().planned, 0u);
  ASSERT_EQ(Lines().size(), 2u) << Lines().back();
  EXPECT_THAT(Lines()[1], testing::HasSubstr("the plan does not fit: 36 MiB for it and 2 MiB for blocks that stay, but the "
                                             "device gave 32 MiB (of 32): 6 MiB too few"));
  EXPECT_EQ(memory.FirstFault(), "");
}

// Blocks that stay and landed in managed memory are served, found and released there; they do not count against the device.
TEST(Overcommit, WhatStaysStaysWhereItIs) {
  const std::vector<uint64_t> sizes = {10 * kMiB, 12 * kMiB};
  Managed memory(26 * kMiB);
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
  Managed memory(32 * kMiB);
  DeviceAddress address = 0;
  {
    Engine engine(&memory, {});
    EXPECT_EQ(engine.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
    EXPECT_EQ(memory.held_managed(), 0u);
  }
  Managed other(32 * kMiB);
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
  Managed memory(32 * kMiB);
  memory.Refuse();
  Engine engine(&memory, Overcommit(64 * kMiB));
  DeviceAddress address = 0;
  EXPECT_EQ(engine.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
  EXPECT_EQ(engine.Allocate(30 * kMiB, 0, &address), EngineStatus::kOk);
  FakeDeviceMemory without(32 * kMiB);  // a device that has no such thing
  Engine plain(&without, Overcommit(64 * kMiB));
  EXPECT_EQ(plain.Allocate(33 * kMiB, 0, &address), EngineStatus::kOutOfMemory);
}

// While a stream captures the device cannot be waited for: an empty segment waits too.
TEST(Overcommit, ASegmentIsGivenBackOnlyWhenTheDeviceHasBeenWaitedFor) {
  const std::vector<uint64_t> sizes = {10 * kMiB, 12 * kMiB};
  Managed memory(26 * kMiB);
  Engine engine(&memory, Overcommit(256 * kMiB));
  DeviceAddress other = 0;
  ASSERT_EQ(engine.Allocate(10 * kMiB, 0, &other), EngineStatus::kOk);
  Step(&engine, sizes);
  ASSERT_EQ(engine.Release(other, 0), EngineStatus::kOk);
  for (int i = 0; i < 100 && engine.Stats().steady_iteration < 0; ++i) {
    Step(&engine, sizes);
    memory.SetCapturing(engine.Stats().requests > 30);
  }
  memory.SetCapturing(true);
  const uint64_t held = memory.held_managed();
  Step(&engine, sizes);
  EXPECT_EQ(memory.held_managed(), held);
  memory.SetCapturing(false);
  for (int i = 0; i < 60; ++i) Step(&engine, sizes);
  EXPECT_EQ(memory.held_managed(), 0u);
}

}  // namespace
}  // namespace hotpack
