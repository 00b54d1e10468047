#include "profiler/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "packer/bounds.h"
#include "profiler/recorded_streams.h"
#include "tests/profiler/recorder.h"

namespace hotpack {
namespace {

Profile Build(const Recorder& recorder) {
  HistoryTail tail = recorder.Tail();
  Period period = FindPeriod(tail);
  EXPECT_NE(period.length, 0u);
  if (period.length == 0) return {};
  return BuildProfile(tail, period);
}

// The cycle's blocks from the one of `units` (there is one) on.
std::vector<ProfileBlock> From(const Profile& profile, uint32_t units) {
  std::vector<ProfileBlock> blocks = profile.blocks;
  auto first = std::find_if(blocks.begin(), blocks.end(), [&](const ProfileBlock& b) { return b.units == units; });
  std::rotate(blocks.begin(), first, blocks.end());
  return blocks;
}

TEST(BuildProfile, AgesAndSizesInOrder) {
  Recorder recorder;
  for (int i = 0; i < 3; ++i) {
    uint64_t a = recorder.Ask(10), b = recorder.Ask(20);
    recorder.Give(a);
    uint64_t c = recorder.Ask(30);
    recorder.Give(c);
    recorder.Give(b);
  }
  Profile profile = Build(recorder);
  ASSERT_EQ(profile.blocks.size(), 3u);
  EXPECT_EQ(profile.period, 3u);
  EXPECT_EQ(profile.unroll, 1u);
  EXPECT_EQ(profile.carried_blocks, 0u);
  EXPECT_EQ(profile.carried_units, 0u);
  EXPECT_EQ(profile.first_ordinal % 3, 0u);
  EXPECT_EQ(profile.seen_from, 0u);
  uint32_t units[] = {10, 20, 30}, ages[] = {2, 2, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(profile.blocks[i].units, units[i]);
    EXPECT_EQ(profile.blocks[i].age, ages[i]);
    EXPECT_EQ(profile.blocks[i].min_age, ages[i]);
    EXPECT_TRUE(profile.blocks[i].planned);
  }
}

// Gradients live until the next step's zero_grad: the cycle begins where the fewest bytes are carried.
TEST(BuildProfile, BeginsWhereTheFewestBytesAreCarried) {
  Recorder recorder;
  std::vector<uint64_t> gradients;
  for (int i = 0; i < 4; ++i) {
    uint64_t x = recorder.Ask(5), y = recorder.Ask(7);
    recorder.Give(&gradients);  // zero_grad
    uint64_t z = recorder.Ask(3);
    recorder.Give(z);
    for (int k = 0; k < 4; ++k) gradients.push_back(recorder.Ask(100));
    recorder.Give(x);
    recorder.Give(y);
  }
  Profile profile = Build(recorder);
  ASSERT_EQ(profile.blocks.size(), 7u);
  EXPECT_EQ(profile.blocks[0].units, 3u);  // after zero_grad: x and y are carried, 12 units, instead of 400
  EXPECT_EQ(profile.carried_units, 12u);
  EXPECT_EQ(profile.carried_blocks, 2u);
}

// Of several such places the one after the highest load, wherever the profile happens to begin.
TEST(Rotate, BeginsAfterTheHighestLoad) {
  std::vector<ProfileBlock> blocks;
  for (uint32_t k = 0; k < 6; ++k)
    blocks.push_back({10 + k, 11 - 2 * k, 11 - 2 * k, true});  // a hill, all gone after 11
  for (uint32_t k = 0; k < 5; ++k) blocks.push_back({3, 1, 1, true});
  for (uint32_t k = 0; k < 4; ++k) blocks.push_back({90 + k, 1, 1, true});  // temporary ones
  for (size_t turn = 0; turn < blocks.size(); ++turn) {
    Profile profile;
    profile.blocks = blocks;
    std::rotate(profile.blocks.begin(), profile.blocks.begin() + static_cast<ptrdiff_t>(turn), profile.blocks.end());
    Rotate(&profile);
    EXPECT_EQ(profile.carried_units, 0u);
    EXPECT_EQ(profile.blocks[0].units, 90u) << turn;
  }
}

TEST(Rotate, FindsTheLeastOfAllPlaces) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Profile profile;
    uint32_t n = 1 + random() % 12;
    for (uint32_t i = 0; i < n; ++i) {
      ProfileBlock block;
      block.units = 1 + random() % 50;
      block.planned = random() % 5 != 0;
      if (block.planned) block.age = block.min_age = 1 + random() % n;
      profile.blocks.push_back(block);
    }
    std::vector<ProfileBlock> before = profile.blocks;
    uint64_t least = UINT64_MAX;
    std::vector<uint64_t> all;
    for (uint32_t b = 0; b < n; ++b) {  // live at the moment just before request b
      uint64_t carried = 0;
      for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t k = 1; k < before[i].age; ++k) carried += (i + k) % n == b ? before[i].units : 0;
      }
      all.push_back(carried);
      least = std::min(least, carried);
    }
    Rotate(&profile);
    const auto where = static_cast<uint32_t>(profile.first_ordinal);
    ASSERT_LT(where, n);
    EXPECT_EQ(profile.carried_units, least);
    EXPECT_EQ(all[where], least);
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_EQ(profile.blocks[i].units, before[(i + where) % n].units);
      blocks += profile.blocks[i].planned && i + profile.blocks[i].age > n;
    }
    EXPECT_EQ(profile.carried_blocks, blocks);
  }
}

// x = x.cuda(); out = model(x): each dies just after its successor is born, so two take turns.
TEST(BuildProfile, UnrollsForBlocksThatOutliveAPeriod) {
  Recorder recorder;
  uint64_t x = recorder.Ask(100), out = recorder.Ask(50);
  for (int i = 0; i < 8; ++i) {
    uint64_t x2 = recorder.Ask(100);
    recorder.Give(x);
    x = x2;
    recorder.Touch(10);
    uint64_t out2 = recorder.Ask(50);
    recorder.Give(out);
    out = out2;
  }
  Profile profile = Build(recorder);
  EXPECT_EQ(profile.period, 3u);
  EXPECT_EQ(profile.unroll, 2u);
  ASSERT_EQ(profile.blocks.size(), 6u);
  for (const ProfileBlock& block : profile.blocks) {
    EXPECT_TRUE(block.planned);
    EXPECT_EQ(block.age, block.units == 10 ? 1u : 4u);
  }
  EXPECT_EQ(PeakUnits(profile), 250u);  // when x's successor is born: two of 100 and out
}

// Gradients are kept through 4 equal micro-batches: requests repeat four times as often as lives.
TEST(BuildProfile, MicroBatchesWithoutAnythingBetweenThem) {
  for (int batches : {2, 4, 8}) {
    Recorder recorder;
    std::vector<uint64_t> gradients;
    for (int i = 0; i < 16 * 2; ++i) {
      if (i % batches == 0) recorder.Give(&gradients);
      uint64_t activation = recorder.Ask(60), gradient = recorder.Ask(20);
      recorder.Give(activation);
      recorder.Touch(9);
      if (i % batches == 0) {
        gradients.push_back(gradient);
      } else {
        recorder.Give(gradient);
      }
    }
    Profile profile = Build(recorder);
    EXPECT_EQ(profile.period, 3u);
    EXPECT_EQ(profile.unroll, static_cast<uint32_t>(batches));
    uint32_t kept = 0;
    for (const ProfileBlock& block : profile.blocks) {
      EXPECT_TRUE(block.planned);
      if (block.units == 20 && block.age > 2) ++kept;
    }
    EXPECT_EQ(kept, 1u) << batches << " micro-batches";
  }
}

// A loop of three requests that has gone on for long is unrolled to a cycle worth its end; what lives through more than
// eight rounds of it, but not longer than that cycle, is planned.
TEST(BuildProfile, ShortLoopsAreUnrolled) {
  for (const int rounds : {30, 60}) {
    Recorder recorder;
    std::vector<uint64_t> kept;
    for (int i = 0; i < rounds; ++i) {
      recorder.Give(recorder.Ask(10));
      kept.push_back(recorder.Ask(20));
      if (i >= 12) recorder.Give(kept[static_cast<size_t>(i - 12)]);
      recorder.Give(recorder.Ask(30));
    }
    Profile profile = Build(recorder);
    EXPECT_EQ(profile.period, 3u);
    EXPECT_EQ(profile.blocks.size(), size_t{profile.period} * profile.unroll);
    EXPECT_EQ(profile.unroll, rounds == 30 ? 1u : 21u);
    const std::vector<ProfileBlock> blocks = From(profile, 20);
    EXPECT_EQ(blocks[0].planned, rounds == 60);
    EXPECT_EQ(blocks[0].age, rounds == 60 ? 37u : 0u);
    EXPECT_EQ(blocks[1].age, 1u);
  }
}

TEST(BuildProfile, RetainedBlocksAreNotPlanned) {
  Recorder recorder;
  for (int i = 0; i < 6; ++i) {
    recorder.Ask(77);  // appended to a list for good
    recorder.Touch(10);
    recorder.Touch(11);
  }
  // Balanced only if little is kept, so the period is given.
  Profile profile = BuildProfile(recorder.Tail(), {3, 15});
  std::vector<ProfileBlock> blocks = From(profile, 77);
  EXPECT_FALSE(blocks[0].planned);
  EXPECT_EQ(blocks[0].age, 0u);
  EXPECT_TRUE(blocks[1].planned);
  EXPECT_TRUE(blocks[2].planned);
  EXPECT_EQ(PeakUnits(profile), 11u);
}

// The first step's gradients become momentum buffers and stay; those of later steps are released.
TEST(BuildProfile, WhatTheFirstOnesBecameSaysNothing) {
  Recorder recorder;
  for (int i = 0; i < 3; ++i) {
    uint64_t x = recorder.Ask(10), gradient = recorder.Ask(20);
    recorder.Give(x);
    uint64_t y = recorder.Ask(30);
    if (i > 0) recorder.Give(gradient);
    recorder.Give(y);
  }
  std::vector<ProfileBlock> blocks = From(BuildProfile(recorder.Tail(), {3, 6}), 20);
  EXPECT_TRUE(blocks[0].planned);
  EXPECT_EQ(blocks[0].age, 2u);
}

// Blocks that are kept every other time stay unplanned.
TEST(BuildProfile, WhatIsKeptNowAndThenIsNotPlanned) {
  Recorder recorder;
  for (int i = 0; i < 3; ++i) {
    uint64_t x = recorder.Ask(10), sometimes = recorder.Ask(20);
    recorder.Give(x);
    uint64_t y = recorder.Ask(30);
    if (i != 1) recorder.Give(sometimes);
    recorder.Give(y);
  }
  EXPECT_FALSE(From(BuildProfile(recorder.Tail(), {3, 6}), 20)[0].planned);
}

TEST(BuildProfile, OneMarkedIterationIsEnough) {
  Recorder recorder;
  uint64_t weights = recorder.Ask(500);
  (void)weights;
  uint64_t a = recorder.Ask(10), b = recorder.Ask(20);
  recorder.Give(a);
  recorder.Give(b);
  Profile profile = BuildProfile(recorder.Tail(), {2, 0});
  ASSERT_EQ(profile.blocks.size(), 2u);
  EXPECT_EQ(profile.blocks[0].age, 2u);
  EXPECT_EQ(profile.blocks[1].age, 1u);
}

TEST(WidenForJitter, GroupsWhatIsReleasedInAnyOrder) {
  Profile profile;
  // Three blocks of requests 0..2, released in any order while requests 5..7 are made.
  for (uint32_t i = 0; i < 8; ++i) profile.blocks.push_back({i < 3 ? 10u : 100u, 1, 1, true});
  profile.blocks[0] = {10, 6, 5, true};  // seen at 5..6
  profile.blocks[1] = {10, 5, 4, true};  // 5..6
  profile.blocks[2] = {10, 5, 4, true};  // 6..7
  ASSERT_TRUE(WidenForJitter(&profile, 2 * PeakUnits(profile)));
  EXPECT_EQ(profile.blocks[0].age, 7u);  // all until 7, the latest of the group
  EXPECT_EQ(profile.blocks[1].age, 6u);
  EXPECT_EQ(profile.blocks[2].age, 5u);
  EXPECT_EQ(profile.blocks[3].age, 1u);
}

TEST(WidenForJitter, NotAtAnyPrice) {
  Profile profile;
  for (int i = 0; i < 4; ++i) profile.blocks.push_back({10, 1, 1, true});
  profile.blocks[0] = {100, 1, 1, true};
  profile.blocks[1] = {100, 2, 1, true};  // 2..3
  profile.blocks[2] = {100, 2, 1, true};  // 3..4
  profile.blocks[3] = {100, 1, 1, true};
  Profile before = profile;
  EXPECT_FALSE(WidenForJitter(&profile, 299));  // 300 resident at once instead of 200
  for (int i = 0; i < 4; ++i) EXPECT_EQ(profile.blocks[i].age, before.blocks[i].age);
  EXPECT_TRUE(WidenForJitter(&profile, 300));
  EXPECT_EQ(profile.blocks[1].age, 3u);
}

TEST(WidenForJitter, NothingToDo) {
  Profile profile;
  profile.blocks.push_back({10, 1, 1, true});
  EXPECT_FALSE(WidenForJitter(&profile, UINT64_MAX));
}

// The packer's instance has the profile's peak as its load. No age exceeds the cycle.
TEST(ToInstance, HasThePeakOfTheProfile) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    Profile profile;
    uint32_t n = 1 + random() % 20;
    for (uint32_t i = 0; i < n; ++i) {
      ProfileBlock block;
      block.units = 1 + random() % 50;
      block.planned = random() % 5 != 0;
      if (block.planned) block.age = block.min_age = 1 + random() % n;
      profile.blocks.push_back(block);
    }
    std::vector<uint32_t> index;
    Instance instance = ToInstance(profile, &index);
    EXPECT_EQ(static_cast<uint64_t>(MaxLoad(instance)), PeakUnits(profile) * kBlockUnit);
    uint64_t peak = 0;  // counted by hand
    for (uint32_t t = 0; t < n; ++t) {
      uint64_t load = 0;
      for (uint32_t i = 0; i < n; ++i) {
        if (profile.blocks[i].planned && (t + n - i) % n < profile.blocks[i].age) load += profile.blocks[i].units;
      }
      peak = std::max(peak, load);
    }
    EXPECT_EQ(PeakUnits(profile), peak);
    ASSERT_EQ(index.size(), instance.blocks.size());
    for (size_t k = 0; k < index.size(); ++k) {
      EXPECT_TRUE(profile.blocks[index[k]].planned);
      EXPECT_EQ(instance.blocks[k].size, Bytes{profile.blocks[index[k]].units} * 512);
      Clock resident = 0;
      for (const Residency& r : instance.blocks[k].residency) resident += r.end - r.begin;
      EXPECT_EQ(resident, profile.blocks[index[k]].age);
    }
  }
}

TEST(Feed, LeavesOutWhatIsInterrupted) {
  Trace trace;
  auto add = [&](EventKind kind, uint64_t id = 0, uint64_t bytes = 0) {
    Event event;
    event.kind = kind;
    event.id = id;
    event.bytes = bytes;
    trace.events.push_back(event);
  };
  add(EventKind::kAllocate, 1, 1000);
  add(EventKind::kMark);
  add(EventKind::kAllocate, 2, 512);
  add(EventKind::kInterrupt);
  add(EventKind::kInterrupt);
  add(EventKind::kAllocate, 3, 4096);
  add(EventKind::kRelease, 1, 1000);  // of a monitored block: counts, the clock stands still
  add(EventKind::kResume);
  add(EventKind::kAllocate, 4, 4096);
  add(EventKind::kResume);
  add(EventKind::kRelease, 3, 4096);  // of an unmonitored one
  add(EventKind::kAllocate, 5, 1);
  History history(64);
  std::vector<uint64_t> marks;
  Feed(trace, &history, &marks);
  ASSERT_EQ(history.Count(), 3u);
  EXPECT_EQ(history.Units(0), 2u);
  EXPECT_EQ(history.Units(1), 1u);
  EXPECT_EQ(history.Units(2), 1u);
  EXPECT_EQ(history.Age(0), 2u);
  EXPECT_EQ(history.Age(1), kStillLive);
  EXPECT_EQ(marks, std::vector<uint64_t>{1});
}

TEST(RecordedStreamsTest, OnlyFlaggedRequestsNameAStream) {
  Trace trace;
  const auto add = [&trace](uint8_t flags, uint32_t stream) {
    trace.events.push_back({EventKind::kAllocate, flags, 0, stream, trace.events.size(), 512, 0});
    trace.events.push_back({EventKind::kRelease, flags, 0, 7, trace.events.size() - 1, 512, 0});
  };
  add(0, 0);
  EXPECT_THAT(RecordedStreams(trace), ::testing::ElementsAre(0));
  add(0, 3);  // imported: no request has a flag, and one names a stream
  EXPECT_THAT(RecordedStreams(trace), ::testing::ElementsAre(1, 4));
  add(kEventAsync, 3);
  add(kEventAsync, 0);
  add(kEventAsync, UINT32_MAX);
  EXPECT_THAT(RecordedStreams(trace), ::testing::ElementsAre(0, 0, 4, 1, UINT16_MAX - 1));
  EXPECT_THAT(ToBlockStreams(RecordedStreams(trace)),
              ::testing::ElementsAre(kAnyStream, kAnyStream, 4, 1, UINT16_MAX - 1));
  History history(64);
  Feed(trace, &history, nullptr);
  EXPECT_EQ(history.Stream(1), 0u);
  EXPECT_EQ(history.Stream(2), 4u);
}

}  // namespace
}  // namespace hotpack
