// Placements of blocks of which only pairs are known.
#include "runtime/script/conflict_placement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/property/random.h"

namespace hotpack {
namespace {

Instance Blocks(const std::vector<Bytes>& sizes) {
  Instance instance;
  for (const Bytes size : sizes) {
    Block block;
    block.size = size;
    instance.blocks.push_back(block);
  }
  return instance;
}

bool Overlap(const Instance& instance, const Placement& placement, size_t a, size_t b) {
  return placement.offsets[a] < placement.offsets[b] + instance.blocks[b].size &&
         placement.offsets[b] < placement.offsets[a] + instance.blocks[a].size;
}

TEST(ConflictPlacement, OnlyWhatConflictsKeepsApart) {
  const Instance instance = Blocks({10, 20, 30});
  ConflictRows conflicts(3);
  conflicts.Set(0, 2);
  const Placement placement = PlaceByConflicts(instance, conflicts, {}).front();
  EXPECT_EQ(placement.height, 40);
  EXPECT_FALSE(Overlap(instance, placement, 0, 2));
  EXPECT_EQ(placement.offsets[1], 0);
}

TEST(ConflictPlacement, SmallBlocksLieTogether) {
  const Instance instance = Blocks({100, 4, 100, 4, 100, 4});
  ConflictRows conflicts(6);
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < i; ++j) conflicts.Set(i, j);
  }
  ConflictPlacementOptions options;
  options.small = 5;
  const Placement placement = PlaceByConflicts(instance, conflicts, options).front();
  EXPECT_EQ(placement.height, 312);
  for (const size_t small : {1, 3, 5}) EXPECT_LT(placement.offsets[small], 12);
}

TEST(ConflictPlacement, LargerKeysComeFirst) {
  const Instance instance = Blocks({10, 20, 10, 5});
  ConflictRows conflicts(4);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < i; ++j) conflicts.Set(i, j);
  }
  EXPECT_EQ(PlaceByConflicts(instance, conflicts, {}).front().offsets, (std::vector<Offset>{20, 0, 30, 40}));
  const std::vector<Bytes> keys = {7, 0, 7, 9};
  ConflictPlacementOptions options;
  options.keys = &keys;
  EXPECT_EQ(PlaceByConflicts(instance, conflicts, options).front().offsets, (std::vector<Offset>{5, 25, 15, 0}));
}

TEST(ConflictPlacement, WishesAreFulfilledAsFarAsTheyCostLittle) {
  const Instance instance = Blocks({50, 50, 100, 1, 1});
  ConflictRows conflicts(5);
  for (const size_t other : {0, 1, 3, 4}) conflicts.Set(2, other);
  std::vector<ConflictRows> wishes = {conflicts};
  wishes[0].Set(3, 4);
  wishes.push_back(wishes[0]);
  wishes[1].Set(0, 1);
  ConflictPlacementOptions options;
  options.wishes = &wishes;
  const Placement without = PlaceByConflicts(instance, conflicts, {}).front();
  EXPECT_EQ(without.height, 150);
  EXPECT_EQ(CountViolations(instance, without, wishes), 3u) << "one pair in both relations, one in the second";
  const std::vector<Placement> cheap = PlaceByConflicts(instance, conflicts, options);
  EXPECT_EQ(cheap.front().height, 150);
  EXPECT_FALSE(Overlap(instance, cheap.back(), 3, 4));
  EXPECT_TRUE(Overlap(instance, cheap.back(), 0, 1)) << "a third more";
  options.wish_cost = 1.5;
  const std::vector<Placement> dear = PlaceByConflicts(instance, conflicts, options);
  EXPECT_TRUE(std::any_of(dear.begin(), dear.end(), [&](const Placement& each) {
    return each.height == 200 && CountViolations(instance, each, wishes) == 0;
  }));
}

// Blocks with random lives, of which those that meet conflict.
TEST(ConflictPlacement, ImprovesTheOrder) {
  Bytes first = 0, improved = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    property::Random random(seed);
    std::vector<Bytes> sizes;
    std::vector<uint64_t> begins;
    for (int i = 0; i < 40; ++i) {
      sizes.push_back(1 + static_cast<Bytes>(random.Below(50)));
      begins.push_back(random.Below(100));
    }
    ConflictRows conflicts(40);
    for (size_t i = 0; i < 40; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (begins[i] < begins[j] + 20 && begins[j] < begins[i] + 20) conflicts.Set(i, j);
      }
    }
    ConflictPlacementOptions options;
    options.work = 0;
    first += PlaceByConflicts(Blocks(sizes), conflicts, options).front().height;
    options.work = 100'000;
    improved += PlaceByConflicts(Blocks(sizes), conflicts, options).front().height;
  }
  EXPECT_LT(improved, first - first / 50);
}

TEST(ConflictPlacement, CancelledItIsStillValid) {
  const Instance instance = Blocks({10, 20, 30});
  ConflictRows conflicts(3);
  conflicts.Set(0, 1);
  const std::atomic<bool> cancel{true};
  ConflictPlacementOptions options;
  options.cancel = &cancel;
  const Placement placement = PlaceByConflicts(instance, conflicts, options).front();
  EXPECT_FALSE(Overlap(instance, placement, 0, 1));
}

// Random conflicts, pins, alignments and wishes: each placement is valid.
TEST(ConflictPlacement, RandomInstances) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    property::Random random(seed);
    const size_t count = 1 + random.Below(30);
    Instance instance;
    const uint64_t walls = random.Below(3);
    for (size_t i = 0; i < count + walls; ++i) {
      Block block;
      block.size = 1 + static_cast<Bytes>(random.Below(100));
      if (i >= count) block.pinned = 200 * static_cast<Offset>(i - count);
      if (i < count && random.Below(4) == 0) block.alignment = Bytes{1} << random.Below(6);
      instance.blocks.push_back(block);
    }
    ConflictRows conflicts(count);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (random.Below(2) == 0) conflicts.Set(i, j);
      }
    }
    std::vector<ConflictRows> wishes = {conflicts};
    for (size_t i = 0; i < count; ++i) wishes[0].Set(i, random.Below(count));
    ConflictPlacementOptions options;
    options.work = random.Below(10'000);
    options.small = static_cast<Bytes>(random.Below(50));
    if (random.Below(2) == 0) options.wishes = &wishes;
    const std::vector<Placement> placements = PlaceByConflicts(instance, conflicts, options);
    for (const Placement& placement : placements) {
      for (size_t i = 0; i < count + walls; ++i) {
        const Block& block = instance.blocks[i];
        EXPECT_EQ(placement.offsets[i] % block.alignment, 0);
        EXPECT_LE(placement.offsets[i] + block.size, placement.height);
        if (block.pinned >= 0) {
          EXPECT_EQ(placement.offsets[i], block.pinned);
        }
        for (size_t j = 0; j < i && j < count; ++j) {
          if (i >= count || conflicts.At(i, j)) {
            EXPECT_FALSE(Overlap(instance, placement, i, j));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hotpack
