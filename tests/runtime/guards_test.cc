// Debug mode: writes outside a block are found and damage no other block. Released memory is overwritten. Figures are
// the program's.
#include "runtime/memory/guards.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

// A device whose bytes can be written and read.
class Bytes : public FakeDeviceMemory {
 public:
  using FakeDeviceMemory::FakeDeviceMemory;
  MemoryStatus Fill(DeviceAddress address, uint64_t bytes, uint8_t value) override {
    if (!Accessible(address, bytes)) return MemoryStatus::kFailed;
    for (uint64_t i = 0; i < bytes; ++i) bytes_[address + i] = value;
    ++fills_;
    return MemoryStatus::kOk;
  }
  MemoryStatus Read(DeviceAddress address, uint64_t bytes, void* to) override {
    if (!Accessible(address, bytes)) return MemoryStatus::kFailed;
    for (uint64_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(to)[i] = At(address + i);
    return MemoryStatus::kOk;
  }
  uint8_t At(DeviceAddress address) {
    auto it = bytes_.find(address);
    return it != bytes_.end() ? it->second : 0;
  }
  void Write(DeviceAddress address, uint8_t value) { bytes_[address] = value; }
  int fills() const { return fills_; }

 private:
  std::map<DeviceAddress, uint8_t> bytes_;
  int fills_ = 0;
};

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}
void Say(const char* line) { Lines().push_back(line); }

class GuardsTest : public testing::Test {
 protected:
  GuardsTest() { Lines().clear(); }
  EngineOptions Options(uint64_t gap, bool poison) {
    EngineOptions options;
    options.guard = {gap, poison};
    options.log = Say;
    return options;
  }
  Bytes memory_;
};

TEST_F(GuardsTest, EveryByteOfTheGapsIsWatched) {
  Engine engine(&memory_, Options(512, false));
  for (int64_t at : {-512, -511, -1, 1000, 1001, 1023, 1024, 1535}) {
    Lines().clear();
    DeviceAddress block = 0;
    ASSERT_EQ(engine.Allocate(1000, 0, &block), EngineStatus::kOk);
    EXPECT_EQ(block % 512, 0u);
    memory_.Write(block + static_cast<uint64_t>(at), 0x11);
    ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
    ASSERT_EQ(Lines().size(), 1u) << at;
    const std::string where = at < 0 ? "byte " + std::to_string(-at) + " before its start"
                                     : "byte " + std::to_string(at - 1000) + " after its end";
    EXPECT_THAT(Lines()[0], testing::HasSubstr(where));
    EXPECT_THAT(Lines()[0], testing::HasSubstr("of 1000 bytes"));
    EXPECT_THAT(Lines()[0], testing::HasSubstr("0x11 there"));
  }
}

TEST_F(GuardsTest, WritesInsideAreNobodysBusiness) {
  Engine engine(&memory_, Options(512, true));
  DeviceAddress block = 0;
  ASSERT_EQ(engine.Allocate(1000, 0, &block), EngineStatus::kOk);
  for (uint64_t i : {0, 1, 500, 999}) memory_.Write(block + i, 0x11);
  ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  EXPECT_THAT(Lines(), testing::IsEmpty());
}

TEST_F(GuardsTest, TheByteNearestToTheBlockIsSaid) {
  Engine engine(&memory_, Options(4096, false));
  DeviceAddress block = 0;
  ASSERT_EQ(engine.Allocate(512, 0, &block), EngineStatus::kOk);
  memory_.Write(block - 4000, 1);
  memory_.Write(block - 7, 2);
  memory_.Write(block + 600, 3);
  memory_.Write(block + 4000, 4);
  ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  ASSERT_EQ(Lines().size(), 2u);
  EXPECT_THAT(Lines()[0], testing::HasSubstr("byte 7 before its start was written, 0x02"));
  EXPECT_THAT(Lines()[1], testing::HasSubstr("byte 88 after its end was written, 0x03"));
}

TEST_F(GuardsTest, ReleasedMemoryIsPoisonedWhole) {
  Engine engine(&memory_, Options(0, true));
  DeviceAddress block = 0;
  ASSERT_EQ(engine.Allocate(1300, 0, &block), EngineStatus::kOk);
  ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  for (uint64_t i = 0; i < 1300; ++i) ASSERT_EQ(memory_.At(block + i), Guards::kPoisonByte) << i;
  EXPECT_EQ(memory_.At(block + 1300), 0);
}

// Nothing is touched while a stream captures, and the blocks of that time are not accused.
TEST_F(GuardsTest, NothingIsWrittenWhileAStreamCaptures) {
  Engine engine(&memory_, Options(512, true));
  DeviceAddress before = 0, during = 0;
  ASSERT_EQ(engine.Allocate(1000, 0, &before), EngineStatus::kOk);
  const int fills = memory_.fills();
  memory_.SetCapturing(true);
  ASSERT_EQ(engine.Allocate(1000, 0, &during), EngineStatus::kOk);
  memory_.Write(before + 1001, 1);
  ASSERT_EQ(engine.Release(before, 0), EngineStatus::kOk);
  EXPECT_EQ(memory_.fills(), fills);
  memory_.SetCapturing(false);
  ASSERT_EQ(engine.Release(during, 0), EngineStatus::kOk);
  EXPECT_THAT(Lines(), testing::IsEmpty());
}

TEST_F(GuardsTest, OnlyTheStartOfABlockIsReleasedAndFoundIsTheBlock) {
  Engine engine(&memory_, Options(512, true));
  DeviceAddress block = 0, base = 0;
  uint64_t bytes = 0;
  ASSERT_EQ(engine.Allocate(1000, 0, &block), EngineStatus::kOk);
  EXPECT_TRUE(engine.Owns(block));
  EXPECT_EQ(engine.Release(block - 512, 0), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Release(block + 512, 0), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Release(1, 0), EngineStatus::kNotOurs);
  ASSERT_TRUE(engine.FindBlock(block + 1023, &base, &bytes));
  EXPECT_EQ(base, block);
  EXPECT_EQ(bytes, 1024u);
  EXPECT_FALSE(engine.FindBlock(block - 1, &base, &bytes));
  EXPECT_FALSE(engine.FindBlock(block + 1024, &base, &bytes));
  ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  EXPECT_EQ(engine.Release(block, 0), EngineStatus::kInvalidValue);
}

// The mode does not stand in the way of the plan; the plan has the gaps, live_peak has not.
TEST_F(GuardsTest, ServesByScriptAndNamesTheRequestOfTheIteration) {
  Engine engine(&memory_, Options(512, false));
  const uint64_t sizes[] = {1000, 3000, 5000};
  auto step = [&](int bad) {
    DeviceAddress blocks[3] = {};
    engine.Mark();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(engine.Allocate(sizes[i], 0, &blocks[i]), EngineStatus::kOk);
    if (bad >= 0) memory_.Write(blocks[bad] + sizes[bad], 1);
    for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
    engine.WaitPlan(-1);
  };
  for (int i = 0; i < 10; ++i) step(-1);
  EXPECT_THAT(Lines(), testing::IsEmpty());
  const uint64_t planned = engine.Stats().planned;
  step(1);
  EXPECT_EQ(engine.Stats().planned, planned + 3);
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], testing::HasSubstr("request 31 (1 of the iteration)"));
  EXPECT_EQ(engine.Stats().live_peak, 1024u + 3072 + 5120);
  EXPECT_EQ(engine.Stats().plan_height, 1024u + 3072 + 5120 + 3 * 1024);
}

// Weights are not released before the end. They are checked on request, and a bad write is reported once.
TEST_F(GuardsTest, LiveBlocksAreLookedAtOnDemand) {
  Engine engine(&memory_, Options(512, false));
  DeviceAddress weights = 0, bias = 0;
  ASSERT_EQ(engine.Allocate(5000, 0, &weights), EngineStatus::kOk);
  ASSERT_EQ(engine.Allocate(100, 0, &bias), EngineStatus::kOk);
  EXPECT_EQ(engine.CheckGuards(), 0u);
  memory_.Write(weights + 5003, 0x22);
  memory_.SetCapturing(true);
  EXPECT_EQ(engine.CheckGuards(), 0u) << "not while a stream captures";
  memory_.SetCapturing(false);
  EXPECT_EQ(engine.CheckGuards(), 1u);
  EXPECT_EQ(engine.CheckGuards(), 1u);
  ASSERT_EQ(engine.Release(weights, 0), EngineStatus::kOk);
  ASSERT_EQ(engine.Release(bias, 0), EngineStatus::kOk);
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], testing::HasSubstr("of 5000 bytes, request 0: byte 3 after its end was written, 0x22"));
  Engine off(&memory_, {});
  EXPECT_EQ(off.CheckGuards(), 0u);
}

TEST_F(GuardsTest, NoMoreLinesThanThere) {
  Engine engine(&memory_, Options(512, false));
  for (int i = 0; i < 3 * Guards::kMaxReports; ++i) {
    DeviceAddress block = 0;
    ASSERT_EQ(engine.Allocate(1000, 0, &block), EngineStatus::kOk);
    memory_.Write(block + 1000, 1);
    ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
  }
  EXPECT_EQ(Lines().size(), static_cast<size_t>(Guards::kMaxReports));
  EXPECT_THAT(Lines().back(), testing::HasSubstr("further ones are not reported"));
}

TEST_F(GuardsTest, ASizeThatTheGapsMakeTooLargeIsOutOfMemory) {
  Engine engine(&memory_, Options(uint64_t{1} << 20, false));
  DeviceAddress block = 0;
  EXPECT_EQ(engine.Allocate(uint64_t{1} << 40, 0, &block), EngineStatus::kOutOfMemory);
  EXPECT_EQ(engine.Allocate(0, 0, &block), EngineStatus::kInvalidValue);
}

// Concurrent threads: no false reports, and every block belongs to its owner.
TEST_F(GuardsTest, ThreadsAtOnce) {
  class Silent : public FakeDeviceMemory {  // whose gaps are always as they were filled
   public:
    MemoryStatus Fill(DeviceAddress, uint64_t, uint8_t) override { return MemoryStatus::kOk; }
    MemoryStatus Read(DeviceAddress, uint64_t bytes, void* to) override {
      std::fill_n(static_cast<uint8_t*>(to), bytes, Guards::kGuardByte);
      return MemoryStatus::kOk;
    }
  } memory;
  EngineOptions options = Options(512, true);
  Engine engine(&memory, options);
  std::atomic<int> faults{0};
  auto work = [&](uint64_t sizes) {
    for (int i = 0; i < 500; ++i) {
      DeviceAddress blocks[3] = {}, base = 0;
      uint64_t bytes = 0;
      for (DeviceAddress& block : blocks) faults += engine.Allocate(sizes, 0, &block) == EngineStatus::kOk ? 0 : 1;
      for (DeviceAddress block : blocks) faults += engine.FindBlock(block + 1, &base, &bytes) && base == block ? 0 : 1;
      faults += engine.CheckGuards() == 0 ? 0 : 1;
      for (DeviceAddress block : blocks) faults += engine.Release(block, 0) == EngineStatus::kOk ? 0 : 1;
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t k = 1; k <= 4; ++k) threads.emplace_back(work, 1000 * k);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_THAT(Lines(), testing::IsEmpty());
  EXPECT_EQ(memory.FirstFault(), "");
}

}  // namespace
}  // namespace hotpack
