// Plans from recorded requests, without an engine.
#include "runtime/script/plan_builder.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
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

TEST(ClampToKnownLoad, LivesThatWereSeenTogetherAreLearnt) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;  // now 300 together
  EXPECT_TRUE(ClampToKnownLoad(&learned, ByTurns(), 300));
  EXPECT_EQ(learned.blocks[0].age, 2u);
}

TEST(ClampToKnownLoad, LivesThatNeverWereTogetherAreNot) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;
  EXPECT_FALSE(ClampToKnownLoad(&learned, ByTurns(), 299));
  EXPECT_EQ(learned.blocks[0].age, 1u);
}

TEST(ClampToKnownLoad, SizesAreLearntAllTheSame) {
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;
  learned.blocks[1].units = 250;
  EXPECT_TRUE(ClampToKnownLoad(&learned, ByTurns(), 299));
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
  RelatedScripts related;
  related.reserved_ranges = {{0, 50}, {120, 10}};
  auto script = MakeScript(Sizes({40, 60, 70, 30, 90}, 2), 1000, {}, 65536, 50'000'000, nullptr, related);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->reserved_ranges, related.reserved_ranges);
  for (uint32_t i = 0; i < script->size(); ++i) {
    ASSERT_NE(script->entries[i].offset, kNone);
    for (const ZoneRange& wall : related.reserved_ranges) {
      EXPECT_FALSE(Meets(script->entries[i], wall.offset, wall.offset + wall.units)) << i;
    }
  }
}

// Requests of two streams by turns, of nearly the same size: two blocks of each stream are live at any moment.
Profile TwoStreams() {
  Profile profile;
  for (uint32_t i = 0; i < 40; ++i) {
    profile.blocks.push_back({.units = 100 + i * 7 % 5, .age = 4, .min_age = 4, .planned = true});
    profile.blocks.back().stream = static_cast<uint16_t>(1 + i % 2);
  }
  profile.period = 40;
  return profile;
}

TEST(MakeScript, StreamsAreKeptApartInTheSameChunks) {
  constexpr uint64_t kChunk = 65536;
  auto plain =
      MakeScript(TwoStreams(), 1000, {}, kChunk, 50'000'000, nullptr, {}, nullptr, kBlockUnit, {.avoid = false});
  auto apart =
      MakeScript(TwoStreams(), 1000, {}, kChunk, 50'000'000, nullptr, {}, nullptr, kBlockUnit, {.slack_percent = 0});
  ASSERT_TRUE(plain != nullptr && apart != nullptr);
  EXPECT_GT(plain->stream_edges, 0u);
  EXPECT_EQ(plain->avoided_stream_edges, 0u);
  EXPECT_GT(apart->avoided_stream_edges, 0u);
  EXPECT_LT(apart->stream_edges, plain->stream_edges);
  EXPECT_LE((apart->height_bytes + kChunk - 1) / kChunk, (plain->height_bytes + kChunk - 1) / kChunk);
}

// The script's own predecessors, found without the packer, make as many edges as the packer counted.
TEST(MakeScript, CountsTheEdgesOfItsPredecessors) {
  for (const bool avoid : {false, true}) {
    auto script = MakeScript(TwoStreams(), 1000, {}, 65536, 50'000'000, nullptr, {}, nullptr, kBlockUnit,
                             {.avoid = avoid, .slack_percent = 0});
    ASSERT_NE(script, nullptr);
    std::vector<std::set<uint16_t>> others(script->size());
    for (uint32_t i = 0; i < script->size(); ++i) {
      for (uint32_t k = script->entries[i].first_successor; k < script->entries[i + 1].first_successor; ++k) {
        const uint32_t next = script->successors[k];
        const uint16_t stream = script->profile.blocks[i].stream;
        if (stream != script->profile.blocks[next].stream) others[next].insert(stream);
      }
    }
    uint64_t edges = 0;
    for (const std::set<uint16_t>& streams : others) edges += streams.size();
    EXPECT_EQ(script->stream_edges, edges);
  }
}

// One chunk more keeps a small batch, released early, away from what is kept for long. It is taken only on request.
TEST(MakeScript, SlackIsTakenWhereItLeavesHalfOfTheEdges) {
  constexpr uint64_t kChunk = 65536;
  Profile profile;
  for (uint32_t i = 0; i < 40; ++i) {
    const bool batch = i % 5 == 0;
    const uint32_t age = batch ? 2 : 5 - i % 5;
    profile.blocks.push_back({.units = batch ? 100u : 3000 + i % 5 * 50, .age = age, .min_age = age, .planned = true});
    profile.blocks.back().stream = batch ? 2 : 1;
  }
  profile.period = 40;
  auto low = MakeScript(profile, 20000, {}, kChunk, 50'000'000, nullptr, {}, nullptr, kBlockUnit, {.slack_percent = 0});
  auto apart = MakeScript(profile, 20000, {}, kChunk, 50'000'000, nullptr);
  ASSERT_TRUE(low != nullptr && apart != nullptr);
  EXPECT_GT(low->stream_edges, 0u);
  EXPECT_EQ(apart->stream_edges, 0u);
  EXPECT_LE(apart->height_bytes, low->height_bytes + kChunk + low->height_bytes / 50);
}

TEST(MakeScript, WhereRequestsNameNoStreamTheyAreNotCounted) {
  Profile profile = TwoStreams();
  for (ProfileBlock& block : profile.blocks) block.stream = block.stream == 1 ? 0 : 7;
  auto script = MakeScript(profile, 1000, {}, 65536, 50'000'000, nullptr);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->stream_edges + script->avoided_stream_edges, 0u);
}

// A machine that is too busy for any solver to end in time: the published best-fit gets as long as it needs.
TEST(MakeScript, ThereIsAPlanHoweverShortTheTime) {
  auto script = MakeScript(Sizes(std::vector<uint32_t>(2000, 100), 10), 10'000, {}, 65536, 1, nullptr);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->height_bytes, 1000 * kBlockUnit);
}

// Two shapes that begin alike: blocks live where they part have the same place in both.
TEST(MakeScript, ACommonHeadHasTheSamePlaces) {
  std::vector<uint32_t> units{300, 20, 500, 40, 80}, longer{300, 20, 500, 40, 60, 70, 90};
  auto one = MakeScript(Sizes(units, 5), 10'000, {}, 65536, 50'000'000, nullptr);
  ASSERT_NE(one, nullptr);
  RelatedScripts related;
  related.sibling = one.get();
  auto other = MakeScript(Sizes(longer, 7), 10'000, {}, 65536, 50'000'000, nullptr, related);
  ASSERT_NE(other, nullptr);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(one->entries[i].offset, other->entries[i].offset) << i;
}

// The same if the first requests differ, as those that have a batch's length do, or if another one precedes them. Also
// with holes outside the zone, where that costs no chunk.
TEST(MakeScript, ACommonOpeningHasTheSamePlaces) {
  const std::vector<uint32_t> units{7, 300, 20, 500, 40, 80, 90}, longer{5, 6, 300, 20, 500, 40, 110, 60, 70, 90};
  const std::vector<std::vector<AddressRange>> spares{{}, {{1 << 20, 120 * kBlockUnit}}};
  for (const auto& fragments : spares) {
    auto one = MakeScript(Sizes(units, 6), 10'000, {}, 512, 50'000'000, nullptr);
    ASSERT_NE(one, nullptr);
    RelatedScripts related;
    related.sibling = one.get();
    auto other = MakeScript(Sizes(longer, 9), 10'000, fragments, 512, 50'000'000, nullptr, related);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->fragments.empty(), fragments.empty());
    for (uint32_t i = 1; i < 5; ++i) {
      EXPECT_EQ(one->entries[i].offset, other->entries[i + 1].offset - other->zone_offset)
          << i << " " << fragments.size();
    }
  }
}

// Packed again from the old placement: never higher where that still holds.
TEST(MakeScript, AnOldPlacementIsWhereItStarts) {
  Profile profile = Sizes({40, 60, 70, 30, 90, 10, 55}, 3);
  auto old = MakeScript(profile, 1000, {}, 512, 50'000'000, nullptr);
  ASSERT_NE(old, nullptr);
  RelatedScripts related;
  related.previous = old.get();
  auto again = MakeScript(profile, 1000, {}, 512, 1, nullptr, related);  // no time at all
  ASSERT_NE(again, nullptr);
  EXPECT_LE(again->height_bytes, old->height_bytes);
}

// --- from the history to the script, as PlanScheduler goes the way --------------------------------------------------

// A run of iterations of the given sizes, each block released `age` requests after it was asked for.
std::unique_ptr<History> Repeat(const std::vector<uint32_t>& sizes, uint32_t age, int iterations) {
  auto history = std::make_unique<History>(4096);
  for (int i = 0; i < iterations; ++i) {
    for (uint32_t units : sizes) {
      if (const uint64_t count = history->Count(); count >= age) history->Released(count - age);
      history->Append(units);
    }
  }
  return history;
}

const std::vector<uint32_t> kSizes{40, 60, 70, 30, 90, 10, 55};
const PlanSettings kSettings{.chunk_bytes = 65536, .time_limit_ns = 50'000'000};

PlanSnapshot Seen(uint64_t max_units) {
  PlanSnapshot snapshot;
  snapshot.max_units = max_units;
  return snapshot;
}

TEST(BuildScript, OfWhatRepeats) {
  const auto history = Repeat(kSizes, 3, 40);
  PlanJob job;
  job.end = history->Count();
  const std::optional<Profile> profile = FindProfile(*history, job);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, kSizes.size());
  const auto script = BuildScript(*profile, job, Seen(1000), kSettings, nullptr);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->size() % kSizes.size(), 0u);
  EXPECT_EQ(script->height_bytes, PeakUnits(*profile) * kBlockUnit);
}

TEST(BuildScript, NothingOfWhatDoesNotRepeat) {
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < 500; ++i) sizes.push_back(1 + i * i % 7919);
  const auto history = Repeat(sizes, 3, 1);
  PlanJob job;
  job.end = history->Count();
  EXPECT_FALSE(FindProfile(*history, job).has_value());
}

TEST(BuildScript, AMarkedIterationNeedsNoRepetition) {
  const auto history = Repeat(kSizes, 3, 1);
  PlanJob job;
  job.end = history->Count();
  job.period = kSizes.size();
  const std::optional<Profile> profile = FindProfile(*history, job);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->period, kSizes.size());
  job.period = kSizes.size() + 1;  // longer than the history
  EXPECT_FALSE(FindProfile(*history, job).has_value());
}

TEST(BuildScript, TheKnownIterationIsNoNews) {
  const auto history = Repeat(kSizes, 3, 40);
  PlanJob job;
  job.end = history->Count();
  job.known = BuildScript(*FindProfile(*history, job), job, Seen(1000), kSettings, nullptr);
  ASSERT_NE(job.known, nullptr);
  EXPECT_FALSE(FindProfile(*history, job).has_value());
  job.replace = true;
  EXPECT_TRUE(FindProfile(*history, job).has_value());
}

// A profile is replanned only if there is a gain, or on request.
TEST(BuildScript, NothingLearntIsNoScript) {
  PlanJob job;
  const auto known = BuildScript(ByTurns(), job, Seen(200), kSettings, nullptr);
  ASSERT_NE(known, nullptr);
  Profile learned = ByTurns();
  learned.blocks[0].age = 2;  // 300 together, far above any earlier live peak
  job.profile = learned;
  job.known = known;
  const PlanSettings small{.chunk_bytes = 512, .time_limit_ns = 50'000'000};
  EXPECT_EQ(BuildScript(learned, job, Seen(200), small, nullptr), nullptr);
  job.replace = true;
  EXPECT_NE(BuildScript(learned, job, Seen(200), small, nullptr), nullptr);
  job.replace = false;
  EXPECT_NE(BuildScript(learned, job, Seen(300), small, nullptr), nullptr);
}

// Blocks live where two scripts of the job part keep their places.
TEST(BuildScript, LikeTheScriptThatHasMostInCommon) {
  const std::vector<uint32_t> units{300, 20, 500, 40, 80}, longer{300, 20, 500, 40, 60, 70, 90};
  PlanSnapshot snapshot = Seen(10'000);
  snapshot.scripts = {BuildShapeScript(Sizes({9, 8, 7}, 2), snapshot, kSettings, nullptr),
                      BuildShapeScript(Sizes(units, 5), snapshot, kSettings, nullptr)};
  const auto one = snapshot.scripts[1], other = BuildShapeScript(Sizes(longer, 7), snapshot, kSettings, nullptr);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(one->entries[i].offset, other->entries[i].offset) << i;
}

// By work in place of time the plan is the same each time (HOTPACK_WAIT_PLAN=1).
TEST(BuildScript, InLogicalTimeTheSameEachTime) {
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < 300; ++i) units.push_back(1 + i * 7919 % 97);
  const PlanSettings logical{.chunk_bytes = 512, .time_limit_ns = 200'000, .logical_time = true};
  const auto once = BuildShapeScript(Sizes(units, 40), Seen(10'000), logical, nullptr);
  ASSERT_NE(once, nullptr);
  for (int turn = 0; turn < 3; ++turn) {
    const auto again = BuildShapeScript(Sizes(units, 40), Seen(10'000), logical, nullptr);
    ASSERT_NE(again, nullptr);
    for (uint32_t i = 0; i < once->size(); ++i) ASSERT_EQ(once->entries[i].offset, again->entries[i].offset) << i;
  }
}

}  // namespace
}  // namespace hotpack
