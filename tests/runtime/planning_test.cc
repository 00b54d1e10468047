// The planner's thread, and what a plan may learn.
#include "runtime/planning.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hotpack {
namespace {

// Two requests of 100 and 200 units, each released before the other comes: the load is 200.
Profile ByTurns() {
  Profile profile;
  profile.blocks = {{.units = 100, .age = 1, .min_age = 1, .planned = true},
                    {.units = 200, .age = 1, .min_age = 1, .planned = true}};
  profile.period = 2;
  return profile;
}

TEST(KeepNearLoad, LivesThatWereSeenTogetherAreLearnt) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;  // now 300 together
  EXPECT_TRUE(KeepNearLoad(&learned, ByTurns(), 300));
  EXPECT_EQ(learned.blocks[0].age, 2u);
}

TEST(KeepNearLoad, LivesThatNeverWereTogetherAreNot) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;
  EXPECT_FALSE(KeepNearLoad(&learned, ByTurns(), 299));
  EXPECT_EQ(learned.blocks[0].age, 1u);
}

TEST(KeepNearLoad, SizesAreLearntAllTheSame) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;
  learned.blocks[1].units = 250;
  EXPECT_TRUE(KeepNearLoad(&learned, ByTurns(), 299));
  EXPECT_EQ(learned.blocks[0].age, 1u);
  EXPECT_EQ(learned.blocks[1].units, 250u);
}

// A job told to hurry ends with what it has; the next one is not cut short by that.
TEST(Planner, HurryEndsTheJobUnderWayAlone) {
  std::atomic<bool> started{false}, hurried_next{false};
  std::atomic<int> jobs{0};
  Planner planner([&](const PlanJob&, const std::atomic<bool>* cancel) {
    if (jobs++ > 0) {
      hurried_next = cancel->load();
      return;
    }
    started = true;
    while (!cancel->load()) std::this_thread::yield();
  });
  planner.Hurry();  // nothing is under way
  ASSERT_TRUE(planner.Post({}));
  while (!started) std::this_thread::yield();
  EXPECT_FALSE(planner.WaitIdle(20));
  planner.Hurry();
  EXPECT_TRUE(planner.WaitIdle(10'000));
  ASSERT_TRUE(planner.Post({}));
  EXPECT_TRUE(planner.WaitIdle(10'000));
  EXPECT_EQ(jobs, 2);
  EXPECT_FALSE(hurried_next);
}

}  // namespace
}  // namespace hotpack
