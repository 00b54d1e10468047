#include "runtime/script/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/script/live_slots.h"
#include "tests/runtime/script_helper.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

std::vector<uint32_t> Successors(const Script& script, uint32_t entry) {
  return {script.successors.begin() + script.entries[entry].first_successor,
          script.successors.begin() + script.entries[entry + 1].first_successor};
}

//   offset ▲          ┌─────┐
//        4 │          │  3  │        3 has its addresses for itself: it follows itself
//          ├──┐ ┌──┐  └─────┘
//        2 │  │ │2 │
//          │0 │ ├──┴──┐              0 → 1, 0 → 2; in the next iteration 1 → 0, 2 → 0
//        0 └──┘ └──1──┘
//            0   1 2  3    request
TEST(CompileScript, PredecessorsOnTheCycle) {
  auto script = ScriptOf({{4, 1, 0}, {2, 3, 0}, {2, 1, 2}, {5, 1, 4}});
  EXPECT_EQ(Successors(*script, 0), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(Successors(*script, 1), std::vector<uint32_t>{0});
  EXPECT_EQ(Successors(*script, 2), std::vector<uint32_t>{0});
  EXPECT_EQ(Successors(*script, 3), std::vector<uint32_t>{3});
  uint32_t predecessors[] = {2, 1, 1, 1};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(script->entries[i].predecessors, predecessors[i]) << i;
  EXPECT_EQ(script->height_bytes, 9 * kBlockUnit);
}

TEST(CompileScript, UnplannedEntriesHaveNoPlaceAndNoNeighbours) {
  auto script = ScriptOf({{4, 1, 0}, {9, 0, 0}, {4, 1, 0}});
  EXPECT_EQ(script->entries[1].offset, kNone);
  EXPECT_EQ(script->entries[1].predecessors, 0u);
  EXPECT_TRUE(Successors(*script, 1).empty());
  EXPECT_EQ(Successors(*script, 0), std::vector<uint32_t>{2});
  EXPECT_EQ(Successors(*script, 2), std::vector<uint32_t>{0});
}

// Each address by itself: its next user on the cycle.
TEST(CompileScript, EdgesAgreeWithBruteForce) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    uint32_t n = 1 + random() % 25;
    auto script = RandomScript(random, n, 1 + random() % 5);
    std::vector<std::set<uint32_t>> successors(n);
    for (uint32_t i = 0; i < n; ++i) {
      const ScriptEntry& entry = script->entries[i];
      if (entry.offset == kNone) continue;
      for (uint32_t a = entry.offset; a < entry.offset + entry.units; ++a) {
        for (uint32_t k = 1; k <= n; ++k) {
          const ScriptEntry& next = script->entries[(i + k) % n];
          if (next.offset == kNone || a < next.offset || a >= next.offset + next.units) continue;
          successors[i].insert((i + k) % n);
          break;
        }
      }
    }
    std::vector<uint32_t> predecessors(n, 0);
    for (uint32_t i = 0; i < n; ++i) {
      std::vector<uint32_t> found = Successors(*script, i);
      ASSERT_EQ(std::set<uint32_t>(found.begin(), found.end()), successors[i]);
      ASSERT_EQ(found.size(), successors[i].size());
      for (uint32_t s : found) ++predecessors[s];
    }
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(script->entries[i].predecessors, predecessors[i]);
    ASSERT_TRUE(std::is_sorted(script->contexts.begin(), script->contexts.end()));
    ASSERT_EQ(script->contexts.size(), n);
  }
}

//   own space:  |frag 0|w| frag 1 |w|  zone ...     (w: one unit that is never used)
TEST(CompileScript, UnusedFragmentsAreDropped) {
  Profile profile;
  profile.blocks = {{4, 1, 1, true}, {3, 2, 2, true}, {5, 1, 1, true}};
  std::vector<Fragment> fragments = {{0, 8, 1 << 20}, {9, 10, 1 << 24}};
  // One in the second fragment, two in the zone, which begins at 20.
  std::vector<Offset> offsets = {9 * 512, 20 * 512, 23 * 512};
  Script script = CompileScript(profile, {0, 1, 2}, offsets, fragments, 20, 77);
  ASSERT_EQ(script.fragments.size(), 1u);
  EXPECT_EQ(script.fragments[0].offset, 9u);
  EXPECT_EQ(script.fragment_bytes, 4 * kBlockUnit);
  EXPECT_EQ(script.height_bytes, 8 * kBlockUnit);
  EXPECT_EQ(script.zone_offset, 20u);
  EXPECT_EQ(script.lower_bound_bytes, 77u);
}

// A peak of one request among many is in its column; a short cycle's requests take several columns each.
TEST(CompileScript, TheLoadInColumns) {
  std::vector<TestBlock> blocks(640, TestBlock{1, 1, 0});
  blocks[637] = {9, 2, 1};
  auto script = ScriptOf(blocks);
  for (uint32_t c = 0; c < kLoadColumns; ++c) EXPECT_EQ(script->load[c], (c == 63 ? 10 : 1) * kBlockUnit) << c;
  auto small = ScriptOf({{4, 1, 0}, {2, 1, 0}});
  for (uint32_t c = 0; c < kLoadColumns; ++c) EXPECT_EQ(small->load[c], (c < 32 ? 4 : 2) * kBlockUnit) << c;
  EXPECT_EQ(ScriptOf({{4, 0, 0}})->load, LoadColumns{}) << "nothing is planned";
}

TEST(LiveSlots, FindsEachOffsetAndNoOther) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::set<uint32_t> distinct;
    for (uint64_t i = random() % 100; i > 0; --i)
      distinct.insert(static_cast<uint32_t>(random() % (round % 2 ? 300 : UINT32_MAX)));
    std::vector<uint32_t> offsets(distinct.begin(), distinct.end());
    if (!offsets.empty()) offsets.push_back(offsets[0]);
    LiveSlots slots;
    slots.Build(offsets);
    std::set<uint32_t> found;
    for (uint32_t offset : distinct) {
      LiveSlots::Slot* slot = slots.Find(offset);
      ASSERT_NE(slot, nullptr);
      ASSERT_EQ(slot->offset, offset);
      ASSERT_EQ(slot->entry, kNone);
      found.insert(slots.IndexOf(slot));
    }
    EXPECT_EQ(found.size(), distinct.size());  // a slot each
    for (int i = 0; i < 100; ++i) {
      auto offset = static_cast<uint32_t>(random() % 300);
      ASSERT_EQ(slots.Find(offset) != nullptr, distinct.count(offset) != 0);
    }
  }
  EXPECT_EQ(LiveSlots().Find(0), nullptr);
}

}  // namespace
}  // namespace hotpack
