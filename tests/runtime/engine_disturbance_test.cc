// Programs that deviate now and then: each is fully planned again within two iterations of the disturbance.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/runs.h"
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

// A few requests again and again. Each block lives for a number of requests, also for more than there are.
class ShortLoop {
 public:
  struct Request {
    uint64_t bytes, lives;
  };
  ShortLoop(Job* job, std::vector<Request> requests) : job_(job), requests_(std::move(requests)) {}

  // `late`: some blocks are released later than usual.
  void Step(std::mt19937_64* late = nullptr) {
    for (const Request& request : requests_) {
      while (!due_.empty() && due_.begin()->first <= made_) {
        const DeviceAddress address = due_.begin()->second;
        due_.erase(due_.begin());
        if (late != nullptr && (*late)() % 4 == 0) {
          due_.emplace(made_ + 1 + (*late)() % 30, address);
        } else {
          job_->Give(address);
        }
      }
      const DeviceAddress address = job_->Ask(request.bytes);
      due_.emplace(++made_ + request.lives - 1, address);
    }
  }

 private:
  Job* job_;
  const std::vector<Request> requests_;
  std::multimap<uint64_t, DeviceAddress> due_;  // by the requests made until the release
  uint64_t made_ = 0;
};

TEST(Program, BlocksThatOutliveTheIterationAreNoWeights) {
  Job job;
  ShortLoop loop(&job, {{200000, 13}, {13312, 1}, {1024, 3}, {81920, 2}, {4096, 1}, {2048, 2}, {512, 1}});
  for (int i = 0; i < 40; ++i) job.Play([&] { loop.Step(); });
  ExpectPlanned(
      &job, [&] { loop.Step(); }, 20);
  job.GiveAll();
}

// Releases come late for some iterations, and then no more. The script forgets the long lives.
TEST(Program, WhatReleasesComeLateInIsServedAgainInWhole) {
  std::mt19937_64 random(TestSeed());
  constexpr int kRuns = testing::Runs(200);
  EngineOptions options;
  options.plan_time_limit_ns = 3'000'000;
  int planned_again = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<ShortLoop::Request> requests(6 + random() % 20);
    for (ShortLoop::Request& request : requests) {
      request = {1 + random() % (random() % 2 == 0 ? 2000 : 300'000),
                 1 + random() % (random() % 4 == 0 ? 2 * requests.size() : 5)};
    }
    Job job(4096 * kMiB, options);
    for (uint64_t i = random() % 6; i > 0; --i) job.Ask(1 + random() % 200'000);  // weights
    ShortLoop loop(&job, requests);
    const auto play = [&](std::mt19937_64* late) {
      if (run % 2 == 0) job.engine().Mark();
      return job.Play([&] { loop.Step(late); }).Full();
    };
    for (int i = 0; i < 16; ++i) play(nullptr);
    for (int i = 0; i < 6; ++i) play(&random);
    bool planned = false;
    for (int i = 0; i < 96 && !planned; ++i) planned = play(nullptr);
    planned_again += planned ? 1 : 0;
    job.GiveAll();
  }
  printf("%d of %d jobs were planned again in whole\n", planned_again, kRuns);
  EXPECT_GE(planned_again, kRuns * 98 / 100);
}

// Three iterations with one more request were taken for the period. From then on the iterations are all the same.
TEST(Program, APeriodOfSeveralIterationsThatWasNoneIsLeft) {
  Job job;
  const std::vector<ShortLoop::Request> requests = {
      {131072, 10}, {49152, 15}, {131072, 2}, {49152, 5},  {131072, 4}, {49152, 2},  {5632, 1},  {16384, 3},
      {182297, 20}, {149585, 5}, {12288, 5},  {163438, 3}, {9216, 5},   {65536, 1},  {56, 2},    {194947, 5},
      {65536, 18},  {1373, 33},  {65536, 4},  {163438, 5}, {1497, 23},  {240272, 2}, {37094, 5}, {477, 1}};
  std::vector<ShortLoop::Request> three;
  for (int i = 0; i < 3; ++i) three.insert(three.end(), requests.begin(), requests.end());
  three.insert(three.begin() + 37, {1373, 33});
  ShortLoop odd(&job, three), loop(&job, requests);
  for (int i = 0; i < 4; ++i) job.Play([&] { odd.Step(); });
  for (int i = 0; i < 80; ++i) job.Play([&] { loop.Step(); });
  ExpectPlanned(
      &job, [&] { loop.Step(); }, 20);
  job.GiveAll();
}

}  // namespace
}  // namespace hotpack
