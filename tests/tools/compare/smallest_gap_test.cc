// Offline placements: by hand, against a slow rewrite of the rule, and by the packer's validator.
#include "tools/compare/smallest_gap.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "packer/validator.h"
#include "tests/packer/random_instance.h"
#include "tools/compare/offline.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;

Block MakeBlock(Bytes size, Clock begin, Clock end) {
  Block block;
  block.size = size;
  block.residency.push_back({begin, end});
  return block;
}

Instance InstanceOf(std::vector<Block> blocks) {
  Instance instance;
  instance.blocks = std::move(blocks);
  return instance;
}

std::vector<int32_t> InOrder(const Instance& instance) {
  std::vector<int32_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

//  14 ▲                  ┌7┐
//     │  ┌───────── 4 ────┴─┴──┐
//  11 ├──┼───── 3 ┬──┌─ 5 ─┐───┤      when 3 and 1 are gone there are two gaps: 10 .. 11 and 4 .. 8
//  10 ├──┴────────┘  └─────┘   │
//     │  ┌───────── 2 ─────────┤
//   8 ├──┼───── 1 ┐    ┌8┐
//     │  │        │  ┌─┴─┴ 6 ─┐
//   4 ├──┼────────┴──┴────────┴┐
//     │  │          0          │
//   0 └──┴─────────────────────┴──► clock
TEST(SmallestGapTest, TheSmallestGapThatHoldsTheBlock) {
  const Instance instance = InstanceOf({MakeBlock(4, 0, 10),   // 0: at 0
                                        MakeBlock(4, 0, 4),    // 1: at 4
                                        MakeBlock(2, 0, 10),   // 2: at 8
                                        MakeBlock(1, 0, 4),    // 3: at 10
                                        MakeBlock(3, 0, 10),   // 4: at 11, above 3
                                        MakeBlock(1, 5, 8),    // 5: the gap 10 .. 11, not 4 .. 8
                                        MakeBlock(1, 5, 9),    // 6: 4 .. 8, the last gap there is
                                        MakeBlock(4, 6, 7),    // 7: 5 .. 8 is too little: on top, at 14
                                        MakeBlock(3, 6, 7)});  // 8: exactly 5 .. 8
  const Placement placement = PlaceInSmallestGaps(instance, InOrder(instance));
  EXPECT_THAT(placement.offsets, ElementsAre(0, 4, 8, 10, 11, 10, 4, 14, 5));
  EXPECT_EQ(placement.height, 18);
  EXPECT_EQ(Validate(instance, placement), "");
}

TEST(SmallestGapTest, ResidenciesThatOnlyTouchAreNoObstacle) {
  const Instance instance = InstanceOf({MakeBlock(4, 0, 5), MakeBlock(4, 5, 9), MakeBlock(4, 4, 5)});
  EXPECT_THAT(PlaceInSmallestGaps(instance, InOrder(instance)).offsets, ElementsAre(0, 0, 4));
}

TEST(SmallestGapTest, ACarriedBlockIsInTheWayTwice) {
  Instance instance = InstanceOf({MakeBlock(4, 0, 2), MakeBlock(4, 3, 5), MakeBlock(4, 0, 9), MakeBlock(4, 8, 9)});
  instance.blocks[0].residency.push_back({8, 9});
  EXPECT_THAT(PlaceInSmallestGaps(instance, InOrder(instance)).offsets, ElementsAre(0, 0, 4, 8));
}

// The same rule without an index: it visits all placed blocks.
Placement Slow(const Instance& instance, const std::vector<int32_t>& order) {
  Placement placement;
  placement.offsets.assign(instance.blocks.size(), -1);
  for (int32_t index : order) {
    const Block& block = instance.blocks[static_cast<size_t>(index)];
    std::vector<std::pair<Offset, Offset>> taken = {{INT64_MAX, INT64_MAX}};
    for (size_t other = 0; other < instance.blocks.size(); ++other) {
      if (placement.offsets[other] < 0) continue;
      for (const Residency& a : block.residency) {
        for (const Residency& b : instance.blocks[other].residency) {
          if (a.begin < b.end && b.begin < a.end) {
            taken.emplace_back(placement.offsets[other], placement.offsets[other] + instance.blocks[other].size);
          }
        }
      }
    }
    std::sort(taken.begin(), taken.end());
    Offset top = 0, best = -1, gap = INT64_MAX;
    for (const auto& [begin, end] : taken) {
      const Offset from = RoundUp(top, block.alignment);
      const bool last = begin == INT64_MAX;
      if (last ? best < 0 : from + block.size <= begin && begin - top < gap) {
        best = from;
        gap = begin - top;
      }
      top = std::max(top, end);
    }
    placement.offsets[static_cast<size_t>(index)] = best;
    placement.height = std::max(placement.height, best + block.size);
  }
  return placement;
}

TEST(SmallestGapTest, AgreesWithTheRuleWrittenSlowly) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < testing::Runs(300); ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    shape.pinned = 0;
    const Instance instance = testing::RandomInstance(shape, &random);
    std::vector<int32_t> order = InOrder(instance);
    std::shuffle(order.begin(), order.end(), random);
    const Placement placement = PlaceInSmallestGaps(instance, order);
    const Placement slow = Slow(instance, order);
    ASSERT_EQ(placement.offsets, slow.offsets);
    ASSERT_EQ(placement.height, slow.height);
    ASSERT_EQ(Validate(instance, placement), "");
  }
}

TEST(OfflineTest, PlacementsAreValidAndNotBelowTheBound) {
  std::mt19937_64 random(testing::TestSeed());
  for (int run = 0; run < testing::Runs(200); ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    shape.pinned = 0;
    const Instance instance = testing::RandomInstance(shape, &random);
    for (auto* pack : {PackAsTflite, PackAsXla}) {
      const Placement placement = pack(instance);
      ASSERT_EQ(Validate(instance, placement), "");
      ASSERT_GE(placement.height, LowerBound(instance));
    }
  }
}

//  TFLite: the block that is always resident first, then by size, of equal ones the earlier.
TEST(OfflineTest, TflitesOrder) {
  const Instance instance =
      InstanceOf({MakeBlock(5, 4, 9), MakeBlock(5, 0, 5), MakeBlock(1, 0, 9), MakeBlock(7, 6, 8)});
  EXPECT_THAT(PackAsTflite(instance).offsets, ElementsAre(8, 1, 0, 1));
}

TEST(OfflineTest, XlaTakesTheLowerOfTwoOrders) {
  std::mt19937_64 random(testing::TestSeed());
  int by_lifetime_wins = 0, by_size_wins = 0;
  for (int run = 0; run < 200; ++run) {
    testing::InstanceShape shape;
    shape.blocks = 30;
    const Instance instance = testing::RandomInstance(shape, &random);
    std::vector<int32_t> by_size = InOrder(instance), by_lifetime = by_size;
    auto life = [&](int32_t i) {
      const Residency& r = instance.blocks[static_cast<size_t>(i)].residency[0];
      return r.end - r.begin;
    };
    auto size = [&](int32_t i) { return instance.blocks[static_cast<size_t>(i)].size; };
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int32_t a, int32_t b) { return size(a) != size(b) ? size(a) > size(b) : life(a) > life(b); });
    std::stable_sort(by_lifetime.begin(), by_lifetime.end(),
                     [&](int32_t a, int32_t b) { return life(a) != life(b) ? life(a) > life(b) : size(a) > size(b); });
    const Bytes sized = PlaceInSmallestGaps(instance, by_size).height;
    const Bytes lived = PlaceInSmallestGaps(instance, by_lifetime).height;
    by_size_wins += sized < lived;
    by_lifetime_wins += lived < sized;
    ASSERT_EQ(PackAsXla(instance).height, std::min(sized, lived));
  }
  EXPECT_GT(by_lifetime_wins, 0);
  EXPECT_GT(by_size_wins, 0);
}

}  // namespace
}  // namespace hotpack
