// Envelopes: what a merge makes of iterations that differ.
#include "runtime/script/envelope.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "gtest/gtest.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "runtime/script/envelope_alignment.h"
#include "tests/property/random.h"
#include "tests/runtime/envelope_steps.h"

namespace hotpack {
namespace {

using hotpack_test::EnvelopeJob;
using hotpack_test::Layers;
using hotpack_test::PlayStep;

std::vector<uint32_t> Step(const Layers& layers, EnvelopeJob* job, Envelope* envelope) {
  PlayStep(layers, job);
  return job->End(envelope);
}

TEST(Envelope, ARepetitionAddsNothing) {
  Envelope envelope;
  EnvelopeJob job;
  const std::vector<uint32_t> first = Step({}, &job, &envelope);
  envelope.ClearChanged();
  EXPECT_EQ(envelope.entries().size(), first.size());
  EXPECT_EQ(Step({}, &job, &envelope), first);
  EXPECT_EQ(Step({}, &job, &envelope), first);
  EXPECT_FALSE(envelope.changed());
}

TEST(Envelope, LengthsChangeSizesOnly) {
  Envelope envelope;
  EnvelopeJob job;
  const std::vector<uint32_t> first = Step({.length = 10}, &job, &envelope);
  EXPECT_EQ(Step({.length = 14}, &job, &envelope), first);
  EXPECT_TRUE(envelope.changed()) << "larger sizes";
  EXPECT_EQ(Step({.length = 8}, &job, &envelope), first);
  EXPECT_EQ(envelope.entries()[first[0]].max_units, 14u * 3);
  EXPECT_EQ(envelope.entries()[first[0]].min_units, 8u * 3);
}

TEST(Envelope, AnIterationIsASubsequence) {
  Envelope envelope;
  EnvelopeJob job;
  const std::vector<uint32_t> whole = Step({}, &job, &envelope);
  const std::vector<uint32_t> part = Step({.skipped = 2}, &job, &envelope);
  EXPECT_EQ(envelope.entries().size(), whole.size()) << "layer drop needs no new entry";
  EXPECT_TRUE(std::is_sorted(part.begin(), part.end(), [&](uint32_t a, uint32_t b) {
    return envelope.positions()[a] < envelope.positions()[b];
  }));
  EXPECT_EQ(std::set<uint32_t>(part.begin(), part.end()).size(), part.size()) << "each entry once";
}

TEST(Envelope, ALongerIterationIsInserted) {
  Envelope envelope;
  EnvelopeJob job;
  const std::vector<uint32_t> part = Step({.skipped = 2}, &job, &envelope);
  const std::vector<uint32_t> whole = Step({}, &job, &envelope);
  EXPECT_EQ(envelope.entries().size(), whole.size());
  const std::vector<uint32_t>& order = envelope.order();
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), order.begin(), order.end())) << "in the order of the requests";
  for (size_t p = 0; p < order.size(); ++p) EXPECT_EQ(envelope.positions()[order[p]], p);
}

// Evaluation has other lives. Its memory is that of training: the two never meet.
TEST(Envelope, AlternativesCostNothing) {
  Envelope envelope;
  EnvelopeJob job;
  constexpr uint32_t kLength = 10000;
  Step({.length = kLength}, &job, &envelope);
  const uint64_t training = envelope.LoadUnits();
  std::vector<uint64_t> blocks;
  for (uint32_t k = 0; k < 6; ++k) {  // forward only, twice the batch, each released by the next but one
    blocks.push_back(job.Request(2 * kLength * (k + 3)));
    if (k >= 2) job.Release(blocks[k - 2]);
  }
  job.Release(blocks[4]);
  job.Release(blocks[5]);
  job.End(&envelope);
  Step({.length = kLength}, &job, &envelope);
  EXPECT_LE(envelope.LoadUnits(), std::max<uint64_t>(training, 2 * kLength * (8 + 7 + 6)) * 12 / 10);
}

TEST(Envelope, WhatStaysHasNoPlace) {
  Envelope envelope;
  EnvelopeJob job;
  std::vector<uint64_t> weights;
  for (uint32_t i = 0; i < Envelope::kMaxIterations + 3; ++i) {
    if (i == 0) weights.push_back(job.Request(1000));
    PlayStep(Layers{}, &job);
    job.End(&envelope);
  }
  std::vector<uint32_t> index;
  envelope.ToInstance(&index);
  const auto weight =
      static_cast<uint32_t>(std::find_if(envelope.entries().begin(), envelope.entries().end(),
                                         [](const EnvelopeEntry& entry) { return entry.max_units == 1000; }) -
                            envelope.entries().begin());
  EXPECT_TRUE(envelope.entries()[weight].retained);
  EXPECT_EQ(std::count(index.begin(), index.end(), weight), 0);
  EXPECT_EQ(index.size(), envelope.entries().size() - 1);
}

// As a batch's input: the old one is released after the new one was made.
TEST(Envelope, AnEntryThatOverlapsItselfHasTwoPlaces) {
  Envelope envelope;
  EnvelopeJob job;
  uint64_t input = job.Request(500);
  std::vector<uint32_t> entries;
  for (int i = 0; i < 4; ++i) {
    PlayStep(Layers{}, &job);
    entries = job.End(&envelope);
    const uint64_t next = job.Request(500);
    job.Release(input);
    input = next;
  }
  PlayStep(Layers{}, &job);
  entries = job.End(&envelope);
  std::vector<uint32_t> index;
  const Instance instance = envelope.ToInstance(&index);
  EXPECT_EQ(std::count(index.begin(), index.end(), entries[0]), 2);
  const PackResult packed = Pack(instance);
  ASSERT_EQ(packed.status, PackStatus::kOk);
  std::vector<Offset> places;
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] == entries[0]) places.push_back(packed.placement.offsets[i]);
  }
  EXPECT_GE(std::abs(places[0] - places[1]), 500 * 512);
}

TEST(Envelope, SizesThatChangeHaveHeadroom) {
  Envelope envelope({.headroom = 1.5});
  EnvelopeJob job;
  Step({.length = 10}, &job, &envelope);
  Step({.length = 12}, &job, &envelope);
  std::vector<uint32_t> index;
  const Instance instance = envelope.ToInstance(&index);
  for (size_t i = 0; i < index.size(); ++i) {
    const EnvelopeEntry& entry = envelope.entries()[index[i]];
    EXPECT_EQ(instance.blocks[i].size, (entry.changes > 0 ? (entry.max_units * 3 + 1) / 2 : entry.max_units) * 512);
  }
}

TEST(Envelope, SizesThatGrowHaveRoomForAsManyIterationsAgain) {
  Envelope envelope;
  EnvelopeJob job;
  std::vector<uint32_t> entries;
  for (uint32_t i = 0; i < 8; ++i) entries = Step({.length = 100 + 10 * i}, &job, &envelope);
  EXPECT_EQ(envelope.RoomUnits(entries[0]), 3 * (100u + 10 * 14)) << "its sizes will be these in iteration 14";
}

// An iteration whose sizes would make the envelope much larger is kept apart.
TEST(Envelope, AMergeThatCostsTooMuchIsAppended) {
  const auto run = [](double growth) {
    Envelope envelope({.load_growth = growth});
    EnvelopeJob job;
    for (int i = 0; i < 2; ++i) {  // two large blocks, one after the other, with a small one under each
      for (const uint32_t units : {100000u, i == 0 ? 10000u : 100000u}) {
        const uint64_t small = job.Request(i == 0 ? 10000 : 90000);
        const uint64_t large = job.Request(i == 0 ? units : 20000);
        job.Release(large);
        job.Release(small);
      }
      job.End(&envelope);
    }
    return envelope.entries().size();
  };
  EXPECT_EQ(run(4), 4u);
  EXPECT_GT(run(1.1), 4u);
}

TEST(Envelope, MistakesConflict) {
  Envelope envelope;
  EnvelopeJob job;
  Step({}, &job, &envelope);
  const std::vector<uint32_t> entries = Step({}, &job, &envelope);
  // The first request was served at the last one's place.
  std::vector<uint64_t> open;
  bool first = true;
  PlayStep(
      Layers{},
      [&](uint32_t units) {
        const uint32_t taken = first ? entries.back() : kNone;
        first = false;
        return job.Request(units, taken);
      },
      [&](uint64_t ordinal) { job.Release(ordinal); });
  EXPECT_EQ(job.End(&envelope), entries);
  std::vector<uint32_t> index;
  const Instance apart = envelope.ToInstance(&index);
  const ConflictRows conflicts = envelope.Conflicts(index);
  ConflictPlacementOptions options;
  const std::vector<ConflictRows> wishes = envelope.Wishes(conflicts, index);
  options.wishes = &wishes;
  options.wish_cost = 2;
  const Placement placement = PlaceByConflicts(apart, conflicts, options).at(1);
  const auto place = [&](uint32_t entry) {
    const size_t i = static_cast<size_t>(std::find(index.begin(), index.end(), entry) - index.begin());
    return std::pair{placement.offsets[i], placement.offsets[i] + apart.blocks[i].size};
  };
  const auto taken = place(entries.back()), right = place(entries.front());
  EXPECT_TRUE(taken.second <= right.first || right.second <= taken.first);
}

// A block lives over `once[1]` in the first iteration. In the second one it is released before `other[1]`, which lies
// between the two in the sequence.
TEST(Envelope, WhatLiesWithinALongestLifeHadBetterKeepApart) {
  Envelope envelope;
  EnvelopeJob job;
  const auto play = [&](std::vector<uint32_t> during, std::vector<uint32_t> after) {
    const uint64_t block = job.Request(1'000'000);
    for (const uint32_t units : during) job.Release(job.Request(units));
    job.Release(block);
    for (const uint32_t units : after) job.Release(job.Request(units));
    return job.End(&envelope);
  };
  const std::vector<uint32_t> once = play({3'000}, {70'000});
  const std::vector<uint32_t> other = play({}, {500, 3'000, 70'000});
  ASSERT_EQ(envelope.entries().size(), 4u);
  std::vector<uint32_t> index;
  envelope.ToInstance(&index);
  const ConflictRows conflicts = envelope.Conflicts(index);
  const std::vector<ConflictRows> wishes = envelope.Wishes(conflicts, index);
  ASSERT_EQ(wishes.size(), 1u) << "nothing met, and nothing was mistaken";
  const auto block_of = [&](uint32_t entry) { return std::find(index.begin(), index.end(), entry) - index.begin(); };
  const auto block = static_cast<size_t>(block_of(once[0]));
  const auto between = static_cast<size_t>(block_of(other[1])), last = static_cast<size_t>(block_of(once[2]));
  EXPECT_FALSE(conflicts.At(block, between));
  EXPECT_TRUE(wishes[0].At(block, between));
  EXPECT_TRUE(wishes[0].At(block, static_cast<size_t>(block_of(once[1])))) << "conflicts are wishes, too";
  EXPECT_FALSE(wishes[0].At(block, last));
}

// Random jobs of several kinds of steps: every iteration's blocks keep apart at the places of their entries.
TEST(Envelope, PlacesServeEveryIterationSeen) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    property::Random random(seed);
    Envelope envelope;
    EnvelopeJob job;
    struct Seen {
      std::vector<uint32_t> entries, units;
      std::vector<std::pair<size_t, size_t>> lives;  // requests [born, released)
    };
    std::vector<Seen> seen;
    for (int i = 0; i < 8; ++i) {
      Layers layers;
      layers.length = 5 + static_cast<uint32_t>(random.Below(10));
      layers.count = 3 + static_cast<uint32_t>(random.Below(4));
      if (random.Below(3) == 0) layers.skipped = static_cast<int>(random.Below(layers.count));
      PlayStep(layers, &job);
      Seen step;
      for (const EnvelopeRequest& request : job.iteration()) step.units.push_back(request.sign.units);
      size_t count = 0;
      PlayStep(
          layers,
          [&](uint32_t) {
            step.lives.push_back({count, SIZE_MAX});
            return count++;
          },
          [&](size_t k) { step.lives[k].second = count; });
      step.entries = job.End(&envelope);
      seen.push_back(step);
    }
    std::vector<uint32_t> index;
    const Instance instance = envelope.ToInstance(&index);
    PackOptions options;
    options.time_limit_ns = 20'000'000;
    const PackResult packed = Pack(instance, options);
    ASSERT_EQ(packed.status, PackStatus::kOk);
    EXPECT_GE(packed.placement.height, static_cast<Bytes>(envelope.LoadUnits()) * 512);
    std::vector<Offset> places(envelope.entries().size(), -1);
    for (size_t i = 0; i < index.size(); ++i) places[index[i]] = packed.placement.offsets[i];
    for (const Seen& step : seen) {
      for (size_t a = 0; a < step.entries.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          if (step.lives[b].second <= a) continue;  // released before
          const Offset begin_a = places[step.entries[a]], begin_b = places[step.entries[b]];
          ASSERT_NE(begin_a, -1);
          EXPECT_TRUE(begin_a + step.units[a] * 512 <= begin_b || begin_b + step.units[b] * 512 <= begin_a)
              << "seed " << seed << ": requests " << b << " and " << a;
        }
      }
    }
  }
}

// Each turn keeps a block until the backward pass, as a recurrent cell does. How long depends on the turns that follow:
// those of a short loop are nevertheless the first ones of a longer one.
TEST(Envelope, AShortLoopHasTheFirstTurnsOfALongOne) {
  Envelope envelope;
  EnvelopeJob job;
  const auto play = [&](uint32_t turns) {
    std::vector<uint64_t> kept;
    for (uint32_t t = 0; t < turns; ++t) {
      kept.push_back(job.Request(30));
      for (const uint32_t units : {11u, 12u, 13u}) job.Release(job.Request(units));
    }
    for (uint32_t k = 0; k < 16; ++k) job.Release(job.Request(60 + k));  // what comes after the loop
    const uint64_t loss = job.Request(1);
    while (!kept.empty()) {
      const uint64_t gradient = job.Request(31);
      job.Release(kept.back());
      kept.pop_back();
      for (const uint32_t units : {14u, 15u, 16u}) job.Release(job.Request(units));
      job.Release(gradient);
    }
    job.Release(loss);
    return job.End(&envelope);
  };
  play(40);
  const std::vector<uint32_t> longest = play(40);
  for (const uint32_t turns : {20u, 30u, 10u, 35u}) {
    const std::vector<uint32_t> entries = play(turns);
    EXPECT_EQ(envelope.entries().size(), longest.size()) << turns;
    EXPECT_TRUE(std::equal(longest.begin(), longest.begin() + 4 * turns, entries.begin())) << turns;
  }
}

// An entry that was seen five times, always alike.
EnvelopeEntry EntryOf(uint32_t units) {
  EnvelopeEntry entry;
  entry.max_units = entry.min_units = entry.last_units = units;
  entry.requests = 5;
  entry.sizes = {units};
  entry.contexts = {1};
  entry.releases = {0};
  entry.life = 4;
  return entry;
}

TEST(AlignIteration, TakesEntriesInTheirOrder) {
  // Sizes only: entries 10, 20, 30, 20, 40; the iteration leaves out two and has a new one.
  std::vector<EnvelopeEntry> entries;
  for (const uint32_t units : {10u, 20u, 30u, 20u, 40u}) entries.push_back(EntryOf(units));
  const std::vector<uint32_t> order = {0, 1, 2, 3, 4};
  std::vector<EnvelopeRequest> iteration;
  for (const uint32_t units : {10u, 7u, 30u, 20u, 40u})
    iteration.push_back({{units, 0, units == 7 ? 9u : 1u}, 0, kNone});
  const std::vector<int> lives = {4, 20, 4, 4, 4};
  EXPECT_EQ(AlignIteration(entries, order, iteration, lives, false), (std::vector<uint32_t>{0, kNone, 2, 3, 4}));
  EXPECT_EQ(AlignIteration(entries, order, {}, {}, false), std::vector<uint32_t>{});
  EXPECT_EQ(AlignIteration({}, {}, iteration, lives, false), std::vector<uint32_t>(5, kNone));
}

// A loop of three equal turns of two requests, which ends early: its last turn is left out. So the follower need not
// choose before it ends.
TEST(AlignIteration, OfEqualAlignmentsTheOneThatFollowsTheEntriesLongest) {
  std::vector<EnvelopeEntry> entries;
  for (const uint32_t units : {20u, 30u, 20u, 30u, 20u, 30u, 50u}) entries.push_back(EntryOf(units));
  std::vector<EnvelopeRequest> iteration;
  for (const uint32_t units : {7u, 20u, 30u, 20u, 30u, 50u}) iteration.push_back({{units, 0, 1}, 0, kNone});
  iteration[0].sign.context = iteration[4].sign.context = 9;  // around the loop something is new
  iteration[0].sign.releases = iteration[4].sign.releases = 9;
  EXPECT_EQ(AlignIteration(entries, {0, 1, 2, 3, 4, 5, 6}, iteration, std::vector<int>(6, 4), false),
            (std::vector<uint32_t>{kNone, 0, 1, 2, 3, 6}));
}

TEST(AlignIteration, OfEqualAlignmentsTheFollowersOwn) {
  const std::vector<EnvelopeEntry> entries(3, EntryOf(20));  // a loop of three equal turns
  for (const uint32_t taken : {0u, 1u, 2u}) {
    EXPECT_EQ(AlignIteration(entries, {0, 1, 2}, {{{20, 0, 1}, 0, taken}}, {4}, false), std::vector<uint32_t>{taken});
  }
}

// A follower that was a turn ahead in a loop is no reason for a new entry at its end.
TEST(AlignIteration, TheFollowersOwnInsertsNothing) {
  constexpr uint32_t kTurns = 24;
  std::vector<uint32_t> order(kTurns);
  std::iota(order.begin(), order.end(), 0);
  std::vector<EnvelopeRequest> iteration;
  for (uint32_t t = 0; t < kTurns; ++t) iteration.push_back({{20, 0, 1}, 0, std::min(t + 1, kTurns - 1)});
  EXPECT_EQ(AlignIteration(std::vector<EnvelopeEntry>(kTurns, EntryOf(20)), order, iteration,
                           std::vector<int>(kTurns, 4), false),
            order);
}

// A merge takes bounded time and memory, whatever the iteration.
TEST(AlignIteration, PartsThatAreTooLongAreNotAligned) {
  constexpr size_t kSide = 8193;
  static_assert(kSide * kSide > kMostAlignedCells);
  EnvelopeEntry entry;
  entry.max_units = entry.min_units = entry.last_units = 20;
  entry.requests = 5;
  entry.sizes = {20};
  std::vector<uint32_t> order(kSide);
  std::iota(order.begin(), order.end(), 0);
  const std::vector<EnvelopeRequest> iteration(kSide, {{21, 0, 1}, 0, kNone});
  EXPECT_EQ(
      AlignIteration(std::vector<EnvelopeEntry>(kSide, entry), order, iteration, std::vector<int>(kSide, 4), false),
      std::vector<uint32_t>(kSide, kNone));
}

}  // namespace
}  // namespace hotpack
