// What an engine saves for the next run, and when.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "packer/validator.h"
#include "runtime/persist/plan_file.h"
#include "tests/runtime/job.h"
#include "tests/runtime/saved_job.h"

namespace hotpack {
namespace {

TEST(EngineSaving, IsSavedOnceItIsSteadyAndAtTheEnd) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  Training training(&job);
  training.Weights();
  while (job.engine().Stats().steady_iteration < 0 && job.shares().size() < 10) training.Step();
  job.engine().WaitPlan(-1);
  EXPECT_EQ(keeper.saves(), 1) << job.History();  // a job that is killed from here on has its plan
  for (int i = 0; i < 5; ++i) training.Step();
  job.engine().Finish();
  EXPECT_EQ(keeper.saves(), 1);
}

TEST(EngineSaving, APlanThatWasNeverTakenUpIsSavedAtTheEnd) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  Training training(&job);
  training.Weights();
  Net::Change change;
  change.at = [&](int) {
    job.engine().WaitPlan(-1);
    if (job.engine().PlanToSave() != nullptr && job.engine().Stats().planned == 0) job.engine().Finish();
  };
  for (int i = 0; i < 3; ++i) job.Play([&] { training.net.Step(change); });
  ASSERT_GE(keeper.saves(), 1);
  ASSERT_NE(keeper.plan(), nullptr);
  Job next(4096 * kMiB, With(nullptr, keeper.plan()));
  Training again(&next);
  again.Weights();
  EXPECT_TRUE(again.Step().Full()) << next.History();
}

TEST(EngineSaving, WithoutAPlanNothingIsSaved) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  EXPECT_EQ(job.engine().PlanToSave(), nullptr);
  job.Touch(1000);
  job.engine().Finish();
  EXPECT_EQ(keeper.saves(), 0);
}

TEST(EngineSaving, ImprovementsAreSaved) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper, RunOnce()));
  Training training(&job);
  training.Weights();
  training.Step();
  for (int i = 0; i < 12; ++i) {
    job.Play([&] { training.net.Step({.grow_at = 4, .grow_bytes = 900 << 10}); });
  }
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  EXPECT_GE(keeper.saves(), 1);
  EXPECT_LE(keeper.saves(), 4);
  job.engine().Finish();
  Job next(4096 * kMiB, With(nullptr, keeper.plan()));
  Training again(&next);
  again.Weights();
  again.Step();
  EXPECT_TRUE(next.Play([&] { again.net.Step({.grow_at = 4, .grow_bytes = 900 << 10}); }).Full()) << next.History();
}

TEST(EngineSaving, AForkedChildSavesNothing) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  Training training(&job);
  training.Weights();
  for (int i = 0; i < 3; ++i) training.Step();
  job.engine().WaitPlan(-1);
  job.engine().AbandonAfterFork();
  job.engine().Finish();
  EXPECT_EQ(job.engine().PlanToSave(), nullptr);
  EXPECT_EQ(keeper.saves(), 0);
}

// Memory outside the zone belongs to one run.
TEST(EngineSaving, PlansWithHolesAreSavedWithout) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  Training training(&job, 20, 4);
  training.Weights(40);
  training.FirstStep(2);
  for (int i = 0; i < 8; ++i) training.Step();
  ASSERT_TRUE(job.shares().back().Full()) << job.History();
  auto plan = job.engine().PlanToSave();
  ASSERT_NE(plan, nullptr);
  const Script& script = *plan->scripts[0];
  EXPECT_TRUE(script.fragments.empty());
  EXPECT_EQ(script.zone_offset, 0u);
  EXPECT_LE(script.height_bytes, script.lower_bound_bytes * 105 / 100);
  Job next(4096 * kMiB, With(nullptr, plan));
  Training again(&next, 20, 4);
  again.Weights(40);
  const Job::Share first = again.FirstStep(2);
  EXPECT_EQ(first.requests - first.planned, 40u);
}

}  // namespace
}  // namespace hotpack
