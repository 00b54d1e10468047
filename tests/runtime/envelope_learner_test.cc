// Placements of envelopes: their height, their pages, the credit for them.
#include "runtime/script/envelope_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tests/runtime/envelope_steps.h"

namespace hotpack {
namespace {

using hotpack_test::EnvelopeJob;
using hotpack_test::Layers;
using hotpack_test::PlayStep;

// One iteration: calls play(job).
template <typename Play>
std::vector<uint32_t> Learn(EnvelopeLearner* learner, EnvelopeJob* job, Play play) {
  play(job);
  return job->End(learner);
}

// The same iteration twice. Returns the entries of its requests.
template <typename Play>
std::vector<uint32_t> LearnTwice(EnvelopeLearner* learner, Play play) {
  EnvelopeJob job;
  Learn(learner, &job, play);
  return Learn(learner, &job, play);
}

uint32_t OffsetOf(const EnvelopeLearner& learner, uint32_t entry) {
  const EnvelopePlace* place = learner.places()->Find(entry);
  return place == nullptr ? kNone : place->offsets[0];
}

TEST(EnvelopeLearner, WithoutTimeForThePackerNothingIsStacked) {
  EnvelopeSettings settings;
  settings.pack_ns = 0;
  EnvelopeLearner learner(settings);
  EnvelopeJob job;
  for (int i = 0; i < 3; ++i) Learn(&learner, &job, [&](EnvelopeJob* each) { PlayStep(Layers{40, 100}, each); });
  learner.Place();
  EXPECT_LE(learner.places()->zone_units, learner.places()->load_units * 11 / 10 + 4096);
}

// Two blocks that were never live together may share memory, until a request finds the other one's block at its place.
TEST(EnvelopeLearner, WhatMetKeepsApart) {
  EnvelopeSettings settings;
  settings.height_cost = 2;
  settings.chunks_cost = 2;
  EnvelopeLearner learner(settings);
  EnvelopeJob job;
  const auto step = [](EnvelopeJob* each) {
    for (const uint32_t units : {3000u, 2000u}) each->Release(each->Request(units));
  };
  Learn(&learner, &job, step);
  const std::vector<uint32_t> entries = Learn(&learner, &job, step);
  learner.Place();
  EXPECT_EQ(OffsetOf(learner, entries[0]), OffsetOf(learner, entries[1]));
  EXPECT_FALSE(learner.changed());
  learner.Met(entries[0], entries[0]);
  learner.Met(entries[0], 1000);
  EXPECT_FALSE(learner.changed()) << "no pair of entries";
  learner.Met(entries[0], entries[1]);
  EXPECT_TRUE(learner.changed());
  learner.Place();
  EXPECT_NE(OffsetOf(learner, entries[0]), OffsetOf(learner, entries[1]));
}

constexpr uint32_t kChunkUnits = 4096;

void SmallBetweenLarge(EnvelopeJob* job) {
  std::vector<uint64_t> small, large;
  for (uint32_t k = 0; k < 12; ++k) {
    large.push_back(job->Request(kChunkUnits + 300 + k));
    small.push_back(job->Request(40 + k));
  }
  for (const uint64_t block : large) job->Release(block);
  job->Request(7);
  for (const uint64_t block : small) job->Release(block);
}

// So blocks that turn out smaller lie on each other, without gaps.
TEST(EnvelopeLearner, WhatIsRequestedFirstLiesLowest) {
  EnvelopeLearner learner({});
  const std::vector<uint32_t> entries = LearnTwice(&learner, [](EnvelopeJob* job) {
    std::vector<uint64_t> live;
    for (const uint32_t units : {5000u, 9000u, 6000u, 12'000u, 7000u}) live.push_back(job->Request(units));
    for (const uint64_t block : live) job->Release(block);
  });
  learner.Place();
  uint32_t at = 0;
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(OffsetOf(learner, entries[k]), at) << k;
    at += learner.places()->Find(entries[k])->room;
  }
}

// By first fit in the sequence, the fourth block would lie on the third: the second one's place is too small for it.
TEST(EnvelopeLearner, ThePackersPlacementIsTakenIfTheOthersAreHigher) {
  for (const bool improve : {true, false}) {
    EnvelopeSettings settings;
    if (!improve) settings.compared_pairs = 0;
    EnvelopeLearner learner(settings);
    LearnTwice(&learner, [](EnvelopeJob* job) {
      job->Release(job->Request(155'000));
      const uint64_t second = job->Request(49'000), third = job->Request(100'000);
      job->Release(second);
      const uint64_t fourth = job->Request(50'000);
      for (const uint64_t block : {third, fourth}) job->Release(block);
    });
    learner.Place();
    EXPECT_EQ(learner.places()->load_units, 155'000u);
    EXPECT_LE(learner.places()->zone_units, 155'000u * 21 / 20 + kChunkUnits) << improve;
  }
}

// They are held anyway: each chunk of the zone that is not used for that is saved, however high the zone is.
TEST(EnvelopeLearner, FragmentsAreUsedIfThatSavesChunks) {
  for (const uint32_t units : {3500u, 400u}) {
    EnvelopeLearner learner({});
    const std::vector<uint32_t> entries = LearnTwice(&learner, [](EnvelopeJob* job) {
      std::vector<uint64_t> live;
      for (int k = 0; k < 6; ++k) live.push_back(job->Request(500 + k));
      for (const uint64_t block : live) job->Release(block);
    });
    const std::vector<AddressRange> fragments = {{0x7000000000, uint64_t{units} * kBlockUnit}};
    learner.Place(&fragments);
    EXPECT_EQ(learner.places()->fragments.size(), units == 3500 ? 1u : 0u);
    for (const uint32_t entry : entries) {
      EXPECT_EQ(OffsetOf(learner, entry) < learner.places()->zone_offset, units == 3500) << entry;
    }
  }
}

// Small blocks between large ones of which only some are live would each use a chunk.
TEST(EnvelopeLearner, SmallBlocksShareChunks) {
  EnvelopeLearner learner({});
  const std::vector<uint32_t> entries = LearnTwice(&learner, SmallBetweenLarge);
  learner.Place();
  std::set<uint32_t> chunks;
  for (size_t k = 1; k < 24; k += 2) chunks.insert(OffsetOf(learner, entries[k]) / kChunkUnits);
  EXPECT_EQ(chunks.size(), 1u);
}

// Rows of conflicts take the square of the blocks in memory.
TEST(EnvelopeLearner, OfManyBlocksNoneLieBelowTheirPlaces) {
  for (const uint64_t few : {100, 10}) {
    EnvelopeSettings settings;
    settings.few_blocks = few;
    EnvelopeLearner learner(settings);
    LearnTwice(&learner, SmallBetweenLarge);
    learner.Place();
    EXPECT_EQ(learner.places()->supports.empty(), few == 10);
    EXPECT_LE(learner.places()->zone_units, learner.places()->load_units * 11 / 10 + kChunkUnits);
  }
}

// An iteration that would make too many entries is not merged: the memory for it is never taken.
TEST(EnvelopeLearner, AnIterationOfTooManyRequestsIsNotMerged) {
  EnvelopeSettings settings;
  settings.limits.most_entries = 30;
  EnvelopeLearner learner(settings);
  EnvelopeJob job;
  EXPECT_EQ(Learn(&learner, &job, SmallBetweenLarge).size(), 25u);
  EXPECT_FALSE(learner.Full());
  const std::vector<uint32_t> entries = Learn(&learner, &job, [](EnvelopeJob* each) {
    for (uint32_t k = 0; k < 100; ++k) each->Release(each->Request(100'000 + 5'000 * k));
  });
  EXPECT_TRUE(learner.Full());
  EXPECT_EQ(std::count(entries.begin(), entries.end(), kNone), 100);
  EXPECT_EQ(learner.envelope().entries().size(), 25u);
}

TEST(EnvelopeLearner, BlocksOfWholeChunksBeginAtChunks) {
  EnvelopeLearner learner({});
  const std::vector<uint32_t> entries = LearnTwice(&learner, [](EnvelopeJob* job) {
    std::vector<uint64_t> live;
    for (uint32_t k = 0; k < 12; ++k) live.push_back(job->Request(k % 3 == 0 ? 100 : (k % 4 + 1) * kChunkUnits));
    while (!live.empty()) {
      job->Release(live.back());
      live.pop_back();
      job->Release(job->Request(50));
    }
  });
  learner.Place();
  for (size_t k = 0; k < 12; ++k) {
    if (k % 3 != 0) {
      EXPECT_EQ(OffsetOf(learner, entries[k]) % kChunkUnits, 0u) << k;
    }
  }
}

TEST(EnvelopeLearner, ScriptsMadeBeforeDoNotUseUpTheCredit) {
  EXPECT_TRUE(MayPlaceAgain(1, 30, 31));
  EXPECT_FALSE(MayPlaceAgain(2, 30, 31)) << "four of them count";
  EXPECT_FALSE(MayPlaceAgain(1, 3, 7)) << "all three of them count";
  EXPECT_TRUE(MayPlaceAgain(3, 0, 7));
  EXPECT_FALSE(MayPlaceAgain(4, 0, 7));
}

// Places from below: a (entry 0), b on it, c on b. c may lie on what a and b leave free, if both are live with it.
TEST(EnvelopePlaces, ListWhatSupportsAPlace) {
  EnvelopePlaces places;
  places.by_entry = {{10, {0, kNone}}, {20, {10, kNone}}, {5, {30, kNone}}, {30, {0, kNone}}};
  ConflictRows conflicts(4);
  conflicts.Set(0, 1);
  conflicts.Set(0, 2);
  conflicts.Set(1, 2);
  places.FindSupports({0, 1, 2, 3}, conflicts);
  const auto& supports = places.supports;
  ASSERT_EQ(supports.size(), 8u);
  const uint32_t c = EnvelopePlaces::PlaceIndex(2, 0);
  EXPECT_EQ(supports[c].floor, 0u);
  ASSERT_EQ(supports[c].places.size(), 2u) << "entry 3 is never live with it";
  EXPECT_EQ(supports[c].places[0].place, EnvelopePlaces::PlaceIndex(1, 0));
  EXPECT_EQ(supports[c].places[0].top, 30u);
  EXPECT_EQ(supports[c].places[1].top, 10u);
  EXPECT_TRUE(supports[EnvelopePlaces::PlaceIndex(3, 0)].places.empty());
}

TEST(EnvelopePlaces, ListNothingBelowTheZoneOrTheFragment) {
  EnvelopePlaces places;
  places.fragments = {{5, 10, 1 << 20}, {20, 10, 2 << 20}};
  places.zone_offset = 40;
  places.by_entry = {{4, {5, kNone}}, {4, {20, kNone}}, {4, {26, kNone}}, {4, {40, kNone}}};
  ConflictRows conflicts(4);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < i; ++j) conflicts.Set(i, j);
  }
  places.FindSupports({0, 1, 2, 3}, conflicts);
  EXPECT_EQ(places.supports[EnvelopePlaces::PlaceIndex(2, 0)].floor, 20u);
  EXPECT_EQ(places.supports[EnvelopePlaces::PlaceIndex(2, 0)].places.size(), 1u);
  EXPECT_EQ(places.supports[EnvelopePlaces::PlaceIndex(3, 0)].floor, 40u);
  EXPECT_TRUE(places.supports[EnvelopePlaces::PlaceIndex(3, 0)].places.empty());
}

// A script is dropped within a request. So the learner holds it until it makes the next one.
TEST(EnvelopeLearner, FreesTheScriptsThatItMadeBefore) {
  EnvelopeLearner learner{EnvelopeSettings{}};
  EnvelopeJob job;
  Learn(&learner, &job, [&](EnvelopeJob* each) { PlayStep(Layers{}, each); });
  learner.Place();
  std::shared_ptr<const EnvelopeScript> followed = learner.Script();
  const std::weak_ptr<const EnvelopeScript> first = followed;
  std::shared_ptr<const EnvelopeScript> next = learner.Script();
  followed = std::move(next);
  EXPECT_FALSE(first.expired()) << "the drop freed it";
  learner.Script();
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace hotpack
