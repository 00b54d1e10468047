// The planner's thread, and what a plan may learn.
#include "runtime/planning.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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

Profile Sizes(const std::vector<uint32_t>& units, uint32_t age) {
  Profile profile;
  for (uint32_t u : units) profile.blocks.push_back({u, age, age, true});
  profile.period = static_cast<uint32_t>(units.size());
  return profile;
}

bool Meets(const ScriptEntry& entry, uint32_t begin, uint32_t end) {
  return entry.offset < end && begin < entry.offset + entry.units;
}

TEST(MakeScript, NothingIsPutWhereWallsAre) {
  Kin kin;
  kin.walls = {{0, 50}, {120, 10}};
  auto script = MakeScript(Sizes({40, 60, 70, 30, 90}, 2), 1000, {}, 65536, 50'000'000, nullptr, kin);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->walls, kin.walls);
  for (uint32_t i = 0; i < script->size(); ++i) {
    ASSERT_NE(script->entries[i].offset, kNone);
    for (const ZonePlace& wall : kin.walls) {
      EXPECT_FALSE(Meets(script->entries[i], wall.offset, wall.offset + wall.units)) << i;
    }
  }
}

// A machine that is too busy for any solver to end in time: the published best-fit gets as long as it needs.
TEST(MakeScript, ThereIsAPlanHoweverShortTheTime) {
  auto script = MakeScript(Sizes(std::vector<uint32_t>(2000, 100), 10), 10'000, {}, 65536, 1, nullptr);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->height_bytes, 1000 * kUnitBytes);
}

// Two shapes that begin alike: what is live where they part has the same place in both.
TEST(MakeScript, ACommonHeadHasTheSamePlaces) {
  std::vector<uint32_t> units{300, 20, 500, 40, 80}, longer{300, 20, 500, 40, 60, 70, 90};
  auto one = MakeScript(Sizes(units, 5), 10'000, {}, 65536, 50'000'000, nullptr);
  ASSERT_NE(one, nullptr);
  Kin kin;
  kin.beside = one.get();
  auto other = MakeScript(Sizes(longer, 7), 10'000, {}, 65536, 50'000'000, nullptr, kin);
  ASSERT_NE(other, nullptr);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(one->entries[i].offset, other->entries[i].offset) << i;
}

// The same where the first requests differ, as those that have a batch's length do, or one comes before them; with holes
// beside the zone too, where that costs no chunk.
TEST(MakeScript, ACommonOpeningHasTheSamePlaces) {
  const std::vector<uint32_t> units{7, 300, 20, 500, 40, 80, 90}, longer{5, 6, 300, 20, 500, 40, 110, 60, 70, 90};
  const std::vector<std::vector<AddressRange>> spares{{}, {{1 << 20, 120 * kUnitBytes}}};
  for (const auto& spare : spares) {
    auto one = MakeScript(Sizes(units, 6), 10'000, {}, 512, 50'000'000, nullptr);
    ASSERT_NE(one, nullptr);
    Kin kin;
    kin.beside = one.get();
    auto other = MakeScript(Sizes(longer, 9), 10'000, spare, 512, 50'000'000, nullptr, kin);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->holes.empty(), spare.empty());
    for (uint32_t i = 1; i < 5; ++i) {
      EXPECT_EQ(one->entries[i].offset, other->entries[i + 1].offset - other->zone_offset) << i << " " << spare.size();
    }
  }
}

// Packed anew from the old placement: never higher where that still holds.
TEST(MakeScript, AnOldPlacementIsWhereItStarts) {
  Profile profile = Sizes({40, 60, 70, 30, 90, 10, 55}, 3);
  auto old = MakeScript(profile, 1000, {}, 512, 50'000'000, nullptr);
  ASSERT_NE(old, nullptr);
  Kin kin;
  kin.old = old.get();
  auto again = MakeScript(profile, 1000, {}, 512, 1, nullptr, kin);  // no time at all
  ASSERT_NE(again, nullptr);
  EXPECT_LE(again->height_bytes, old->height_bytes);
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

// What the poster still does before it waits is done before the job.
TEST(Planner, OnDemandAJobBeginsWhenSomebodyWaits) {
  std::atomic<int> jobs{0};
  Planner planner([&](const PlanJob&, const std::atomic<bool>*) { ++jobs; }, true);
  for (int job = 1; job <= 3; ++job) {
    ASSERT_TRUE(planner.Post({}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(jobs, job - 1);
    EXPECT_TRUE(planner.Busy());
    EXPECT_FALSE(planner.Post({}));
    EXPECT_TRUE(planner.WaitIdle(10'000));
    EXPECT_EQ(jobs, job);
  }
  ASSERT_TRUE(planner.Post({}));  // nobody waits for it: it is dropped with the planner
}

}  // namespace
}  // namespace hotpack
