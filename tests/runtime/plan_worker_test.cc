// The thread on which plans are made.
#include "runtime/script/plan_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hotpack {
namespace {

// A job that must finish early ends with its result so far. The next one is not cut short by that.
TEST(PlanWorker, HurryEndsTheJobUnderWayAlone) {
  std::atomic<bool> started{false}, hurried_next{false};
  std::atomic<int> jobs{0};
  PlanWorker worker([&](const PlanJob&, const std::atomic<bool>* cancel) {
    if (jobs++ > 0) {
      hurried_next = cancel->load();
      return;
    }
    started = true;
    while (!cancel->load()) std::this_thread::yield();
  });
  worker.FinishEarly();  // nothing is under way
  ASSERT_TRUE(worker.Post({}));
  while (!started) std::this_thread::yield();
  EXPECT_FALSE(worker.WaitIdle(20));
  worker.FinishEarly();
  EXPECT_TRUE(worker.WaitIdle(10'000));
  ASSERT_TRUE(worker.Post({}));
  EXPECT_TRUE(worker.WaitIdle(10'000));
  EXPECT_EQ(jobs, 2);
  EXPECT_FALSE(hurried_next);
}

// Work of the poster before its wait is done before the job.
TEST(PlanWorker, OnDemandAJobBeginsWhenSomebodyWaits) {
  std::atomic<int> jobs{0};
  PlanWorker worker([&](const PlanJob&, const std::atomic<bool>*) { ++jobs; }, true);
  for (int job = 1; job <= 3; ++job) {
    ASSERT_TRUE(worker.Post({}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(jobs, job - 1);
    EXPECT_TRUE(worker.Busy());
    EXPECT_FALSE(worker.Post({}));
    EXPECT_TRUE(worker.WaitIdle(10'000));
    EXPECT_EQ(jobs, job);
  }
  ASSERT_TRUE(worker.Post({}));  // not waited for: it is dropped with the planner
}

}  // namespace
}  // namespace hotpack
