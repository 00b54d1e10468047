#include "packer/skyline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "packer/candidate_tree.h"
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

// One interval a block, or two at the ends of time: one arc each.
Instance RingInstance(std::mt19937_64* random) {
  constexpr Clock kEnd = 16;
  Instance instance;
  const auto blocks = static_cast<int64_t>(2 + (*random)() % 40);
  const bool ring = (*random)() % 2 == 0;
  const Bytes alignment = (*random)() % 4 == 0 ? 2 : 1;
  for (int64_t i = 0; i < blocks; ++i) {
    const auto begin = static_cast<Clock>((*random)() % kEnd);
    const Clock end = begin + 1 + static_cast<Clock>((*random)() % (ring ? 8 : kEnd - begin));
    Block block{.size = static_cast<Bytes>(1 + (*random)() % 9), .alignment = alignment, .residency = {{begin, end}}};
    if (end > kEnd) block.residency = {{0, end - kEnd}, {begin, kEnd}};
    instance.blocks.push_back(block);
  }
  return instance;
}

// What a search over a slot offers is exactly what a look at every block finds, on rings also across their end.
TEST(CandidateTreePropertyTest, OffersTheWaitingBlocksOverASlot) {
  std::mt19937_64 random(testing::TestSeed());
  int64_t offered = 0, wrapped = 0;
  for (int run = 0; run < 500; ++run) {
    const Timeline timeline = MakeTimeline(RingInstance(&random));
    std::vector<int32_t> ranks(timeline.blocks());
    std::iota(ranks.begin(), ranks.end(), 0);
    CandidateTree tree(timeline);
    tree.Reset(ranks);
    for (int32_t block = 0; block < timeline.blocks(); ++block) {
      if (random() % 3 == 0) tree.Remove(block);
    }
    for (int query = 0; query < 20; ++query) {
      const auto begin = static_cast<int32_t>(random() % timeline.slots);
      const auto length = static_cast<int32_t>(1 + random() % timeline.slots);
      const int32_t end = timeline.walled ? std::min(begin + length, timeline.slots) : begin + length;
      const int32_t slot = (begin + static_cast<int32_t>(random() % (end - begin))) % timeline.slots;
      std::vector<int32_t> found, expected;
      const bool accepted = tree.AnyOver(slot, begin, end, [&](int32_t block) {
        found.push_back(block);
        return false;
      });
      for (int32_t block = 0; block < timeline.blocks(); ++block) {
        const Arc& arc = timeline.arcs[timeline.arc_starts[block]];
        const int32_t later = arc.begin < begin ? timeline.slots : 0;  // the line continues at slot 0
        const bool within = begin <= arc.begin + later && arc.end + later <= end;
        const bool over = (arc.begin <= slot && slot < arc.end) || slot + timeline.slots < arc.end;
        if (within && over && tree.Holds(block)) expected.push_back(block);
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected) << "run " << run;
      ASSERT_FALSE(accepted);
      offered += static_cast<int64_t>(found.size());
      wrapped += end > timeline.slots && !found.empty() ? 1 : 0;
      if (found.empty()) continue;
      int left = static_cast<int>(1 + random() % found.size());  // it ends at the block that is accepted
      ASSERT_TRUE(tree.AnyOver(slot, begin, end, [&](int32_t) { return --left == 0; }));
      ASSERT_EQ(left, 0);
    }
  }
  EXPECT_GT(offered, 5000);
  EXPECT_GT(wrapped, 200);
}

// Foresight may pass a block over only where no placement of the allowed height would be left. So where a dive without
// it keeps the height, one with it is the same; and at the lower bound it has to mend a good part of the failures.
TEST(SkylinePropertyTest, ForesightPassesOverOnlyWhatIsHopeless) {
  std::mt19937_64 random(testing::TestSeed() + 5);
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  int failed = 0;
  int mended = 0;
  for (int run = 0; run < 5000; ++run) {
    const Instance instance = RingInstance(&random);
    const Timeline timeline = MakeTimeline(instance);
    std::vector<int32_t> ranks(instance.blocks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    Skyline skyline(timeline);
    Placement plain;
    ASSERT_TRUE(skyline.Dive(ranks, std::numeric_limits<Bytes>::max(), &never, &plain.offsets, &plain.height));
    Placement foreseen;
    ASSERT_TRUE(skyline.Dive(ranks, plain.height, &never, &foreseen.offsets, &foreseen.height, nullptr,
                             Skyline::Foresight::kValleys))
        << "run " << run;
    ASSERT_EQ(foreseen.offsets, plain.offsets) << "run " << run;
    const Bytes bound = *std::max_element(timeline.loads.begin(), timeline.loads.end());
    if (plain.height == bound) continue;
    ++failed;
    if (!skyline.Dive(ranks, plain.height - 1, &never, &foreseen.offsets, &foreseen.height, nullptr,
                      Skyline::Foresight::kValleys)) {
      continue;
    }
    ++mended;
    ASSERT_LT(foreseen.height, plain.height) << "run " << run;
    ASSERT_THAT(Validate(instance, foreseen), IsEmpty()) << "run " << run;
  }
  EXPECT_GT(mended, failed / 20) << failed;
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
        ASSERT_EQ(tree.At(begin), values[begin]) << "run " << run << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace hotpack
