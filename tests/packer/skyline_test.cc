#include "packer/skyline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "packer/load_tree.h"
#include "packer/validator.h"
#include "random_instance.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;

// A dive gives up early where it sees that the height allowed cannot be kept. That must never cost a placement which
// keeps it: with exactly its own height allowed a dive ends as without a limit, with one byte less it gives up.
TEST(SkylinePropertyTest, GivesUpExactlyWhenTheHeightWouldBeTooLarge) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr Bytes kAnyHeight = std::numeric_limits<Bytes>::max();
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  for (int run = 0; run < 3000; ++run) {
    testing::InstanceShape shape = testing::RandomShape(&random);
    ++shape.blocks;
    const Instance instance = testing::RandomInstance(shape, &random);
    const Timeline timeline = MakeTimeline(instance);
    std::vector<int32_t> ranks(instance.blocks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    Skyline skyline(timeline);
    Placement unlimited;
    ASSERT_TRUE(skyline.Dive(ranks, kAnyHeight, &never, &unlimited.offsets, &unlimited.height));
    ASSERT_THAT(Validate(instance, unlimited), IsEmpty()) << "run " << run;
    Placement limited;
    ASSERT_TRUE(skyline.Dive(ranks, unlimited.height, &never, &limited.offsets, &limited.height)) << "run " << run;
    ASSERT_EQ(limited.offsets, unlimited.offsets) << "run " << run;
    ASSERT_FALSE(skyline.Dive(ranks, unlimited.height - 1, &never, &limited.offsets, &limited.height)) << "run " << run;
  }
}

TEST(LoadTreePropertyTest, AgreesWithAnArray) {
  std::mt19937_64 random(testing::TestSeed() + 3);
  for (int run = 0; run < 200; ++run) {
    std::vector<Bytes> values(1 + random() % 40);
    for (Bytes& value : values) value = static_cast<Bytes>(random() % 50);
    LoadTree tree(static_cast<int32_t>(values.size()));
    tree.Reset(values);
    for (int step = 0; step < 100; ++step) {
      const auto begin = static_cast<int32_t>(random() % values.size());
      const auto end = begin + 1 + static_cast<int32_t>(random() % (values.size() - begin));
      if (step % 2 == 0) {
        const Bytes change = static_cast<Bytes>(random() % 41) - 20;
        for (int32_t i = begin; i < end; ++i) values[i] += change;
        tree.Add(begin, end, change);
      } else {
        const Bytes limit = static_cast<Bytes>(random() % 60);
        const bool above = *std::max_element(values.begin() + begin, values.begin() + end) > limit;
        ASSERT_EQ(tree.AnyAbove(limit, begin, end), above) << "run " << run << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace hotpack
