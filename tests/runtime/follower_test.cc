#include "runtime/script/follower.h"

#include "tests/runtime/follower_sim.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

using Outcome = Follower::Outcome;

// Eight requests, one after the other, in two places by turns; sizes tell them apart.
//
//   offset ▲    ┌─┐   ┌─┐   ┌─┐   ┌─┐
//       10 │    │1│   │3│   │5│   │7│
//        0 │ ┌─┐└─┘┌─┐└─┘┌─┐└─┘┌─┐└─┘
//          │ │0│   │2│   │4│   │6│
//          └─┴─┴───┴─┴───┴─┴───┴─┴───
std::shared_ptr<const Script> Turns() {
  std::vector<TestBlock> blocks;
  for (uint32_t i = 0; i < 8; ++i) blocks.push_back({i + 1, 1, i % 2 ? 10u : 0u});
  return ScriptOf(blocks);
}

TEST(Follower, ServesAnIterationAgainAndAgain) {
  FollowerSim sim(Turns(), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sim.PlayIteration(), 0u);
  EXPECT_EQ(sim.follower().divergences(), 0u);
  EXPECT_FALSE(sim.follower().learned());
}

TEST(Follower, StartsAtAnyPosition) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 100; ++round) {
    uint32_t n = 1 + random() % 20;
    auto script = RandomScript(random, n, 1000);
    for (uint32_t position = 0; position < n; ++position) {
      FollowerSim sim(script, position);
      EXPECT_EQ(sim.PlayFrom(position), 0u);
      EXPECT_EQ(sim.PlayIteration(), 0u);
      EXPECT_EQ(sim.PlayIteration(), 0u);
    }
  }
}

TEST(Follower, CountsIterations) {
  auto script = Turns();
  Follower follower;
  follower.Start(script, 6, 0, 0);
  History history(64);
  for (uint32_t i = 0; i < 8; ++i) {
    if (script->entries[i].offset != kNone) follower.SetMapped(i);
  }
  for (uint32_t i = 6; i < 24; ++i) {
    uint32_t units = i % 8 + 1, offset = 0;
    ASSERT_TRUE(follower.TryNext(units, history.Append(units), &offset));
    follower.Release(follower.LiveAt(offset));
  }
  EXPECT_TRUE(follower.ended());
  EXPECT_EQ(follower.TakeEnded(), 3u);
  EXPECT_FALSE(follower.ended());
}

TEST(Follower, EntriesWithoutPagesAreClaimedAsSuch) {
  FollowerSim sim(Turns(), 0, /*map_all=*/false);
  EXPECT_EQ(sim.follower().UnmappedEntries(), 8u);
  EXPECT_EQ(sim.Ask(1, 1), Outcome::kUnmapped);
  EXPECT_EQ(sim.follower().UnmappedEntries(), 7u);
  EXPECT_EQ(sim.PlayFrom(1), 0u);
  EXPECT_EQ(sim.follower().UnmappedEntries(), 0u);
  sim.follower().SetUnmapped(10, 11);  // what lies at 10: the odd ones
  EXPECT_EQ(sim.follower().UnmappedEntries(), 4u);
  EXPECT_EQ(sim.Ask(1, 1), Outcome::kPlanned);
  EXPECT_EQ(sim.Ask(2, 1), Outcome::kUnmapped);
}

// A late release displaces what overlaps, and nothing else; when it comes, all is as before.
TEST(Follower, ALateReleaseDisplacesOnlyWhatOverlaps) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  EXPECT_EQ(sim.Ask(1, 100), Outcome::kPlanned);  // entry 0 stays for long
  for (uint32_t i = 1; i < 8; ++i) EXPECT_EQ(sim.Ask(i + 1, 1), i % 2 ? Outcome::kPlanned : Outcome::kDisplaced);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(sim.Ask(i + 1, 1), i % 2 ? Outcome::kPlanned : Outcome::kDisplaced);
  sim.ReleaseDue();
  ASSERT_EQ(sim.live().size(), 1u);
  sim.Release(0);
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, ManyGhostsEndAtOnce) {
  FollowerSim sim(Turns(), 0);
  EXPECT_EQ(sim.Ask(1, 100000), Outcome::kPlanned);
  sim.PlayFrom(1);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sim.PlayIteration(), 4u);
  for (size_t k = 0; k < sim.live().size(); ++k) {
    if (sim.live()[k].due > 10000) {
      sim.Release(k);
      break;
    }
  }
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, OneRequestMissing) {
  for (uint32_t missing = 0; missing < 8; ++missing) {
    FollowerSim sim(Turns(), 0);
    sim.PlayIteration();
    for (uint32_t i = 0; i < 8; ++i) {
      if (i == missing) continue;
      EXPECT_TRUE(sim.PlayEntry(i)) << i << " while " << missing << " is missing";
    }
    EXPECT_EQ(sim.PlayIteration(), 0u);
    EXPECT_EQ(sim.follower().divergences(), 1u);
  }
}

TEST(Follower, SeveralRequestsMissing) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  EXPECT_TRUE(sim.PlayEntry(0));
  EXPECT_TRUE(sim.PlayEntry(6));
  EXPECT_TRUE(sim.PlayEntry(7));
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, OneRequestInserted) {
  for (uint32_t place = 0; place < 8; ++place) {
    FollowerSim sim(Turns(), 0);
    sim.PlayIteration();
    for (uint32_t i = 0; i < 8; ++i) {
      if (i == place) {
        EXPECT_EQ(sim.Ask(99, 3), Outcome::kOffScript);
      }
      EXPECT_TRUE(sim.PlayEntry(i)) << i;
    }
    EXPECT_EQ(sim.PlayIteration(), 0u);
  }
}

// For ever: each is one divergence, and the follower does not give up.
TEST(Follower, OneRequestInsertedNowAndThen) {
  FollowerSim sim(Turns(), 0);
  uint32_t missed = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 == 9) {
      EXPECT_EQ(sim.Ask(99, 3), Outcome::kOffScript);
    }
    missed += sim.PlayIteration();
    EXPECT_FALSE(sim.follower().lost()) << i;
  }
  EXPECT_EQ(missed, 0u);
  EXPECT_EQ(sim.follower().divergences(), 100u);
}

TEST(Follower, OneRequestLarger) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  EXPECT_TRUE(sim.PlayEntry(0));
  EXPECT_EQ(sim.Ask(77, 1), Outcome::kOffScript);  // instead of entry 1
  EXPECT_EQ(sim.PlayFrom(2), 0u);
  EXPECT_TRUE(sim.follower().learned());
  EXPECT_EQ(sim.follower().LearnedProfile().blocks[1].units, 77u);
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, OneRequestALittleSmallerIsServedInPlace) {
  auto script = ScriptOf({{100, 1, 0}, {90, 1, 100}, {80, 1, 0}});
  FollowerSim sim(script, 0);
  sim.PlayIteration();
  EXPECT_EQ(sim.Ask(97, 1), Outcome::kPlanned);
  EXPECT_EQ(sim.last().entry, 0u);
  EXPECT_EQ(sim.PlayFrom(1), 0u);
  EXPECT_EQ(sim.PlayIteration(), 0u);
  EXPECT_FALSE(sim.follower().learned());
}

TEST(Follower, TwoRequestsSwapped) {
  for (uint32_t i = 0; i + 1 < 8; ++i) {
    FollowerSim sim(Turns(), 0);
    sim.PlayIteration();
    for (uint32_t k = 0; k < i; ++k) EXPECT_TRUE(sim.PlayEntry(k));
    sim.PlayEntry(i + 1);
    sim.PlayEntry(i);
    EXPECT_EQ(sim.PlayFrom(i + 2), 0u) << i;
    EXPECT_EQ(sim.PlayIteration(), 0u) << i;
  }
}

// Something else for a while, then on in the middle of the iteration.
TEST(Follower, FindsItsPlaceAgain) {
  std::vector<TestBlock> blocks;
  for (uint32_t i = 0; i < 300; ++i) blocks.push_back({1 + i * i * 7 % 1009, 1, 0});
  FollowerSim sim(ScriptOf(blocks), 0);
  sim.PlayIteration();
  for (uint32_t i = 0; i < 50; ++i) EXPECT_TRUE(sim.PlayEntry(i));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sim.Ask(2000 + i % 7, 1), Outcome::kOffScript);
  EXPECT_TRUE(sim.follower().lost());
  uint32_t missed = sim.PlayFrom(200);
  EXPECT_LE(missed, Script::kContext);
  EXPECT_FALSE(sim.follower().lost());
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, AForeignBlockIsWaitedFor) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  sim.ReleaseDue();
  sim.follower().AddForeign(12, 14);  // over the entries 3, 5 and 7; entry 1 has only 2 units at 10
  for (uint32_t i = 0; i < 8; ++i) {
    Outcome expected = i == 3 || i == 5 || i == 7 ? Outcome::kDisplaced : Outcome::kPlanned;
    EXPECT_EQ(sim.Ask(i + 1, 1), expected) << i;
  }
  sim.follower().RemoveForeign(12, 14);
  EXPECT_EQ(sim.PlayIteration(), 0u);
  sim.follower().RemoveForeign(1, 2);  // nothing there: nothing happens
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

// A turn that is not taken needs no place: a block put there meanwhile does not hold it up.
TEST(Follower, GhostsDoNotWaitForForeignBlocks) {
  FollowerSim sim(Turns(), 0);
  EXPECT_EQ(sim.Ask(1, 100), Outcome::kPlanned);  // entry 0 is released late, the next at its place are displaced
  for (uint32_t i = 1; i < 8; ++i) sim.PlayEntry(i);
  sim.follower().AddForeign(1, 8);  // ... to where entries 2, 4 and 6 lie, next to entry 0
  for (size_t k = 0; k < sim.live().size(); ++k) {
    if (sim.live()[k].entry == 0) {
      sim.Release(k);
      break;
    }
  }
  EXPECT_TRUE(sim.PlayEntry(0));  // only its own place matters
  EXPECT_TRUE(sim.PlayEntry(1));
  EXPECT_FALSE(sim.PlayEntry(2));
  sim.follower().RemoveForeign(1, 8);
  EXPECT_EQ(sim.PlayFrom(3), 0u);
}

TEST(Follower, HolesAreFreeForAsLongAsAsked) {
  FollowerSim sim(Turns(), 0);
  EXPECT_TRUE(sim.PlayEntry(0));
  // At 0 lives entry 0; from 10 on entry 1 comes next, entry 7 needs [10, 18).
  EXPECT_EQ(sim.follower().FindIdleRange(4, 1, 18, {}), 12u);    // the smaller of [1, 10) and [12, 18)
  EXPECT_EQ(sim.follower().FindIdleRange(4, 8, 18, {}), kNone);  // each unit is needed within an iteration
  EXPECT_EQ(sim.follower().FindIdleRange(7, 1, 18, {}), 1u);
  EXPECT_EQ(sim.follower().FindIdleRange(100, 1, 18, {}), kNone);
  EXPECT_EQ(sim.follower().FindIdleRange(4, 1, 18, {{14, 18, kNone}}), 1u);  // there are no pages
  EXPECT_EQ(sim.follower().FindIdleRange(4, 1, 18, {{4, 14, kNone}}), 14u);
  EXPECT_TRUE(sim.PutIntoHole(2, 1, 1));
  EXPECT_EQ(sim.PlayFrom(1), 0u);
}

// Lives are known from the cursor's place. One that is much longer than known must be seen twice.
TEST(Follower, LearnsLives) {
  std::vector<TestBlock> blocks;
  for (uint32_t i = 0; i < 40; ++i) blocks.push_back({i + 1, 1, 100 * i});
  FollowerSim sim(ScriptOf(blocks), 0);
  Follower& follower = sim.follower();
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (uint32_t i = 0; i < 3; ++i) sim.PlayEntry(i);
    follower.NoteAge(2, 1);
    for (uint32_t i = 3; i < 30; ++i) sim.PlayEntry(i);
    EXPECT_FALSE(follower.learned());
    follower.NoteAge(2, 28);
    sim.PlayFrom(30);
  }
  EXPECT_TRUE(follower.learned());
  EXPECT_EQ(follower.LearnedProfile().blocks[2].age, 28u);
  EXPECT_EQ(follower.LearnedProfile().blocks[2].min_age, 1u);
  EXPECT_EQ(follower.LearnedProfile().blocks[3].age, 1u);
}

TEST(Follower, LearnsALittleLongerLifeAtOnce) {
  FollowerSim sim(Turns(), 0);
  for (uint32_t i = 0; i < 5; ++i) sim.PlayEntry(i);
  sim.follower().NoteAge(2, 3);
  EXPECT_TRUE(sim.follower().learned());
  EXPECT_EQ(sim.follower().LearnedProfile().blocks[2].age, 3u);
}

TEST(Follower, InsertedRequestsDoNotMakeLivesLonger) {
  FollowerSim sim(Turns(), 0);
  for (int iteration = 0; iteration < 4; ++iteration) {
    sim.PlayEntry(0);
    sim.Ask(99, 1);
    sim.follower().NoteAge(0, 2);  // met the request 99
    sim.PlayFrom(1);
  }
  EXPECT_FALSE(sim.follower().learned());
}

// One release that is very late (a tensor kept over an evaluation) is no reason never to plan the block again.
TEST(Follower, ALifeLongerThanTheCycleIsNotLearnt) {
  FollowerSim sim(Turns(), 0);
  sim.PlayEntry(0);
  sim.PlayEntry(1);
  for (int i = 0; i < 3; ++i) sim.follower().NoteAge(1, 17);
  EXPECT_FALSE(sim.follower().learned());
  EXPECT_TRUE(sim.follower().LearnedProfile().blocks[1].planned);
}

TEST(Follower, SkipTo) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  sim.PlayEntry(0);
  sim.PlayEntry(1);
  sim.ReleaseDue();
  sim.follower().SkipTo(5);
  EXPECT_EQ(sim.follower().cursor(), 5u);
  EXPECT_EQ(sim.PlayFrom(5), 0u);
  sim.ReleaseDue();
  sim.follower().SkipTo(0);
  EXPECT_EQ(sim.PlayIteration(), 0u);
}

TEST(Follower, StopLeavesNothingBehind) {
  FollowerSim sim(Turns(), 0);
  sim.PlayIteration();
  sim.follower().NoteAge(3, 5);
  sim.follower().NoteAge(3, 5);
  ASSERT_TRUE(sim.follower().learned());
  sim.follower().Stop();
  EXPECT_FALSE(sim.follower().active());
  EXPECT_FALSE(sim.follower().ended());
  EXPECT_FALSE(sim.follower().learned());
  EXPECT_TRUE(sim.follower().LiveRanges().empty());
  EXPECT_EQ(sim.follower().LiveAt(0), kNone);
}

// Any order of requests and releases, any deviation: never two live at one address; after it, all is planned again
// within two iterations as a rule, within four at the latest.
class FollowerRandom : public ::testing::TestWithParam<uint32_t> {  // kinds of sizes
 protected:
  int misses_ = 0, episodes_ = 0;
};

TEST_P(FollowerRandom, NeverTwoAtOneAddress) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 150; ++round) {
    uint32_t n = 4 + random() % 60;
    auto script = RandomScript(random, n, GetParam());
    FollowerSim sim(script, 0);
    const std::vector<ProfileBlock>& blocks = script->profile.blocks;
    for (int episode = 0; episode < 4; ++episode) {
      uint64_t wildness = 2 + random() % 30;  // one request in so many deviates
      for (int iteration = 0; iteration < 3; ++iteration) {
        for (uint32_t i = 0; i < n; ++i) {
          uint64_t age = blocks[i].planned ? blocks[i].age : 2;
          switch (random() % wildness) {
            case 0: {
              uint64_t kind = random() % 7;
              if (kind == 0) continue;                                      // missing
              if (kind == 1) sim.Ask(1 + random() % 40, 1 + random() % n);  // inserted
              if (kind == 2) age = 1 + random() % (2 * n);                  // released early or late
              if (kind == 3) {                                              // another size
                sim.Ask(1 + random() % 40, age);
                continue;
              }
              if (kind == 4 && i + 1 < n) {  // swapped
                sim.Ask(blocks[i + 1].units, 1 + random() % n);
                sim.Ask(blocks[i].units, age);
                ++i;
                continue;
              }
              if (kind == 5) i = static_cast<uint32_t>(random() % n);  // a jump
              if (kind == 6) sim.PutIntoHole(1 + random() % 6, 1 + random() % n, 1 + random() % n);
              if (!sim.live().empty() && random() % 3 == 0) sim.Release(random() % sim.live().size());
              break;
            }
            default:
              break;
          }
          sim.Ask(blocks[i].units, age);
          if (::testing::Test::HasFailure()) GTEST_FAIL() << "round " << round;
        }
      }
      // The disturbance ends: whatever it left behind is released by the end of the first iteration.
      for (auto& block : sim.live()) {
        if (block.due > sim.last().id + n) block.due = sim.last().id + n;
      }
      sim.PlayIteration();
      sim.PlayIteration();
      bool late = sim.PlayIteration() != 0;
      misses_ += late;
      if (late) {
        sim.PlayIteration();
        EXPECT_EQ(sim.PlayIteration(), 0u) << "round " << round;
      }
      ++episodes_;
    }
  }
  std::printf("%u kinds of sizes: not fully planned again: %d of %d\n", GetParam(), misses_, episodes_);
  RecordProperty("episodes", episodes_);
  EXPECT_LE(misses_ * 50, episodes_);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FollowerRandom, ::testing::Values(2u, 4u, 12u, 1000u));

}  // namespace
}  // namespace hotpack
