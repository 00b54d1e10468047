#include "packer/exact_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "packer/random.h"
#include "packer/timeline.h"
#include "random_instance.h"
#include "reference_solver.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using Outcome = ExactSearch::Outcome;
using ::testing::IsEmpty;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// One instance's search, which may be asked again and again.
class Asker {
 public:
  explicit Asker(const Instance& instance)
      : instance_(instance),
        timeline_(MakeTimeline(instance)),
        cliques_(MakeCliques(timeline_, &never_)),
        search_(timeline_, cliques_, &never_),
        ranks_(timeline_.blocks()) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
  }

  void Shuffle(Random* random) {
    for (size_t i = ranks_.size(); i > 1; --i) {
      std::swap(ranks_[i - 1], ranks_[random->Below(static_cast<int64_t>(i))]);
    }
  }

  // The result is a placement of at most that height.
  Outcome Ask(Bytes capacity, int64_t most_failures = kNoLimit, int64_t most_work = kNoLimit,
              const std::atomic<bool>* cancel = nullptr) {
    StopCheck stop(kNoLimit, cancel);
    std::vector<Offset> offsets;
    const Outcome outcome = search_.Run(capacity, ranks_, most_failures, most_work, &stop, &offsets);
    if (outcome != Outcome::kFound) return outcome;
    placement_ = {offsets, 0};
    for (size_t i = 0; i < offsets.size(); ++i) {
      placement_.height = std::max(placement_.height, offsets[i] + instance_.blocks[i].size);
    }
    EXPECT_THAT(testing::ReferenceFault(instance_, placement_), IsEmpty());
    EXPECT_LE(placement_.height, capacity);
    return outcome;
  }

  const Placement& placement() const { return placement_; }
  int64_t nodes() const { return search_.nodes(); }

 private:
  const Instance instance_;
  const Timeline timeline_;
  StopCheck never_{kNoLimit, nullptr};
  const Cliques cliques_;
  ExactSearch search_;
  std::vector<int32_t> ranks_;
  Placement placement_;
};

// The least height, by going down from the judge's; and that one less is proved impossible.
void ExpectLeast(const Instance& instance, Bytes least) {
  ASSERT_EQ(testing::ReferenceOptimum(instance).height, least);
  Asker asker(instance);
  EXPECT_EQ(asker.Ask(least), Outcome::kFound);
  EXPECT_EQ(asker.Ask(least - 1), Outcome::kNone);
  EXPECT_EQ(asker.Ask(least + 1), Outcome::kFound);
}

TEST(ExactSearchTest, OneBlock) {
  ExpectLeast({{{.size = 5, .residency = {{0, 3}}}}}, 5);
  ExpectLeast({{{.size = 5, .alignment = 4, .pinned = 8, .residency = {{0, 3}}}}}, 13);
}

// 1 on 0 wastes what 0 on 1 does not.
TEST(ExactSearchTest, AlignmentRoundsHeadsUp) {
  ExpectLeast({{{.size = 3, .residency = {{0, 3}}}, {.size = 4, .alignment = 4, .residency = {{0, 3}}}}}, 7);
  ExpectLeast(
      {{{.size = 3, .alignment = 4, .residency = {{0, 3}}}, {.size = 3, .alignment = 4, .residency = {{0, 3}}}}}, 7);
}

// A block jumps over a pin it cannot lie under, and over several that overlap each other at other times.
TEST(ExactSearchTest, BlocksLieUnderBetweenAndOnPins) {
  ExpectLeast({{{.size = 2, .pinned = 2, .residency = {{0, 4}}},
                {.size = 2, .residency = {{0, 4}}},
                {.size = 3, .residency = {{0, 4}}}}},
              7);
  ExpectLeast({{{.size = 4, .pinned = 1, .residency = {{0, 2}}},
                {.size = 4, .pinned = 3, .residency = {{2, 4}}},
                {.size = 2, .residency = {{0, 4}}}}},
              9);
  // Aligned, it misses the gap between the pins.
  ExpectLeast({{{.size = 3, .pinned = 0, .residency = {{0, 2}}},
                {.size = 3, .pinned = 6, .residency = {{0, 2}}},
                {.size = 3, .alignment = 4, .residency = {{0, 2}}}}},
              15);
  ExpectLeast({{{.size = 3, .pinned = 0, .residency = {{0, 2}}},
                {.size = 3, .pinned = 6, .residency = {{0, 2}}},
                {.size = 2, .alignment = 4, .residency = {{0, 2}}}}},
              9);
}

TEST(ExactSearchTest, TheLeastHeightMayBeAboveTheLoad) {
  const Instance instance = testing::AboveItsLoad();
  ASSERT_EQ(testing::ReferenceLoad(instance), 10);
  ExpectLeast(instance, 11);
}

// Results that follow from the bounds need no search.
void ExpectNoneAtOnce(const Instance& instance) {
  const Bytes least = testing::ReferenceOptimum(instance).height;
  Asker asker(instance);
  EXPECT_EQ(asker.Ask(least - 1), Outcome::kNone);
  EXPECT_EQ(asker.nodes(), 0);
  EXPECT_EQ(asker.Ask(least), Outcome::kFound);
}

TEST(ExactSearchTest, HeadsAreAboveAllGapsThatAreTooLow) {
  ExpectNoneAtOnce({{{.size = 1, .pinned = 0, .residency = {{0, 2}}},
                     {.size = 2, .pinned = 3, .residency = {{0, 2}}},
                     {.size = 2, .pinned = 7, .residency = {{0, 2}}},
                     {.size = 3, .residency = {{0, 2}}}}});
}

//    offset ▲ ┌───┐
//           │ │ 3 │
//           │ ├───┴───┐
//           │ │   2   │     2 and 3 are above 0, elsewhere, so the room next to 1 is of no use
//           │ ├───┬───┤
//           │ └1┘ │ 0 │
//           └─────┴───┴─► clock
TEST(ExactSearchTest, TheBoundCountsRoomThatNobodyCanUse) {
  ExpectNoneAtOnce({{{.size = 4, .pinned = 0, .residency = {{2, 4}}},
                     {.size = 1, .residency = {{0, 1}}},
                     {.size = 3, .residency = {{0, 3}}},
                     {.size = 3, .residency = {{0, 1}, {3, 4}}}}});
}

TEST(ExactSearchTest, EqualBlocksAreTriedOnce) {
  // Twelve blocks with the same residency: without classes the proof would take 12! nodes.
  Instance instance;
  for (int i = 0; i < 12; ++i) instance.blocks.push_back({.size = 3, .alignment = 2, .residency = {{0, 4}}});
  Asker asker(instance);
  EXPECT_EQ(asker.Ask(12 * 4 - 1), Outcome::kFound);
  EXPECT_EQ(asker.Ask(12 * 4 - 2, 100), Outcome::kNone);
  EXPECT_LT(asker.nodes(), 100);
}

TEST(ExactSearchTest, LimitsStopIt) {
  const Instance instance = testing::HardInstance(400, 1);
  const Bytes load = testing::ReferenceLoad(instance);
  Asker asker(instance);
  ASSERT_EQ(asker.Ask(load, 0), Outcome::kStopped);
  EXPECT_LE(asker.nodes(), static_cast<int64_t>(instance.blocks.size()));
  int64_t before = asker.nodes();
  EXPECT_EQ(asker.Ask(load, 1000), Outcome::kStopped);
  EXPECT_GT(asker.nodes() - before, 100);
  before = asker.nodes();
  EXPECT_EQ(asker.Ask(load, kNoLimit, 0), Outcome::kStopped);
  EXPECT_LE(asker.nodes() - before, 1);
  EXPECT_EQ(asker.Ask(load, kNoLimit, 100'000), Outcome::kStopped);
  before = asker.nodes();
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(asker.Ask(load, kNoLimit, kNoLimit, &cancelled), Outcome::kStopped);
  // The flag is checked after some 20 microseconds' work.
  EXPECT_LE(asker.nodes() - before, 5000);
  // None of it is remembered wrongly.
  EXPECT_EQ(asker.Ask(2 * load), Outcome::kFound);
}

// Capacities in any order on the same search, cut short in between, blocks tried in any order.
void AskInAnyOrder(const Instance& instance, Random* random) {
  const Bytes least = testing::ReferenceOptimum(instance).height;
  Asker asker(instance);
  for (int ask = 0; ask < 4; ++ask) {
    asker.Shuffle(random);
    const Bytes capacity = least + random->Below(5) - 2;
    asker.Ask(least - random->Below(3), random->Below(4));
    ASSERT_EQ(asker.Ask(capacity), capacity < least ? Outcome::kNone : Outcome::kFound)
        << "capacity " << capacity << ", the least is " << least;
  }
  // The proof that matters.
  ASSERT_EQ(asker.Ask(least - 1), Outcome::kNone);
  ASSERT_EQ(asker.Ask(least), Outcome::kFound);
}

TEST(ExactSearchPropertyTest, AgreesWithTheJudge) {
  Random random(testing::TestSeed() + 50);
  for (int run = 0; run < testing::Runs(5000); ++run) {
    const Instance instance = testing::SmallInstance(8, &random);
    ASSERT_NO_FATAL_FAILURE(AskInAnyOrder(instance, &random)) << "run " << run;
    ASSERT_FALSE(HasFailure()) << "run " << run;
  }
}

// Few instances of ten blocks, but above their load, where the search has something to prove.
TEST(ExactSearchPropertyTest, AgreesWithTheJudgeAboveTheLoad) {
  Random random(testing::TestSeed() + 51);
  int above = 0;
  for (int run = 0; above < testing::Runs(150); ++run) {
    const Instance instance = testing::SmallInstance(10, &random);
    if (testing::ReferenceOptimum(instance).height == testing::ReferenceLoad(instance)) continue;
    ++above;
    ASSERT_NO_FATAL_FAILURE(AskInAnyOrder(instance, &random)) << "run " << run;
    ASSERT_FALSE(HasFailure()) << "run " << run;
  }
}

// The search finds the packing from which the rectangle was cut.
TEST(ExactSearchPropertyTest, FillsCutRectangles) {
  Random random(testing::TestSeed() + 52);
  int64_t found = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    const testing::KnownInstance known = testing::CutRectangle(24, &random);
    Asker asker(known.instance);
    const Outcome outcome = asker.Ask(known.placement.height, 20'000);
    ASSERT_NE(outcome, Outcome::kNone) << "run " << run;
    found += outcome == Outcome::kFound ? 1 : 0;
  }
  EXPECT_GT(found, kRuns * 9 / 10);
}

}  // namespace
}  // namespace hotpack
