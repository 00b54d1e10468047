#include "runtime/engine/dynamic_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/base/node_pool.h"

namespace hotpack {
namespace {

DynamicBlock Block(uint64_t bytes, uint64_t ordinal = 0, bool foreign = false) {
  DynamicBlock block;
  block.bytes = bytes;
  block.units = static_cast<uint32_t>(bytes / kBlockUnit);
  block.ordinal = ordinal;
  block.foreign = foreign;
  return block;
}

class DynamicBlocksTest : public testing::Test {
 protected:
  NodePool nodes_;
  DynamicBlocks blocks_{&nodes_};
};

TEST_F(DynamicBlocksTest, ABlockIsFoundByItsFirstAddressAndByAnyOther) {
  blocks_.Add(4096, Block(1024));
  ASSERT_NE(blocks_.Find(4096), nullptr);
  EXPECT_EQ(blocks_.Find(4096)->bytes, 1024u);
  EXPECT_EQ(blocks_.Find(4097), nullptr);
  DeviceAddress begin = 0;
  EXPECT_EQ(blocks_.FindContaining(4096 + 1024, &begin), nullptr);
  EXPECT_EQ(blocks_.FindContaining(4095, &begin), nullptr);
  EXPECT_EQ(begin, 0u);
  EXPECT_EQ(blocks_.FindContaining(4096 + 1023, &begin), blocks_.Find(4096));
  EXPECT_EQ(begin, 4096u);
  DynamicBlock removed;
  EXPECT_FALSE(blocks_.Remove(4608, &removed));
  EXPECT_TRUE(blocks_.Remove(4096, &removed));
  EXPECT_EQ(removed.units, 2u);
  EXPECT_FALSE(blocks_.Remove(4096, &removed));
}

TEST_F(DynamicBlocksTest, ARangeMeetsTheBlocksThatLieInItInPart) {
  for (DeviceAddress address : {0, 2048, 4096, 8192}) blocks_.Add(address, Block(1024));
  const auto in = [&](DeviceAddress begin, DeviceAddress end) {
    std::vector<DeviceAddress> met;
    blocks_.ForEachIn(begin, end, [&](DeviceAddress address, const DynamicBlock&) { met.push_back(address); });
    return met;
  };
  EXPECT_EQ(in(1024, 2048), std::vector<DeviceAddress>{});
  EXPECT_EQ(in(1023, 2049), (std::vector<DeviceAddress>{0, 2048}));
  EXPECT_EQ(in(2560, 4096), std::vector<DeviceAddress>{2048});
  EXPECT_EQ(in(0, 1 << 20).size(), 4u);
}

// The peak counts served requests only: a refused request leaves no trace.
TEST_F(DynamicBlocksTest, ARefusedRequestIsNoPeak) {
  blocks_.CountLive(10);
  blocks_.AddPending(90);
  EXPECT_EQ(blocks_.live_units(), 100u);
  blocks_.CountLive(1);  // another thread's request is served meanwhile
  blocks_.RemoveLive(1);
  blocks_.RemovePending(90);
  EXPECT_EQ(blocks_.live_units(), 10u);
  EXPECT_EQ(blocks_.live_peak_units(), 11u);
  blocks_.CountLive(5);
  blocks_.RemoveLive(15);
  EXPECT_EQ(blocks_.live_units(), 0u);
  EXPECT_EQ(blocks_.live_peak_units(), 15u);
}

TEST(FailedRequests, TheLastEightSizesAreKept) {
  FailedRequests failed;
  EXPECT_TRUE(failed.empty());
  EXPECT_FALSE(failed.Contains(7));
  for (uint32_t units = 1; units <= 9; ++units) {
    failed.Add(units);
    failed.Add(units);
  }
  EXPECT_FALSE(failed.empty());
  EXPECT_FALSE(failed.Contains(1));
  for (uint32_t units = 2; units <= 9; ++units) EXPECT_TRUE(failed.Contains(units)) << units;
  failed.Remove(5);
  EXPECT_FALSE(failed.Contains(5));
  EXPECT_TRUE(failed.Contains(9));
}

TEST_F(DynamicBlocksTest, ForeignBlocksThatLiveLongAreSeen) {
  blocks_.Add(0, Block(512, 10));
  EXPECT_FALSE(blocks_.AnyForeignLivesLongerThan(5, 100));
  blocks_.SetForeign(0, true);
  EXPECT_FALSE(blocks_.AnyForeignLivesLongerThan(90, 100));
  EXPECT_TRUE(blocks_.AnyForeignLivesLongerThan(89, 100));
  blocks_.SetForeign(0, false);
  blocks_.Add(512, Block(512, kUnmonitored, true));  // of unknown age
  EXPECT_TRUE(blocks_.AnyForeignLivesLongerThan(1000, 100));
}

TEST_F(DynamicBlocksTest, CountsTheBytesOfEachChunkOnce) {
  constexpr uint64_t kChunk = 1 << 16;
  const auto bytes = [&](uint64_t least) {
    return blocks_.ChunkBytes(kChunk, [&](DeviceAddress, const DynamicBlock& block) { return block.bytes >= least; });
  };
  EXPECT_EQ(bytes(0), 0u);
  blocks_.Add(10 * kChunk, Block(512));
  blocks_.Add(10 * kChunk + 1024, Block(512));
  blocks_.Add(11 * kChunk - 512, Block(512));
  EXPECT_EQ(bytes(0), kChunk);
  blocks_.Add(12 * kChunk - 512, Block(kChunk + 512));  // the end of 11, and 12
  EXPECT_EQ(bytes(0), 3 * kChunk);
  blocks_.Add(30 * kChunk, Block(2 * kChunk));
  EXPECT_EQ(bytes(0), 5 * kChunk);
  EXPECT_EQ(bytes(1024), 4 * kChunk);
}

TEST_F(DynamicBlocksTest, TraceIdsAreAboveAllOrdinals) {
  const uint64_t first = blocks_.NewTraceId();
  EXPECT_GE(first, uint64_t{1} << 63);
  EXPECT_NE(blocks_.NewTraceId(), first);
}

}  // namespace
}  // namespace hotpack
