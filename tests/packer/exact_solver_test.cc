#include "packer/exact_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "packer/bounds.h"
#include "packer/random.h"
#include "packer/shared_best.h"
#include "packer/solve.h"
#include "packer/timeline.h"
#include "random_instance.h"
#include "reference_solver.h"
#include "small_instance.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int64_t kAllWork = kNoLimit / 4;

// The search beginning with all blocks stacked.
struct Attempt {
  explicit Attempt(const Instance& instance, Goal goal = {})
      : timeline(MakeTimeline(instance)), best({Stacked(timeline), "stacked"}, LowerBound(timeline), goal) {}

  const Timeline timeline;
  SharedBest best;
};

void ExpectMinimum(const Instance& instance, uint64_t seed, int64_t work) {
  const Bytes least = testing::ReferenceOptimum(instance).height;
  Attempt run(instance);
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, seed, 0, &run.best, &stop);
  for (; !run.best.done(); work *= 2) solver.Run(work, &stop);
  ASSERT_EQ(run.best.lower(), least);
  const Placement placement = run.best.Take().placement;
  ASSERT_EQ(placement.height, least);
  ASSERT_THAT(testing::ReferenceFault(instance, placement), IsEmpty());
}

TEST(SharedBestTest, KeepsTheLowestAndTheHighestBound) {
  SharedBest best({{{0, 6}, 10}, "first"}, 4, {});
  Placement offered{{0, 5}, 9};
  best.Offer(&offered, "lower");
  offered = {{5, 0}, 9};
  best.Offer(&offered, "as high");
  offered = {{0, 7}, 11};
  best.Offer(&offered, "higher");
  best.RaiseLower(7);
  best.RaiseLower(5);
  EXPECT_EQ(best.height(), 9);
  EXPECT_EQ(best.lower(), 7);
  EXPECT_FALSE(best.done());
  best.RaiseLower(9);
  EXPECT_TRUE(best.done());
  const Incumbent incumbent = best.Take();
  EXPECT_STREQ(incumbent.algorithm, "lower");
  EXPECT_EQ(incumbent.placement.offsets, (std::vector<Offset>{0, 5}));
}

TEST(SharedBestTest, ADecisionEndsWithAProof) {
  SharedBest best({{{0}, 10}, "first"}, 4, {.target_height = 6, .decide = true});
  EXPECT_EQ(best.target(), 6);
  EXPECT_FALSE(best.done());
  best.RaiseLower(7);
  EXPECT_TRUE(best.done());
  SharedBest all({{{0}, 10}, "first"}, 4, {.target_height = 6});
  all.RaiseLower(7);
  EXPECT_FALSE(all.done());
}

TEST(ExactSolverTest, ProvesAMinimumAboveTheLoad) { ExpectMinimum(testing::AboveItsLoad(), 1, kAllWork); }

// All sizes in units of 512 bytes: a proof for one unit holds for all of it.
TEST(ExactSolverTest, BoundsAreRaisedByWholeUnits) {
  Instance instance = testing::AboveItsLoad();
  for (Block& block : instance.blocks) {
    block.size *= 512;
    block.alignment = 512;
  }
  Attempt run(instance, {.target_height = 10 * 512 + 100, .decide = true});
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
  solver.Run(kAllWork, &stop);
  EXPECT_TRUE(run.best.done());
  EXPECT_EQ(run.best.lower(), 11 * 512);
}

// Pins and alignments may be finer or coarser than the sizes.
TEST(ExactSolverTest, UnitsTakeInPinsAndAlignments) {
  Instance instance{{{.size = 4, .pinned = 3, .residency = {{0, 4}}}, {.size = 4, .residency = {{0, 4}}}}};
  ExpectMinimum(instance, 1, kAllWork);  // 11
  instance = {{{.size = 4, .residency = {{0, 4}}},
               {.size = 4, .alignment = 6, .residency = {{0, 4}}},
               {.size = 4, .alignment = 6, .residency = {{0, 4}}}}};
  ExpectMinimum(instance, 1, kAllWork);  // 14
  instance = {{{.size = 4, .alignment = 3, .residency = {{0, 4}}},
               {.size = 4, .alignment = 3, .residency = {{0, 4}}},
               {.size = 4, .alignment = 3, .residency = {{0, 4}}}}};
  ExpectMinimum(instance, 1, kAllWork);  // 16
}

TEST(ExactSolverTest, AsksOnlyWhatIsToBeDecided) {
  const Instance instance = testing::AboveItsLoad();
  for (Bytes capacity : {10, 11, 12, 20}) {
    Attempt run(instance, {.target_height = capacity, .decide = true});
    StopCheck stop(kNoLimit, nullptr);
    ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
    solver.Run(kAllWork, &stop);
    EXPECT_TRUE(run.best.done()) << capacity;
    EXPECT_EQ(run.best.height() <= capacity, capacity >= 11) << capacity;
    EXPECT_EQ(run.best.lower() > capacity, capacity < 11) << capacity;
  }
}

TEST(ExactSolverTest, StopsAtWhatIsEnough) {
  const Instance instance = testing::HardInstance(400, 1);
  const Bytes load = testing::ReferenceLoad(instance);
  Attempt run(instance, {.target_height = 2 * load});
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
  solver.Run(kAllWork, &stop);
  EXPECT_LE(run.best.height(), 2 * load);
  EXPECT_LT(solver.nodes(), 10'000);
}

// Neither found nor refuted at the target, but lower than before: by the heights above it.
TEST(ExactSolverTest, LowersTheBestWhereTheTargetIsOutOfReach) {
  const Instance instance = testing::HardInstance(400, 1);
  Attempt run(instance);
  const Bytes load = run.best.lower();
  const Bytes stacked = run.best.height();
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
  solver.Run(20'000'000, &stop);
  ASSERT_FALSE(run.best.done());
  EXPECT_EQ(run.best.lower(), load);
  EXPECT_LT(run.best.height(), load + (stacked - load) / 10);
}

// A model made in part proves nothing and places nothing.
TEST(ExactSolverTest, DoesNothingOnceTimeIsUp) {
  Attempt run(testing::ManySizedInstance(400, 5));
  const Bytes lower = run.best.lower(), height = run.best.height();
  StopCheck stop(0, nullptr);
  ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
  EXPECT_TRUE(stop.stopped());
  solver.Run(kAllWork, &stop);
  EXPECT_EQ(solver.nodes(), 0);
  EXPECT_EQ(run.best.lower(), lower);
  EXPECT_EQ(run.best.height(), height);
}

TEST(ExactSolverTest, KeepsToItsShareOfWork) {
  const Instance instance = testing::HardInstance(400, 1);
  Attempt run(instance);
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, 1, 0, &run.best, &stop);
  int64_t before = 0;
  for (int turn = 0; turn < 5; ++turn) {
    solver.Run(1'000'000, &stop);
    EXPECT_GE(stop.total_work() - before, 1'000'000);
    EXPECT_LE(stop.total_work() - before, 1'500'000);
    before = stop.total_work();
  }
  std::atomic<bool> cancelled{true};
  StopCheck cancelled_stop(kNoLimit, &cancelled);
  solver.Run(kAllWork, &cancelled_stop);  // without the flag the test would hang
  EXPECT_TRUE(cancelled_stop.stopped());
}

struct Trail {
  std::vector<Bytes> heights;  // after each turn
  std::vector<Offset> offsets;
  int64_t nodes;

  bool operator==(const Trail&) const = default;
};

Trail TrailOf(const Instance& instance, uint64_t seed, int index) {
  Attempt run(instance);
  StopCheck stop(kNoLimit, nullptr);
  ExactSolver solver(run.timeline, seed, index, &run.best, &stop);
  Trail trail;
  for (int turn = 0; turn < 20; ++turn) {
    solver.Run(500'000, &stop);
    trail.heights.push_back(run.best.height());
  }
  trail.nodes = solver.nodes();
  trail.offsets = run.best.Take().placement.offsets;
  return trail;
}

TEST(ExactSolverTest, IsDeterministicForASeedAndAnIndex) {
  const Instance instance = testing::HardInstance(400, 1);
  const Trail trail = TrailOf(instance, 1, 0);
  EXPECT_EQ(TrailOf(instance, 1, 0), trail);
  EXPECT_NE(TrailOf(instance, 1, 1).nodes, trail.nodes);
  EXPECT_NE(TrailOf(instance, 2, 0).nodes, trail.nodes);
}

TEST(ExactSolverTest, SeveralShareTheBest) {
  const Instance instance = testing::AboveItsLoad();
  Attempt run(instance);
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&run, index] {
      StopCheck stop(kNoLimit, nullptr);
      ExactSolver solver(run.timeline, 1, index, &run.best, &stop);
      solver.Run(kAllWork, &stop);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(run.best.lower(), 11);
  EXPECT_EQ(run.best.height(), 11);
}

bool Takes(const Instance& instance) { return ExactSolver::Takes(MakeTimeline(instance), ExactSolver::kFewPairs); }

TEST(ExactSolverTest, LargeInstancesAreNotTaken) {
  EXPECT_TRUE(Takes(testing::HardInstance(400, 1)));
  const auto stairs = [](Clock steps) {
    Instance made;
    for (Clock i = 0; i < steps; ++i) made.blocks.push_back({.size = 1, .residency = {{i, steps}}});
    return made;
  };
  EXPECT_TRUE(Takes(stairs(1414)));   // 998,991 pairs
  EXPECT_FALSE(Takes(stairs(1415)));  // 1,000,405 pairs
  // Short ones do not meet each other, but each is in a clique with all the long ones.
  const auto comb = [](Clock teeth) {
    Instance made;
    made.blocks.assign(60, {.size = 1, .residency = {{0, teeth}}});
    for (Clock i = 0; i < teeth; ++i) made.blocks.push_back({.size = 1, .residency = {{i, i + 1}}});
    return made;
  };
  EXPECT_TRUE(Takes(comb(16'393)));   // 985,350 pairs, 999,973 members
  EXPECT_FALSE(Takes(comb(16'394)));  // 985,410 pairs, 1,000,034 members
}

// Short turns that grow, as in the portfolio: a run that is cut short continues in the next turn.
TEST(ExactSolverPropertyTest, FindsTheMinimumInTurnsOfAnyLength) {
  Random random(testing::TestSeed() + 60);
  for (int run = 0; run < testing::Runs(3000); ++run) {
    const Instance instance = testing::SmallInstance(7, &random);
    const int64_t work = run % 2 == 0 ? kAllWork : 1 + random.Below(5'000);
    ASSERT_NO_FATAL_FAILURE(ExpectMinimum(instance, random.Next(), work)) << "run " << run;
  }
}

}  // namespace
}  // namespace hotpack
