#include "packer/cliques.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "packer/random.h"
#include "random_instance.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Block Resident(absl::InlinedVector<Residency, 1> residency) { return {.size = 1, .residency = std::move(residency)}; }

std::vector<std::vector<int32_t>> CliquesOf(const Instance& instance) {
  const Cliques cliques = MakeCliques(MakeTimeline(instance));
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

// The carried block's two intervals are one arc, and what is resident at both ends of time is one set.
TEST(CliquesTest, GoRoundTheRing) {
  EXPECT_THAT(CliquesOf({{Resident({{0, 2}, {7, 9}}), Resident({{0, 1}}), Resident({{8, 9}}), Resident({{3, 6}})}}),
              UnorderedElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(3)));
  EXPECT_THAT(CliquesOf({{Resident({{0, 2}, {7, 9}}), Resident({{0, 4}, {8, 9}}), Resident({{1, 8}})}}),
              UnorderedElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 2)));
}

using Pairs = std::set<std::pair<int32_t, int32_t>>;

Pairs PairsOf(const Cliques& cliques) {
  Pairs pairs;
  for (int32_t clique = 0; clique < cliques.cliques(); ++clique) {
    for (int32_t a : cliques.MembersOf(clique)) {
      for (int32_t b : cliques.MembersOf(clique)) {
        if (a < b) pairs.insert({a, b});
      }
    }
  }
  return pairs;
}

Pairs PairsThatMeet(const Instance& instance) {
  Pairs pairs;
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
    const Cliques cliques = MakeCliques(timeline);
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

}  // namespace
}  // namespace hotpack
