// Programs that deviate now and then: each is fully planned again within two iterations of the disturbance.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "tests/runtime/job.h"
#include "tests/runtime/play.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = Job::kMiB;

TEST(Program, ReleasesInAnyOrder) {
  std::mt19937_64 random(TestSeed());
  Job job;
  Net net(&job);
  Net::Change change;
  change.permute = &random;
  auto iteration = [&] { net.Step(change); };
  for (int i = 0; i < 20; ++i) job.Play(iteration);  // the orders are got to know
  int in_a_row = 0;
  for (int i = 0; i < 60; ++i) {
    in_a_row = job.Play(iteration).Full() ? 0 : in_a_row + 1;
    EXPECT_LE(in_a_row, 2) << job.History();  // an order that is new, and the change to a plan for it
  }
  job.Report("releases in any order");
}

TEST(Program, OneRequestMoreEveryTenthIteration) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  for (int i = 0; i < 80; ++i) {
    Net::Change change;
    if (i % 10 == 0) change.insert_at = i / 4;
    Job::Share share = job.Play([&] { net.Step(change); });
    if (i % 10 >= 2) {
      EXPECT_TRUE(share.Full()) << i << ": " << job.History();
    }
  }
  job.Report("one request more every tenth");
}

class Disturbance : public ::testing::TestWithParam<std::pair<const char*, Net::Change>> {};

TEST_P(Disturbance, IsOverWithinTwoIterations) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  ExpectPlanned(
      &job, [&] { net.Step(); }, 3);
  for (int round = 0; round < 5; ++round) {
    job.Play([&] { net.Step(GetParam().second); });
    job.Play([&] { net.Step(); });
    job.Give(&net.kept);
    // The end of kept blocks, and the change to a plan for larger sizes, are disturbances of their own.
    if (GetParam().second.keep_at >= 0 || GetParam().second.grow_at >= 0) job.Play([&] { net.Step(); });
    ExpectPlanned(
        &job, [&] { net.Step(); }, 12 - 2 * round);  // never twice the same distance: no period of its own
  }
  job.Report(GetParam().first);
}

std::vector<std::pair<const char*, Net::Change>> Disturbances() {
  std::vector<std::pair<const char*, Net::Change>> all;
  Net::Change change;
  change.insert_at = 7;
  all.emplace_back("inserted", change);
  change = {};
  change.skip_at = 7;
  all.emplace_back("missing", change);
  change = {};
  change.grow_at = 7;
  all.emplace_back("larger", change);
  change = {};
  change.grow_at = 0;
  all.emplace_back("first_larger", change);
  change = {};
  change.grow_at = 5;
  change.skip_at = 5;
  all.emplace_back("larger_and_missing", change);
  change = {};
  change.shrink_at = 7;
  all.emplace_back("smaller", change);
  change = {};
  change.keep_at = 7;
  all.emplace_back("kept", change);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Program, Disturbance, ::testing::ValuesIn(Disturbances()),
                         [](const auto& test) { return test.param.first; });

TEST(Program, ALargerRequestIsPlannedAgain) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  Net::Change change;
  change.grow_at = 7;
  PlayUntilPlanned(
      &job, [&] { net.Step(change); }, 4);
  ExpectPlanned(
      &job, [&] { net.Step(change); }, 5);
  ExpectPlanned(
      &job, [&] { net.Step(); }, 2);  // and back: it fits
  EXPECT_GE(job.engine().Stats().reoptimizations, 1u);
  job.Report("a larger request, for good");
}

// The new size is another request's, so that it looks like that one at first.
TEST(Program, ALargerRequestOfAKnownSizeIsPlannedAgain) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  Net::Change change;
  change.grow_at = 7;
  change.grow_bytes = 0;
  for (int l = 8; l < 20 && change.grow_bytes == 0; ++l) {
    if (net.Size(l, 100) > net.Size(7, 100)) change.grow_bytes = net.Size(l, 100);
  }
  ASSERT_NE(change.grow_bytes, 0u);
  PlayUntilPlanned(
      &job, [&] { net.Step(change); }, 12);
  ExpectPlanned(
      &job, [&] { net.Step(change); }, 5);
}

TEST(Program, ASmallerRequestIsServedInPlace) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  Net::Change change;
  change.shrink_at = 7;
  ExpectPlanned(
      &job, [&] { net.Step(change); }, 5);
  EXPECT_EQ(job.engine().Stats().reoptimizations, 0u);
}

TEST(Program, AnotherIterationForGood) {
  Job job;
  Net first(&job), second(&job, 33);
  PlayUntilPlanned(&job, [&] { first.Step(); });
  ExpectPlanned(
      &job, [&] { first.Step(); }, 3);
  first.ZeroGrad();
  PlayUntilPlanned(
      &job, [&] { second.Step(); }, 10);
  ExpectPlanned(
      &job, [&] { second.Step(); }, 10);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.reserved_steady, stats.live_peak * 115 / 100 + 8 * kMiB);
  job.Report("another iteration, for good");
}

TEST(Program, AShorterIterationForGood) {
  Job job;
  Net first(&job, 33), second(&job, 9);
  PlayUntilPlanned(&job, [&] { first.Step(); });
  first.ZeroGrad();
  PlayUntilPlanned(
      &job, [&] { second.Step(); }, 30);
  ExpectPlanned(
      &job, [&] { second.Step(); }, 10);
}

TEST(Program, TwoIterationsByTurns) {
  Job job;
  Net first(&job), second(&job, 13);
  auto both = [&] {
    first.Step();
    second.Step();
  };
  PlayUntilPlanned(&job, both);
  ExpectPlanned(&job, both, 10);
  job.Report("two iterations by turns");
}

// An evaluation after every few steps: the training steps are planned again after it.
TEST(Program, EvaluationNowAndThen) {
  Job job;
  Net net(&job);
  auto evaluation = [&] {
    for (int i = 0; i < 40; ++i) {
      DeviceAddress a = job.Ask((91 + i % 3) << 10), b = job.Ask(55 << 10);
      job.Give(a);
      job.Give(b);
    }
  };
  PlayUntilPlanned(&job, [&] { net.Step(); });
  int by_new_plan = 0;
  for (int round = 0; round < 12; ++round) {
    evaluation();
    uint64_t plans = job.engine().Stats().plans;
    int since_plan = 2;
    for (int step = 0; step < 7; ++step, ++since_plan) {
      const bool full = job.Play([&] { net.Step(); }).Full();
      const uint64_t plans_now = job.engine().Stats().plans;
      if (std::exchange(plans, plans_now) != plans_now) since_plan = 0;
      if (full || (round < 3 && step < 2)) continue;
      // A plan for all that repeats, steps and evaluation, is made and taken up while the steps are served: once.
      ++by_new_plan;
      EXPECT_TRUE(round < 3 && since_plan < 2) << "round " << round << ", step " << step << ": " << job.History();
    }
  }
  EXPECT_LE(by_new_plan, 1);
  job.Report("evaluation now and then");
}

}  // namespace
}  // namespace hotpack
