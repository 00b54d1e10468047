// Plans for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "runtime/persist/saved_plan.h"
#include "tests/runtime/script_helper.h"

namespace hotpack {

// Returns a helper's script with its bound.
inline std::shared_ptr<const Script> WithBound(const std::shared_ptr<const Script>& script) {
  Script copy = *script;
  copy.lower_bound_bytes = PeakUnits(copy.profile) * kBlockUnit;
  return std::make_shared<const Script>(std::move(copy));
}

// Two scripts and an opening: two weights, then the first script's entry 2, a block of optimizer state, and entry 3.
inline SavedPlan SamplePlan(uint64_t seed = 1, uint32_t requests = 40) {
  std::mt19937_64 random(seed);
  SavedPlan plan;
  const auto draw = [&](uint32_t length, uint32_t kinds) {  // one with planned requests; two requests may have none
    std::shared_ptr<const Script> script;
    do {
      script = RandomScript(random, length, kinds);
    } while (std::none_of(script->profile.blocks.begin(), script->profile.blocks.end(),
                          [](const ProfileBlock& block) { return block.planned; }));
    return WithBound(script);
  };
  plan.scripts = {draw(requests, 9), draw(requests / 2 + 1, 5)};
  const Script& script = *plan.scripts[0];
  uint32_t entry = 0;
  while (script.entries[entry].offset == kNone) ++entry;
  plan.opening.units = {7, 9, script.entries[entry].units, 11, 3};
  plan.opening.entries = {kNone, kNone, entry, kNone, kNone};
  plan.opening.before = 2;
  plan.program = "/usr/bin/train";
  plan.device = "A device";
  plan.device_bytes = uint64_t{80} << 30;
  plan.chunk_bytes = 2 << 20;
  plan.live_peak_bytes = 123456789;
  plan.held_without_bytes = 234567890;
  plan.live_without_bytes = 123456780;
  plan.created_ns = 1'700'000'000'000'000'000;
  plan.tool_version = 100;
  return plan;
}

// Everything except recomputed members.
inline void ExpectSame(const SavedPlan& a, const SavedPlan& b) {
  ASSERT_EQ(a.scripts.size(), b.scripts.size());
  for (size_t k = 0; k < a.scripts.size(); ++k) {
    const Script &s = *a.scripts[k], &t = *b.scripts[k];
    ASSERT_EQ(s.size(), t.size());
    EXPECT_EQ(s.profile.period, t.profile.period);
    EXPECT_EQ(s.profile.unroll, t.profile.unroll);
    EXPECT_EQ(s.height_bytes, t.height_bytes);
    EXPECT_EQ(s.lower_bound_bytes, t.lower_bound_bytes);
    EXPECT_EQ(s.successors, t.successors);
    EXPECT_EQ(s.contexts, t.contexts);
    for (uint32_t i = 0; i < s.size(); ++i) {
      EXPECT_EQ(s.entries[i].units, t.entries[i].units);
      EXPECT_EQ(s.entries[i].age, t.entries[i].age);
      EXPECT_EQ(s.entries[i].offset, t.entries[i].offset);
      EXPECT_EQ(s.entries[i].predecessors, t.entries[i].predecessors);
      EXPECT_EQ(s.profile.blocks[i].min_age, t.profile.blocks[i].min_age);
      EXPECT_EQ(s.profile.blocks[i].planned, t.profile.blocks[i].planned);
    }
  }
  EXPECT_EQ(a.opening.units, b.opening.units);
  EXPECT_EQ(a.opening.entries, b.opening.entries);
  EXPECT_EQ(a.opening.script, b.opening.script);
  EXPECT_EQ(a.opening.before, b.opening.before);
  EXPECT_EQ(a.program, b.program);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.device_bytes, b.device_bytes);
  EXPECT_EQ(a.chunk_bytes, b.chunk_bytes);
  EXPECT_EQ(a.live_peak_bytes, b.live_peak_bytes);
  EXPECT_EQ(a.held_without_bytes, b.held_without_bytes);
  EXPECT_EQ(a.live_without_bytes, b.live_without_bytes);
  EXPECT_EQ(a.created_ns, b.created_ns);
  EXPECT_EQ(a.tool_version, b.tool_version);
}

}  // namespace hotpack
