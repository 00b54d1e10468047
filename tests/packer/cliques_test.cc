#include "packer/cliques.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "packer/pairs.h"
#include "packer/random.h"
#include "random_instance.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Block Resident(absl::InlinedVector<Residency, 1> residency) { return {.size = 1, .residency = std::move(residency)}; }

StopCheck Never() { return {std::numeric_limits<int64_t>::max(), nullptr}; }

Cliques AllCliques(const Timeline& timeline) {
  StopCheck never = Never();
  return MakeCliques(timeline, &never);
}

std::vector<std::vector<int32_t>> CliquesOf(const Instance& instance) {
  const Cliques cliques = AllCliques(MakeTimeline(instance));
  std::vector<std::vector<int32_t>> sets;
  for (int32_t clique = 0; clique < cliques.cliques(); ++clique) {
    const auto members = cliques.MembersOf(clique);
    sets.emplace_back(members.begin(), members.end());
  }
  return sets;
}

//    ├ 0 ┼ 1 ┤     the slots' sets: {0}, {0, 2}, {1, 2}, {1}
//      ├ 2 ┤
TEST(CliquesTest, SetsThatAreInANeighboursAreLeftOut) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 4}}), Resident({{4, 8}}), Resident({{2, 6}})}}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 2)));
  EXPECT_THAT(CliquesOf({{Resident({{0, 8}}), Resident({{1, 7}}), Resident({{2, 6}})}}),
              ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(CliquesTest, BlocksThatOnlyTouchDoNotMeet) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 4}}), Resident({{4, 8}})}}), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(CliquesTest, TouchingIntervalsAreOne) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 3}, {3, 8}}), Resident({{1, 6}})}}), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(CliquesOf({{Resident({{0, 3}, {3, 8}}), Resident({{0, 3}}), Resident({{3, 8}})}}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2)));
}

TEST(CliquesTest, BlocksThatAreAlwaysResidentAreOneClique) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 8}}), Resident({{0, 8}})}}), ElementsAre(ElementsAre(0, 1)));
  // With one that goes round, so that the ring has no wall.
  EXPECT_THAT(CliquesOf({{Resident({{0, 8}}), Resident({{0, 3}, {5, 8}}), Resident({{0, 8}})}}),
              ElementsAre(ElementsAre(0, 1, 2)));
}

// The carried block's two intervals are one arc, and the blocks resident at both ends of time are one set.
TEST(CliquesTest, GoRoundTheRing) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 2}, {7, 9}}), Resident({{0, 1}}), Resident({{8, 9}}), Resident({{3, 6}})}}),
              UnorderedElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(3)));
  EXPECT_THAT(CliquesOf({{Resident({{0, 2}, {7, 9}}), Resident({{0, 4}, {8, 9}}), Resident({{1, 8}})}}),
              UnorderedElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 2)));
}

using PairSet = std::set<std::pair<int32_t, int32_t>>;

PairSet PairsOf(const Cliques& cliques) {
  PairSet pairs;
  for (int32_t clique = 0; clique < cliques.cliques(); ++clique) {
    for (int32_t a : cliques.MembersOf(clique)) {
      for (int32_t b : cliques.MembersOf(clique)) {
        if (a < b) pairs.insert({a, b});
      }
    }
  }
  return pairs;
}

PairSet PairsThatMeet(const Instance& instance) {
  PairSet pairs;
  for (size_t b = 0; b < instance.blocks.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (testing::ResidentTogether(instance.blocks[a], instance.blocks[b])) pairs.insert({a, b});
    }
  }
  return pairs;
}

bool Contains(const Cliques& cliques, int32_t larger, int32_t smaller) {
  const auto a = cliques.MembersOf(larger), b = cliques.MembersOf(smaller);
  return std::includes(a.begin(), a.end(), b.begin(), b.end());
}

// Both directions of the index say the same.
bool IndicesAgree(const Cliques& cliques, int32_t blocks) {
  size_t members = 0;
  for (int32_t block = 0; block < blocks; ++block) {
    const auto of_block = cliques.CliquesOf(block);
    if (of_block.empty() || !std::is_sorted(of_block.begin(), of_block.end())) return false;
    members += of_block.size();
    for (int32_t clique : of_block) {
      const auto found = cliques.MembersOf(clique);
      if (std::count(found.begin(), found.end(), block) != 1) return false;
    }
  }
  return members == cliques.members.size();
}

TEST(CliquesPropertyTest, HoldExactlyThePairsThatMeet) {
  Random random(testing::TestSeed() + 30);
  for (int run = 0; run < testing::Runs(5000); ++run) {
    const Instance instance = testing::SmallInstance(1 + run % 14, &random);
    const Timeline timeline = MakeTimeline(instance);
    const Cliques cliques = AllCliques(timeline);
    ASSERT_EQ(PairsOf(cliques), PairsThatMeet(instance)) << "run " << run;
    ASSERT_TRUE(IndicesAgree(cliques, timeline.blocks())) << "run " << run;
    ASSERT_EQ(CountMembers(timeline), static_cast<int64_t>(cliques.members.size())) << "run " << run;
    ASSERT_LE(cliques.cliques(), static_cast<int32_t>(timeline.arcs.size())) << "run " << run;
    if (!timeline.walled || timeline.arcs.size() > instance.blocks.size()) continue;
    // Of intervals, no maximal set holds another.
    for (int32_t clique = 0; clique + 1 < cliques.cliques(); ++clique) {
      ASSERT_FALSE(Contains(cliques, clique, clique + 1) || Contains(cliques, clique + 1, clique)) << "run " << run;
    }
  }
}

TEST(CliquesPropertyTest, PairsAreCountedOrOvercounted) {
  Random random(testing::TestSeed() + 31);
  int exact = 0;
  for (int run = 0; run < testing::Runs(2000); ++run) {
    const Instance instance = testing::SmallInstance(1 + run % 14, &random);
    const Timeline timeline = MakeTimeline(instance);
    const auto pairs = static_cast<int64_t>(PairsThatMeet(instance).size());
    std::set<int32_t> begins;
    for (const Arc& arc : timeline.arcs) begins.insert(arc.begin);
    // One arc a block, on a straight time axis, no two of the same begin.
    if (timeline.walled && timeline.arcs.size() == instance.blocks.size() && begins.size() == timeline.arcs.size()) {
      ASSERT_EQ(CountPairs(timeline), pairs) << "run " << run;
      ++exact;
    } else {
      ASSERT_GE(CountPairs(timeline), pairs) << "run " << run;
    }
  }
  EXPECT_GT(exact, testing::Runs(100));
}

TEST(PairsPropertyTest, AreThoseThatMeetEachOnce) {
  Random random(testing::TestSeed() + 32);
  for (int run = 0; run < testing::Runs(5000); ++run) {
    const Instance instance = testing::SmallInstance(1 + run % 14, &random);
    StopCheck never = Never();
    const Pairs pairs = MakePairs(MakeTimeline(instance), &never);
    PairSet found;
    size_t listed = 0;
    for (int32_t a = 0; a < static_cast<int32_t>(instance.blocks.size()); ++a) {
      for (int32_t b : pairs.Of(a)) found.insert(std::minmax(a, b));
      listed += pairs.Of(a).size();
    }
    ASSERT_EQ(found, PairsThatMeet(instance)) << "run " << run;
    ASSERT_EQ(listed, 2 * found.size()) << "run " << run;
  }
}

// The clock is checked while they are made, and the result so far is in order.
TEST(PairsTest, AreNotMadeOnceTimeIsUp) {
  const Timeline timeline = MakeTimeline(testing::ManySizedInstance(400, 5));
  StopCheck for_cliques(0, nullptr);
  StopCheck for_pairs(0, nullptr);
  const Cliques cliques = MakeCliques(timeline, &for_cliques);
  const Pairs pairs = MakePairs(timeline, &for_pairs);
  EXPECT_TRUE(for_cliques.stopped() && for_pairs.stopped());
  EXPECT_LT(for_cliques.total_work(), CountMembers(timeline));
  EXPECT_LT(for_pairs.total_work(), CountPairs(timeline));
  EXPECT_EQ(cliques.cliques(), 0);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    EXPECT_TRUE(cliques.CliquesOf(block).empty() && pairs.Of(block).empty());
  }
}

}  // namespace
}  // namespace hotpack
