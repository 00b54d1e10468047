// The live blocks where an envelope has places, against a map.
#include "runtime/engine/zone_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "runtime/base/node_pool.h"

namespace hotpack {
namespace {

constexpr DeviceAddress kBase = uint64_t{3} << 32;

class ZoneBlocksTest : public testing::Test {
 protected:
  ZoneBlock* Claim(DeviceAddress begin, uint64_t bytes) {
    blocks_.Prepare();
    return blocks_.Claim(blocks_.Below(begin), begin, begin + bytes);
  }

  NodePool nodes_;
  ZoneBlocks blocks_{&nodes_};
};

TEST_F(ZoneBlocksTest, WithoutAddressesThereAreNoBlocks) {
  EXPECT_EQ(blocks_.Find(kBase), nullptr);
  EXPECT_TRUE(blocks_.IsEnd(blocks_.Below(kBase)));
  EXPECT_TRUE(blocks_.IsEnd(blocks_.lowest()));
  EXPECT_FALSE(blocks_.prepared());
}

// Sizes of areas at which a level of bits begins or ends, and addresses outside.
TEST_F(ZoneBlocksTest, BlocksAtBothEndsAreFound) {
  for (const uint64_t units : {1, 63, 64, 65, 4095, 4096, 4097, 64 * 4096, 64 * 4096 + 1}) {
    blocks_.Open({kBase, units * kBlockUnit});
    const DeviceAddress last = kBase + (units - 1) * kBlockUnit, end = last + kBlockUnit;
    ZoneBlock* const highest = Claim(last, kBlockUnit);
    ASSERT_NE(highest, nullptr);
    EXPECT_EQ(blocks_.Below(end), highest) << units;
    EXPECT_EQ(blocks_.Below(UINT64_MAX), highest);
    EXPECT_EQ(blocks_.Below(last + 1), highest) << "an address within it";
    EXPECT_TRUE(blocks_.IsEnd(blocks_.Below(last)));
    EXPECT_EQ(Claim(last, kBlockUnit), nullptr);
    if (units > 1) {
      ZoneBlock* const lowest = Claim(kBase, kBlockUnit);
      EXPECT_EQ(blocks_.Below(last), lowest);
      EXPECT_EQ(blocks_.lowest(), lowest);
      EXPECT_EQ(lowest->above, highest);
    }
    EXPECT_TRUE(blocks_.IsEnd(blocks_.Below(kBase)));
    EXPECT_TRUE(blocks_.IsEnd(blocks_.Below(0)));
  }
}

TEST_F(ZoneBlocksTest, AGuessCountsIfTheNextBlockDoesNotLieBetween) {
  blocks_.Open({kBase, 1 << 20});
  ZoneBlock* const low = Claim(kBase, 512);
  ZoneBlock* const high = Claim(kBase + 2048, 512);
  EXPECT_TRUE(ZoneBlocks::IsBelow(low, kBase + 512));
  EXPECT_TRUE(ZoneBlocks::IsBelow(low, kBase + 2048));
  EXPECT_FALSE(ZoneBlocks::IsBelow(low, kBase + 2560));
  EXPECT_FALSE(ZoneBlocks::IsBelow(low, kBase));
  EXPECT_TRUE(ZoneBlocks::IsBelow(high, kBase + 4096));
  blocks_.Erase(low);
  EXPECT_FALSE(ZoneBlocks::IsBelow(low, kBase + 2048)) << "it was released";
}

TEST_F(ZoneBlocksTest, DrawnClaimsAgreeWithAMap) {
  constexpr uint64_t kUnits = 100'000;
  std::mt19937_64 random(1);
  for (const uint64_t most_units : {1, 30, 3000}) {
    blocks_.Open({kBase, kUnits * kBlockUnit});
    std::map<DeviceAddress, DeviceAddress> model;  // begin → end
    for (int i = 0; i < 30'000; ++i) {
      const DeviceAddress begin = kBase + random() % kUnits * kBlockUnit;
      const auto above = model.lower_bound(begin);
      ZoneBlock* const below = blocks_.Below(begin);
      ASSERT_EQ(blocks_.IsEnd(below), above == model.begin());
      if (above != model.begin()) {
        ASSERT_EQ(below->begin, std::prev(above)->first);
        ASSERT_EQ(below->end, std::prev(above)->second);
      }
      if (!model.empty() && random() % 2 == 0) {
        const auto victim = above != model.end() ? above : model.begin();
        ASSERT_NE(blocks_.Find(victim->first), nullptr);
        blocks_.Erase(blocks_.Find(victim->first));
        ASSERT_EQ(blocks_.Find(victim->first), nullptr);
        model.erase(victim);
      } else {
        const DeviceAddress end = begin + (1 + random() % most_units) * kBlockUnit;
        const bool free = (above == model.end() || above->first >= end) &&
                          (above == model.begin() || std::prev(above)->second <= begin);
        ASSERT_EQ(Claim(begin, end - begin) != nullptr, free);
        if (free) model[begin] = end;
      }
      ASSERT_EQ(blocks_.size(), model.size());
    }
    auto next = model.begin();
    for (const ZoneBlock* block = blocks_.lowest(); !blocks_.IsEnd(block); block = block->above, ++next) {
      ASSERT_EQ(block->begin, next->first);
    }
    EXPECT_EQ(next, model.end());
  }
}

}  // namespace
}  // namespace hotpack
