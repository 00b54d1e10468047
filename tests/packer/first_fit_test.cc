#include "packer/first_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;

// Tries zero and every top of a block placed already, in ascending order.
Offset PlainLowestFree(const Instance& instance, const std::vector<Offset>& offsets, const std::vector<int32_t>& placed,
                       int32_t block) {
  const Block& given = instance.blocks[block];
  std::vector<Offset> tries{0};
  for (int32_t other : placed) {
    const Offset top = offsets[other] + instance.blocks[other].size;
    tries.push_back((top + given.alignment - 1) / given.alignment * given.alignment);
  }
  std::sort(tries.begin(), tries.end());
  for (Offset offset : tries) {
    const bool free = std::none_of(placed.begin(), placed.end(), [&](int32_t other) {
      return testing::ResidentTogether(given, instance.blocks[other]) &&
             offset < offsets[other] + instance.blocks[other].size && offsets[other] < offset + given.size;
    });
    if (free) return offset;
  }
  return -1;
}

std::vector<Offset> PlainFirstFit(const Instance& instance, const std::vector<int32_t>& order) {
  std::vector<Offset> offsets(instance.blocks.size());
  std::vector<int32_t> placed;
  for (int32_t block : order) {
    if (instance.blocks[block].pinned == kNotPinned) continue;
    offsets[block] = instance.blocks[block].pinned;
    placed.push_back(block);
  }
  for (int32_t block : order) {
    if (instance.blocks[block].pinned != kNotPinned) continue;
    offsets[block] = PlainLowestFree(instance, offsets, placed, block);
    placed.push_back(block);
  }
  return offsets;
}

TEST(FirstFitPropertyTest, PutsEachBlockAtItsLowestFreeOffset) {
  std::mt19937_64 random(testing::TestSeed());
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  for (int run = 0; run < 2000; ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    if (run % 200 == 0) shape.blocks = 400;  // several chunks
    if (run % 200 == 0) shape.pinned = 0;
    const Instance instance = testing::RandomInstance(shape, &random);
    const Timeline timeline = MakeTimeline(instance);
    FirstFit first_fit(timeline);
    std::vector<int32_t> order(instance.blocks.size());
    std::iota(order.begin(), order.end(), 0);
    for (int again = 0; again < 2; ++again) {
      std::shuffle(order.begin(), order.end(), random);
      Placement placement;
      ASSERT_TRUE(
          first_fit.Place(order, std::numeric_limits<Bytes>::max(), &never, &placement.offsets, &placement.height));
      ASSERT_EQ(placement.offsets, PlainFirstFit(instance, order)) << "run " << run;
      ASSERT_THAT(Validate(instance, placement), IsEmpty()) << "run " << run;
    }
  }
}

TEST(FirstFitTest, GivesUpAboveTheHighestHeightAllowed) {
  Instance instance;
  instance.blocks.resize(2);
  for (Block& block : instance.blocks) {
    block.size = 3;
    block.residency = {{0, 1}};
  }
  const Timeline timeline = MakeTimeline(instance);
  FirstFit first_fit(timeline);
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  const std::vector<int32_t> order{0, 1};
  std::vector<Offset> offsets;
  Bytes height;
  EXPECT_FALSE(first_fit.Place(order, 5, &never, &offsets, &height));
  EXPECT_TRUE(first_fit.Place(order, 6, &never, &offsets, &height));
  EXPECT_EQ(height, 6);
}

}  // namespace
}  // namespace hotpack
