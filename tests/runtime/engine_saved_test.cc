// Engines that begin with the plan of an earlier run.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>

#include "packer/validator.h"
#include "runtime/persist/plan_file.h"
#include "tests/runtime/job.h"
#include "tests/runtime/saved_job.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

TEST(EngineSaved, TheFirstIterationIsPlanned) {
  for (int state : {0, 1, 3}) {
    SCOPED_TRACE("blocks of state before each layer: " + std::to_string(state));
    auto plan = RunOnce(state);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->opening.before, 12u);
    Keeper keeper;
    Job job(4096 * kMiB, With(&keeper, plan));
    Training training(&job);
    training.Weights();
    const Job::Share first = training.FirstStep(state);
    EXPECT_EQ(first.requests - first.planned, static_cast<uint64_t>(20 * state)) << job.History();
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(training.Step().Full()) << job.History();
    const hotpack_stats stats = job.engine().Stats();
    EXPECT_EQ(stats.displaced, 0u);
    EXPECT_EQ(stats.divergences, 0u);
    EXPECT_GE(stats.steady_iteration, 0);
    EXPECT_LE(stats.steady_iteration, 1);
    EXPECT_LE(stats.reserved_peak, stats.live_peak * 105 / 100 + 8 * (64 << 10));
    job.engine().Finish();
    EXPECT_EQ(keeper.saves(), 0) << "the file says this already";
    EXPECT_EQ(keeper.not_used(), 0);
  }
}

// Weights that differ: the head of the iteration is recognised, and saved for the next run.
TEST(EngineSaved, AnotherStart) {
  for (int weights : {0, 11, 13, 40}) {
    SCOPED_TRACE(std::to_string(weights) + " weights instead of 12");
    Keeper keeper;
    {
      Job job(4096 * kMiB, With(&keeper, RunOnce()));
      Training training(&job);
      training.Weights(weights);
      const Job::Share first = training.FirstStep();
      EXPECT_LE(first.requests - first.planned, 16u) << job.History();
      for (int i = 0; i < 6; ++i) EXPECT_TRUE(training.Step().Full()) << job.History();
      job.engine().Finish();
      EXPECT_EQ(keeper.not_used(), 0);
      EXPECT_EQ(keeper.saves(), 1);
    }
    Job job(4096 * kMiB, With(&keeper, keeper.plan()));
    Training training(&job);
    training.Weights(weights);
    EXPECT_TRUE(training.FirstStep().Full()) << job.History();
  }
}

// Weights ask for what gradients ask for, in the same order, but stay: they are no iteration.
TEST(EngineSaved, WeightsAreNotTakenForGradients) {
  auto iteration = [](Job* job) {
    std::vector<DeviceAddress> gradients;
    for (int i = 0; i < 40; ++i) {
      gradients.push_back(job->Ask(5000 + 1000 * static_cast<uint64_t>(i)));
      if (i >= 4) {
        job->Give(gradients.front());
        gradients.erase(gradients.begin());
      }
    }
    job->Give(&gradients);
  };
  Keeper keeper;
  {
    Job job(4096 * kMiB, With(&keeper));
    for (int i = 0; i < 8; ++i) job.Play([&] { iteration(&job); });
    job.engine().Finish();
  }
  ASSERT_NE(keeper.plan(), nullptr);
  Job job(4096 * kMiB, With(nullptr, keeper.plan()));
  std::vector<DeviceAddress> weights;
  weights.push_back(job.Ask(777));  // another start
  for (int i = 0; i < 40; ++i) weights.push_back(job.Ask(5000 + 1000 * static_cast<uint64_t>(i)));
  EXPECT_LT(job.engine().Stats().planned, 16u);
  const Job::Share first = job.Play([&] { iteration(&job); });
  EXPECT_LE(first.requests - first.planned, 16u);
  EXPECT_TRUE(job.Play([&] { iteration(&job); }).Full());
  job.Give(&weights);
}

TEST(EngineSaved, AnotherProgram) {
  auto plan = RunOnce();
  for (int layers : {5, 19, 21, 50}) {
    SCOPED_TRACE(std::to_string(layers) + " layers instead of 20");
    Keeper keeper;
    Job with(4096 * kMiB, With(&keeper, plan)), without(4096 * kMiB, With(nullptr));
    Training a(&with, layers, 3), b(&without, layers, 3);
    a.Weights();
    b.Weights();
    for (int i = 0; i < 60; ++i) {
      a.Step();
      b.Step();
    }
    EXPECT_TRUE(with.shares().back().Full()) << with.History();
    const hotpack_stats got = with.engine().Stats(), plain = without.engine().Stats();
    EXPECT_EQ(got.planned, plain.planned);
    EXPECT_LE(got.reserved_peak, plain.reserved_peak);
    EXPECT_EQ(got.steady_iteration, plain.steady_iteration);
    EXPECT_EQ(got.reoptimizations, plain.reoptimizations);
    EXPECT_EQ(keeper.not_used(), 1);
    with.engine().Finish();
    EXPECT_EQ(keeper.saves(), 1);  // the plan of this program is there for the next run
  }
}

// A program that begins just as the other did, weights and first requests, and then does something else.
TEST(EngineSaved, AnotherProgramWithTheSameBeginning) {
  auto plan = RunOnce();
  for (int same : {1, 15, 30}) {
    SCOPED_TRACE(std::to_string(same) + " requests are the same");
    Keeper keeper;
    Job with(4096 * kMiB, With(&keeper, plan)), without(4096 * kMiB, With(nullptr));
    auto step = [&](Job* job) {
      std::vector<DeviceAddress> live;
      for (int k = 0; k < same; ++k)
        live.push_back(job->Ask(plan->opening.units[12 + static_cast<size_t>(k)] * kBlockUnit));
      for (int k = 0; k < 100; ++k) {
        live.push_back(job->Ask(20 * kMiB / 512 * (1 + static_cast<uint64_t>(k * 37 % 101))));
        if (k % 3 == 2) {
          job->Give(live[live.size() - 2]);
          live.erase(live.end() - 2);
        }
      }
      job->Give(&live);
    };
    Training a(&with), b(&without);
    a.Weights();
    b.Weights();
    for (int i = 0; i < 12; ++i) {
      with.Play([&] { step(&with); });
      without.Play([&] { step(&without); });
    }
    EXPECT_EQ(keeper.not_used(), 1);
    EXPECT_TRUE(with.shares().back().Full()) << with.History();
    const hotpack_stats got = with.engine().Stats(), plain = without.engine().Stats();
    EXPECT_LE(got.steady_iteration, plain.steady_iteration + 1);
    EXPECT_GE(got.planned + 140, plain.planned);
    EXPECT_LE(got.reserved_peak, plain.reserved_peak + plain.reserved_peak / 50 + 2 * kMiB);
  }
}

// After a trial that failed the job is observed as from its beginning. No script is parked: nothing is given back
// because it has been idle, which a job that has never followed a script does not do either.
TEST(EngineSaved, AFailedTrialLeavesNoParkedScript) {
  auto plan = RunOnce();
  Keeper keeper;
  Job with(4096 * kMiB, With(&keeper, plan)), without(4096 * kMiB, With(nullptr));
  for (Job* job : {&with, &without}) {
    Training training(job);
    training.Weights();
    job->Give(job->Ask(200 * kMiB));
    std::mt19937 random(1);
    for (size_t k = 0; k < 15; ++k) job->Give(job->Ask(plan->opening.units[12 + k] * kBlockUnit));
    std::vector<DeviceAddress> live;
    for (int k = 0; k < 60000; ++k) {
      live.push_back(job->Ask(512 * (1 + random() % 20000)));
      if (live.size() < 8) continue;
      const size_t one = random() % live.size();
      job->Give(live[one]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(one));
    }
    job->Give(&live);
  }
  EXPECT_EQ(keeper.not_used(), 1);
  EXPECT_EQ(with.engine().Stats().plans, 0u);
  EXPECT_EQ(with.device().unmaps(), without.device().unmaps());
}

// A plan of two scripts: the one that the opening names begins; the other is recognised when it comes instead.
TEST(EngineSaved, SeveralScripts) {
  auto small = RunOnce(0, 12, 20), large = RunOnce(0, 12, 31, 3);
  auto both = std::make_shared<SavedPlan>(*large);
  both->scripts.insert(both->scripts.begin(), small->scripts[0]);
  both->opening.script = 1;
  const std::vector<uint8_t> bytes = EncodePlan(*both);
  auto read = std::make_shared<SavedPlan>();
  ASSERT_EQ(DecodePlan(bytes.data(), bytes.size(), read.get()), PlanFileStatus::kOk);
  for (int layers : {31, 20}) {
    Keeper keeper;
    Job job(4096 * kMiB, With(&keeper, read));
    Training training(&job, layers, layers == 31 ? 3 : 1);
    training.Weights(layers == 31 ? 12 : 3);
    const Job::Share first = training.Step();
    EXPECT_LE(first.requests - first.planned, layers == 31 ? 0u : 18u) << job.History();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(training.Step().Full()) << job.History();
    EXPECT_EQ(keeper.not_used(), 0);
  }
}

// Training and evaluation by turns: both scripts are saved, that of training first, although the run ends with
// evaluation; and the next run has both before it has seen either twice.
TEST(EngineSaved, TrainingAndEvaluationByTurns) {
  const auto steps = [](int epoch) { return 7 + epoch * 5 % 4; };  // no epoch is like the one before
  const auto evaluations = [](int epoch) { return 3 + epoch * 2 % 3; };
  Keeper first_run, second_run;
  {
    Job job(4096 * kMiB, With(&first_run));
    Training training(&job);
    training.Weights();
    for (int epoch = 0; epoch < 5; ++epoch) {
      for (int i = 0; i < steps(epoch); ++i) training.Step();
      for (int i = 0; i < evaluations(epoch); ++i) job.Play([&] { Evaluate(&job, 30); });
    }
    job.engine().Finish();
  }
  ASSERT_NE(first_run.plan(), nullptr);
  EXPECT_GE(first_run.plan()->scripts.size(), 2u);
  EXPECT_EQ(first_run.plan()->opening.before, 12u);
  Job job(4096 * kMiB, With(&second_run, first_run.plan()));
  Training training(&job);
  training.Weights();
  uint64_t requests = 0, planned = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int i = 0; i < steps(epoch) + evaluations(epoch); ++i) {
      const Job::Share share = i < steps(epoch) ? training.Step() : job.Play([&] { Evaluate(&job, 30); });
      if (epoch == 0) {
        EXPECT_LE(share.requests - share.planned, 1u) << job.History();
      }
      requests += share.requests;
      planned += share.planned;
    }
    EXPECT_GE(job.engine().Stats().variants, 2u) << "the evaluation's script is known before there was one";
  }
  EXPECT_GE(planned * 100, requests * 90) << job.History();
  EXPECT_LE(job.engine().Stats().reserved_peak, job.engine().Stats().live_peak * 105 / 100 + 8 * (64 << 10));
  EXPECT_EQ(second_run.not_used(), 0);
}

// Differences in the first iteration cost only themselves.
TEST(EngineSaved, DeviationInTheFirstIteration) {
  auto plan = RunOnce(1);
  const Net::Change changes[] = {
      {.insert_at = 0}, {.insert_at = 10}, {.grow_at = 5}, {.shrink_at = 7}, {.skip_at = 3}, {.keep_at = 12},
  };
  for (const Net::Change& change : changes) {
    SCOPED_TRACE("case " + std::to_string(&change - changes));
    Keeper keeper;
    Job job(4096 * kMiB, With(&keeper, plan));
    Training training(&job);
    training.Weights();
    const Job::Share first = training.FirstStep(1, change);
    EXPECT_GE(first.planned + 20 + 3, first.requests) << job.History();
    job.Give(&training.net.kept);
    for (int i = 0; i < 8; ++i) training.Step();
    EXPECT_TRUE(job.shares().back().Full()) << job.History();
    EXPECT_EQ(keeper.not_used(), 0);
  }
}

TEST(EngineSaved, WithMarks) {
  for (bool marked : {false, true}) {
    Keeper keeper;
    auto run = [&](Job* job) {
      Training training(job);
      training.Weights();
      for (int i = 0; i < 6; ++i) {
        job->engine().Mark();
        training.Step();
      }
      job->engine().Finish();
    };
    Job first(4096 * kMiB, With(&keeper));
    run(&first);
    EXPECT_TRUE(first.shares().back().Full()) << first.History();
    Job second(4096 * kMiB, With(&keeper, keeper.plan()));
    if (marked) {
      run(&second);
    } else {  // the plan does not depend on them
      Training training(&second);
      training.Weights();
      training.Step();
    }
    EXPECT_TRUE(second.shares().front().Full()) << second.History();
    EXPECT_TRUE(second.shares().back().Full()) << second.History();
  }
}

TEST(EngineSaved, OnOnePieceOfMemory) {
  auto plan = RunOnce();
  for (uint64_t mib : {24, 12}) {
    Keeper keeper;
    Job job(mib * kMiB, With(&keeper, plan));
    job.device().SetFixed();
    Training training(&job);
    training.Weights();
    for (int i = 0; i < 6; ++i) training.Step();
    EXPECT_TRUE(mib == 12 || job.shares().front().Full()) << job.History();
    EXPECT_TRUE(job.shares().back().Full()) << job.History();
  }
}

// Random jobs on plans of other jobs, or of themselves, with deviations and a device that fails: Job checks every
// answer.
TEST(EngineSaved, AnyPlanIsSafe) {
  std::mt19937_64 random(TestSeed());
  const int layers[] = {4, 9, 20, 21};
  std::vector<std::shared_ptr<const SavedPlan>> plans;
  for (int k = 0; k < 3; ++k) plans.push_back(RunOnce(static_cast<int>(random() % 3), 12, layers[k]));
  auto maybe = [&](int odds) { return random() % static_cast<uint64_t>(odds) == 0; };
  uint64_t planned = 0;
  for (int round = 0; round < 80; ++round) {
    const size_t which = random() % 4;
    const SavedPlan& plan = *plans[maybe(3) ? random() % 3 : which % 3];
    Job job((maybe(4) ? 20 : 4096) * kMiB, With(nullptr, std::make_shared<SavedPlan>(plan)));
    std::vector<DeviceAddress> loose;
    auto noise = [&] {
      const size_t at = random() % plan.opening.units.size();
      for (size_t k = at; k < std::min(at + random() % 12, plan.opening.units.size()); ++k) {
        if (DeviceAddress address = job.TryAsk(plan.opening.units[k] * kBlockUnit)) loose.push_back(address);
      }
      std::shuffle(loose.begin(), loose.end(), random);
      while (loose.size() > 12) {
        job.Give(loose.back());
        loose.pop_back();
      }
    };
    Training training(&job, layers[which]);
    training.Weights(maybe(3) ? static_cast<int>(random() % 20) : 12);
    const auto any = [&] { return static_cast<int>(random() % 20); };
    for (int i = 0; i < 4; ++i) {
      Net::Change change;
      if (maybe(3)) change.insert_at = any();
      if (maybe(3)) change.grow_at = any();
      if (maybe(3)) change.shrink_at = any();
      if (maybe(3)) change.skip_at = any();
      if (maybe(3)) change.keep_at = any();
      if (maybe(3)) change.permute = &random;
      const int odds = maybe(2) ? 1 << 20 : 8;
      change.at = [&](int) {
        if (maybe(odds)) noise();
      };
      training.net.Step(change);
    }
    planned += job.engine().Stats().planned;
    job.Give(&loose);
  }
  EXPECT_GT(planned, 1000u);  // or nothing was tested
}

}  // namespace
}  // namespace hotpack
