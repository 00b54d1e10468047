// How a run began, as found in its history; scripts without holes.
#include "runtime/persist/saved_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "packer/validator.h"
#include "tests/runtime/plan_samples.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint32_t kStays = kStillLive;

struct Request {
  uint32_t units;
  uint32_t age;
};

HistoryTail TailOf(const std::vector<Request>& requests) {
  HistoryTail tail;
  for (const Request& request : requests) {
    tail.units.push_back(request.units);
    tail.ages.push_back(request.age);
  }
  return tail;
}

//  sizes 10 11 12 13, each released after two requests
std::shared_ptr<const Script> Four() { return ScriptOf({{10, 2, 0}, {11, 2, 10}, {12, 2, 21}, {13, 2, 33}}); }

void Cycle(std::vector<Request>* requests, int times) {
  for (int i = 0; i < times; ++i) {
    for (uint32_t k = 0; k < 4; ++k) requests->push_back({10 + k, 2});
  }
}

TEST(Opening, BeginsWithTheIteration) {
  std::vector<Request> requests;
  Cycle(&requests, 5);
  const Opening opening = FindOpening(TailOf(requests), *Four(), 8);
  EXPECT_EQ(opening.before, 0u);
  EXPECT_EQ(opening.units, (std::vector<uint32_t>{10, 11, 12, 13}));
  EXPECT_EQ(opening.entries, (std::vector<uint32_t>{0, 1, 2, 3}));
}

// The script's cycle may begin anywhere in the iteration.
TEST(Opening, WeightsComeBefore) {
  for (uint32_t rotation = 0; rotation < 4; ++rotation) {
    std::vector<Request> requests(7, {10, kStays});
    for (uint32_t k = rotation; k < 4; ++k) requests.push_back({10 + k, 2});
    const auto anchor = static_cast<uint64_t>(requests.size()) + 8;
    Cycle(&requests, 6);
    const Opening opening = FindOpening(TailOf(requests), *Four(), anchor);
    EXPECT_EQ(opening.before, 7u);
    ASSERT_EQ(opening.units.size(), 11u);
    for (uint32_t k = 0; k < 7; ++k) EXPECT_EQ(opening.entries[k], kNone);
    for (uint32_t k = 0; k < 4; ++k) EXPECT_EQ(opening.entries[7 + k], (rotation + k) % 4) << rotation;
  }
}

// Blocks that stay, as large as the iteration's own, between these.
TEST(Opening, StateInTheMiddle) {
  std::vector<Request> requests = {{12, kStays}, {10, 2},      {11, kStays}, {11, 3},
                                   {12, kStays}, {13, kStays}, {12, 5},      {13, 2}};
  Cycle(&requests, 6);
  const Opening opening = FindOpening(TailOf(requests), *Four(), 12);
  EXPECT_EQ(opening.before, 1u);
  const std::vector<uint32_t> expected = {kNone, 0, kNone, 1, kNone, kNone, 2, 3, 0, 1};
  ASSERT_GE(opening.entries.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), opening.entries.begin()))
      << testing::PrintToString(opening.entries);
}

// The first iteration asks for a few things more, and for a few things not: as first iterations do.
TEST(Opening, ShortLivedOnesInTheMiddle) {
  std::vector<TestBlock> blocks;
  uint32_t offset = 0;
  for (uint32_t k = 0; k < 60; ++k) {
    blocks.push_back({10 + k * 7 % 41, 2, offset});
    offset += blocks.back().units;
  }
  auto script = ScriptOf(blocks);
  std::vector<Request> requests;
  std::vector<uint32_t> expected;
  for (uint32_t k = 0; k < 60; ++k) {
    if (k == 20) {  // inserted
      requests.insert(requests.end(), {{999, 1}, {998, 3}});
      expected.insert(expected.end(), {kNone, kNone});
    }
    if (k == 40 || k == 41) continue;                          // missing
    requests.push_back({k == 30 ? 500 : blocks[k].units, 2});  // 30: another size
    expected.push_back(k == 30 ? kNone : k);
  }
  for (int i = 0; i < 5; ++i) {
    for (const TestBlock& block : blocks) requests.push_back({block.units, 2});
  }
  const Opening opening = FindOpening(TailOf(requests), *script, expected.size() + 120);
  EXPECT_EQ(opening.before, 0u);
  ASSERT_GE(opening.entries.size(), 40u);
  for (size_t k = 0; k < 40; ++k) EXPECT_EQ(opening.entries[k], expected[k]) << k;
}

// An evaluation of other requests between two iterations: the beginning is found all the same. The script was found
// late, with other iterations before: what counts is the first one of its own. Without an anchor too.
TEST(Opening, IsSeenFromTheFirstOwnIteration) {
  std::vector<Request> requests(3, {10, kStays});
  Cycle(&requests, 4);
  for (uint32_t k = 0; k < 9; ++k) requests.push_back({30 + k, 1});
  Cycle(&requests, 6);
  const auto anchor = static_cast<uint64_t>(requests.size()) - 4;
  for (uint64_t from : {anchor, kNoAnchor}) {
    const Opening opening = FindOpening(TailOf(requests), *Four(), from);
    EXPECT_EQ(opening.before, 3u);
    EXPECT_EQ(opening.units, (std::vector<uint32_t>{10, 10, 10, 10, 11, 12, 13}));
    EXPECT_EQ(opening.entries, (std::vector<uint32_t>{kNone, kNone, kNone, 0, 1, 2, 3}));
  }
  const std::vector<Request> never = {{10, 2}, {11, 2}, {12, 2}, {10, 2}, {11, 2}, {12, 2}};
  EXPECT_TRUE(FindOpening(TailOf(never), *Four(), kNoAnchor).empty());
}

TEST(Opening, SomethingElseInTheMiddle) {
  std::vector<TestBlock> blocks;
  uint32_t offset = 0;
  for (uint32_t k = 0; k < 60; ++k) {
    blocks.push_back({10 + k * 7 % 41, 2, offset});
    offset += blocks.back().units;
  }
  auto script = ScriptOf(blocks);
  std::vector<Request> requests(3, {77, kStays});
  auto iteration = [&] {
    for (const TestBlock& block : blocks) requests.push_back({block.units, 2});
  };
  iteration();
  for (uint32_t k = 0; k < 100; ++k) requests.push_back({1000 + k, 2});
  for (int i = 0; i < 5; ++i) iteration();
  const Opening opening = FindOpening(TailOf(requests), *script, 163 + 120);
  EXPECT_EQ(opening.before, 3u);
  ASSERT_GE(opening.entries.size(), 163u + 60);
  for (uint32_t k = 0; k < 60; ++k) EXPECT_EQ(opening.entries[3 + k], k);
  for (uint32_t k = 0; k < 100; ++k) EXPECT_EQ(opening.entries[63 + k], kNone);
  for (uint32_t k = 0; k < 60; ++k) EXPECT_EQ(opening.entries[163 + k], k);
}

TEST(Opening, NothingIsKnownOnceTheHistoryHasForgotten) {
  std::vector<Request> requests;
  Cycle(&requests, 5);
  HistoryTail tail = TailOf(requests);
  tail.first = 1;
  EXPECT_TRUE(FindOpening(tail, *Four(), 8).empty());
}

// Any history against any script: every report is true of both.
TEST(Opening, IsAlwaysConsistent) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 400; ++round) {
    const auto n = static_cast<uint32_t>(1 + random() % 30);
    auto script = RandomScript(random, n, 1 + static_cast<uint32_t>(random() % 5));
    std::vector<Request> requests;
    const size_t length = random() % 300;
    for (size_t h = 0, p = random() % n; h < length; ++h, p = random() % 20 == 0 ? random() % n : (p + 1) % n) {
      const uint32_t units = random() % 15 == 0 ? static_cast<uint32_t>(1 + random() % 20) : script->entries[p].units;
      requests.push_back({units, static_cast<uint32_t>(random() % (2 * n))});
    }
    const Opening opening = FindOpening(TailOf(requests), *script, random() % (length + 2 * n));
    ASSERT_EQ(opening.units.size(), opening.entries.size());
    ASSERT_LE(opening.units.size(), length);
    if (opening.empty()) continue;
    ASSERT_LT(opening.before, opening.units.size());
    for (size_t k = 0; k < opening.units.size(); ++k) {
      ASSERT_EQ(opening.units[k], requests[k].units);
      const uint32_t entry = opening.entries[k];
      ASSERT_TRUE(k != opening.before || entry != kNone);
      ASSERT_TRUE(k >= opening.before || entry == kNone);
      if (entry == kNone) continue;
      ASSERT_LT(entry, n);
      ASSERT_EQ(script->entries[entry].units, opening.units[k]);
      ASSERT_NE(script->entries[entry].offset, kNone);
    }
  }
}

TEST(WithoutFragments, IsAPlacementOfTheSame) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    auto script = RandomScript(random, 20 + static_cast<uint32_t>(random() % 40), 9);
    // The lowest blocks go to a hole: [0, cut) is one, a wall of one unit follows, the rest is the zone.
    std::vector<uint32_t> index;
    const Instance instance = ToInstance(script->profile, &index);
    uint32_t cut = 0;
    for (uint32_t i : index) cut = std::max(cut, script->entries[i].units);
    const uint32_t zone = cut + 1;
    std::vector<Offset> offsets;
    for (uint32_t i : index)
      offsets.push_back(static_cast<Offset>((script->entries[i].offset + uint64_t{zone}) * kBlockUnit));
    offsets[0] = 0;
    const Script holed = CompileScript(script->profile, index, offsets, {{0, cut, uint64_t{1} << 40}}, zone, 0);
    ASSERT_EQ(holed.fragments.size(), 1u);
    auto flat = WithoutFragments(std::make_shared<const Script>(holed), 20'000'000);
    ASSERT_NE(flat, nullptr);
    EXPECT_TRUE(flat->fragments.empty());
    EXPECT_EQ(flat->zone_offset, 0u);
    EXPECT_LE(flat->height_bytes, holed.height_bytes + cut * kBlockUnit);
    Placement placement;
    placement.height = static_cast<Bytes>(flat->height_bytes);
    for (uint32_t i : index) placement.offsets.push_back(static_cast<Offset>(flat->entries[i].offset * kBlockUnit));
    EXPECT_EQ(Validate(instance, placement), "");
  }
  auto none = RandomScript(random, 10, 3);
  EXPECT_EQ(WithoutFragments(none, 1'000'000), none);
}

}  // namespace
}  // namespace hotpack
