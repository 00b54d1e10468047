// Which entries were live together: against a set of pairs, and as the packer's input.
#include "runtime/script/live_moments.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "packer/bounds.h"
#include "packer/pack.h"
#include "tests/property/random.h"

namespace hotpack {
namespace {

Instance ToInstance(const LiveMoments& moments, const std::vector<uint32_t>& units) {
  Instance instance;
  const auto residencies = moments.Residencies(static_cast<uint32_t>(units.size()));
  for (size_t e = 0; e < units.size(); ++e) {
    Block block;
    block.size = units[e];
    block.residency = residencies[e];
    instance.blocks.push_back(block);
  }
  return instance;
}

TEST(LiveMoments, AlternativesShareTheirMemory) {
  LiveMoments moments;
  for (const uint32_t branch : {1u, 2u}) {  // entry 0, then either 1 or 2
    moments.Born(0);
    moments.Born(branch);
    moments.Died(branch);
    moments.Died(0);
  }
  EXPECT_TRUE(moments.Conflict(0, 1));
  EXPECT_TRUE(moments.Conflict(0, 2));
  EXPECT_FALSE(moments.Conflict(1, 2));
  const std::vector<uint32_t> units = {10, 100, 100};
  EXPECT_EQ(moments.Load(units), 110u);
  EXPECT_EQ(Pack(ToInstance(moments, units)).placement.height, 110);
}

TEST(LiveMoments, ARepetitionAddsNoMoment) {
  LiveMoments moments;
  for (int i = 0; i < 5; ++i) {
    moments.Born(0);
    moments.Born(1);
    moments.Died(0);
    moments.Born(2);
    moments.Died(1);
    moments.Died(2);
    EXPECT_EQ(moments.moments().size(), 2u);
  }
}

TEST(LiveMoments, AnEntryAloneHasAMoment) {
  LiveMoments moments;
  moments.Born(3);
  moments.Died(3);
  moments.Born(3);
  moments.Died(3);
  ASSERT_EQ(moments.moments().size(), 1u);
  EXPECT_EQ(moments.Residencies(4)[3].size(), 1u);
  EXPECT_TRUE(moments.Residencies(4)[0].empty());
}

TEST(LiveMoments, TwoLiveBlocksOfAnEntryOverlap) {
  LiveMoments moments;
  moments.Born(0);
  EXPECT_FALSE(moments.Overlaps(0));
  moments.Born(0);
  EXPECT_TRUE(moments.Overlaps(0));
  moments.Died(0);
  EXPECT_EQ(moments.LiveBlocks(0), 1u);
  moments.Born(1);
  EXPECT_TRUE(moments.Conflict(0, 1)) << "one block is still live";
}

// Random lives: the pairs that met, each in a moment; no other pair; the load of one iteration.
TEST(LiveMoments, AgreesWithAllPairs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    property::Random random(seed);
    const uint32_t entries = 2 + static_cast<uint32_t>(random.Below(12));
    std::vector<uint32_t> units;
    for (uint32_t e = 0; e < entries; ++e) units.push_back(1 + static_cast<uint32_t>(random.Below(50)));
    LiveMoments moments;
    std::multiset<uint32_t> live;
    std::set<std::pair<uint32_t, uint32_t>> met;
    std::set<uint32_t> twice;
    uint64_t most = 0;
    for (int step = 0; step < 300; ++step) {
      const auto e = static_cast<uint32_t>(random.Below(entries));
      if (live.count(e) > 0 && (random.Below(2) == 0 || live.count(e) > 1)) {
        moments.Died(e);
        live.erase(live.find(e));
        continue;
      }
      if (live.count(e) > 0) twice.insert(e);
      for (const uint32_t other : live) met.insert({std::min(e, other), std::max(e, other)});
      moments.Born(e);
      live.insert(e);
      uint64_t sum = 0;
      for (const uint32_t each : std::set<uint32_t>(live.begin(), live.end())) sum += units[each];
      most = std::max(most, sum);
    }
    moments.Close();
    std::set<std::pair<uint32_t, uint32_t>> in_moments;
    for (const std::vector<uint32_t>& moment : moments.moments()) {
      for (const uint32_t a : moment) {
        for (const uint32_t b : moment) {
          if (a < b) in_moments.insert({a, b});
        }
      }
    }
    for (uint32_t a = 0; a < entries; ++a) {
      EXPECT_EQ(moments.Overlaps(a), twice.contains(a)) << "seed " << seed;
      for (uint32_t b = a + 1; b < entries; ++b) {
        EXPECT_EQ(moments.Conflict(a, b), met.contains({a, b})) << "seed " << seed;
        EXPECT_EQ(in_moments.contains({a, b}), met.contains({a, b})) << "seed " << seed << ": " << a << " and " << b;
      }
    }
    EXPECT_LE(moments.Load(units), most) << "seed " << seed;
    EXPECT_LE(moments.moments().size(), in_moments.size() + entries) << "each moment has a new pair";
  }
}

}  // namespace
}  // namespace hotpack
