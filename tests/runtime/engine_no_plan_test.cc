// hotpack_stats.no_plan_reason: why no request was served by a plan. (APlanThatDoesNotFit… of managed_spill_test,
// APlanWaitsForTheEndOfACapture of engine_test and engine_host_memory_test have the other reasons.)
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/job.h"

namespace hotpack {
namespace {

constexpr uint64_t kKiB = 1024;

uint64_t Reason(Job& job) { return job.engine().Stats().no_plan_reason; }

// `requests` blocks one after the other; which sizes they have depends on the step.
void Step(Job& job, uint64_t requests, uint64_t step = 0) {
  for (uint64_t k = 0; k < requests; ++k) job.Touch(kKiB * (1 + (k * 37 + step * step * 1013 + step * k * 7) % 4001));
}

TEST(NoPlan, TooShort) {
  Job job;
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_TOO_SHORT);
  Step(job, 40);
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_TOO_SHORT);
  job.engine().Mark();
  Step(job, 400);
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_TOO_SHORT) << "one mark does not end an iteration";
}

TEST(NoPlan, NothingRepeats) {
  Job job;
  for (uint64_t step = 1; step <= 10; ++step) Step(job, 30, step);
  job.engine().WaitPlan(-1);
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_NO_REPETITION);
}

// The planning of 20,000 blocks takes longer than the question.
TEST(NoPlan, NotReady) {
  FakeDeviceMemory device(uint64_t{16} << 30, 64 << 10);
  Engine engine(&device, EngineOptions());
  engine.Mark();
  std::vector<DeviceAddress> live;
  for (uint64_t k = 0; k < 20'000; ++k) {
    DeviceAddress address = 0;
    ASSERT_EQ(engine.Allocate(kKiB * (1 + k * 37 % 401), 0, &address), EngineStatus::kOk);
    live.push_back(address);
    if (k % 3 != 0) continue;
    engine.Release(live[k * 7919 % live.size()], 0);
    live[k * 7919 % (live.size())] = live.back();
    live.pop_back();
  }
  for (const DeviceAddress address : live) engine.Release(address, 0);
  engine.Mark();
  EXPECT_EQ(engine.Stats().no_plan_reason, HOTPACK_NO_PLAN_NOT_READY);
}

TEST(NoPlan, NotBegun) {
  Job job;
  job.engine().Mark();
  Step(job, 30);
  job.engine().Mark();
  job.engine().WaitPlan(-1);
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_NOT_BEGUN);
  Step(job, 30);
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_NONE);
}

TEST(NoPlan, IterationsDiffer) {
  EngineOptions options;
  options.envelopes = false;
  Job job(4096 * Job::kMiB, options);
  for (uint64_t step = 1; step <= 8; ++step) {
    job.engine().Mark();
    Step(job, 30 + 3 * step, step);
  }
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_DIFFERENT);
}

TEST(NoPlan, LeftToTheDriver) {
  Job job;
  for (uint64_t step = 1; step <= 10; ++step) Step(job, 30, step);
  job.engine().LeaveToDriver();
  EXPECT_EQ(Reason(job), HOTPACK_NO_PLAN_DRIVER_FASTER);
}

// In a process of its own, because an engine that has retired is never destroyed.
TEST(NoPlan, AContextThatEndsKeepsItsReason) {
  const auto reason = [] {
    Job job;
    Step(job, 40);
    job.engine().Retire();
    return static_cast<int>(Reason(job));
  };
  EXPECT_EXIT(_exit(reason()), testing::ExitedWithCode(HOTPACK_NO_PLAN_TOO_SHORT), "");
}

}  // namespace
}  // namespace hotpack
