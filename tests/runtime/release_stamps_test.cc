#include "runtime/memory/release_stamps.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

ReuseAfter Point(uint32_t stream, uint64_t tick) {
  ReuseAfter after;
  after.Add(stream, tick);
  return after;
}

TEST(ReuseAfterTest, KeepsTheLatestOfEachStream) {
  ReuseAfter after;
  EXPECT_TRUE(after.empty());
  after.Add(3, 5);
  after.Add(3, 4);
  after.Add(7, 9);
  ASSERT_EQ(after.count, 2u);
  EXPECT_EQ(after.points[0].tick, 5u);
  EXPECT_EQ(after.LatestTick(), 9u);
  after.Add(kAllStreams, 6);  // covers the first
  ASSERT_EQ(after.count, 1u);
  EXPECT_EQ(after.points[0].stream, 7u);
  EXPECT_EQ(after.all_tick, 6u);
  after.Add(1, 6);
  EXPECT_EQ(after.count, 1u);
}

TEST(ReuseAfterTest, TooManyStreamsAreAll) {
  ReuseAfter after;
  for (uint32_t s = 0; s <= ReuseAfter::kStreams; ++s) after.Add(s, 10 + s);
  EXPECT_EQ(after.count, 0u);
  EXPECT_EQ(after.all_tick, 10 + ReuseAfter::kStreams);
}

// A pooled release asks more of other streams than an ordered one, so it is never lost in a set of both.
TEST(ReuseAfterTest, APooledReleaseStaysOne) {
  const uint32_t block = PooledBlock(0x7f0000000200), other = PooledBlock(0);
  EXPECT_NE(block, 0u);
  EXPECT_NE(other, 0u);
  ReuseAfter after;
  after.Add(1, 5, block);
  after.Add(1, 9);
  ASSERT_EQ(after.count, 1u);
  EXPECT_EQ(after.points[0].tick, 9u);
  EXPECT_EQ(after.points[0].pooled_block, block);
  ReuseAfter ordered_first;
  ordered_first.Add(1, 9);
  ordered_first.Add(1, 5, block);
  EXPECT_EQ(ordered_first.points[0].pooled_block, block);
  EXPECT_EQ(ordered_first.points[0].tick, 9u);
  after.Add(1, 12, other);
  EXPECT_EQ(after.points[0].pooled_block, other);  // the latest
  ReuseAfter merged;
  merged.Add(2, 3);
  merged.Merge(after);
  ASSERT_EQ(merged.count, 2u);
  EXPECT_EQ(merged.points[1].pooled_block, other);
}

TEST(ReleaseStampsTest, APooledReleaseIsTakenAsOne) {
  std::pmr::unsynchronized_pool_resource nodes;
  ReleaseStamps stamps(&nodes);
  ReuseAfter put, taken;
  put.Add(1, 5, 7);
  stamps.Put(100, 200, put);
  stamps.Take(150, 160, &taken);
  ASSERT_EQ(taken.count, 1u);
  EXPECT_EQ(taken.points[0].pooled_block, 7u);
}

// Releases without a stamp count for all addresses until they are settled.
TEST(ReleaseStampsTest, ReleasesThatWereNotPutCountEverywhere) {
  std::pmr::unsynchronized_pool_resource nodes;
  ReleaseStamps stamps(&nodes);
  stamps.PutEverywhere(8);
  EXPECT_FALSE(stamps.empty());
  for (int i = 0; i < 2; ++i) {  // taking does not end it
    ReuseAfter taken;
    stamps.Take(1000, 2000, &taken);
    EXPECT_EQ(taken.all_tick, 8u);
  }
  stamps.Settle(8);
  EXPECT_TRUE(stamps.empty());
  stamps.PutEverywhere(8);  // settled already
  EXPECT_TRUE(stamps.empty());
}

TEST(ReleaseStampsTest, ARangeIsCutWhereABlockTakesPartOfIt) {
  std::pmr::unsynchronized_pool_resource nodes;
  ReleaseStamps stamps(&nodes);
  stamps.Put(100, 200, Point(1, 5));
  ReuseAfter middle, left, right, none;
  stamps.Take(120, 150, &middle);
  EXPECT_EQ(middle.LatestTick(), 5u);
  stamps.Take(120, 150, &none);  // the memory belongs to its new owner
  EXPECT_TRUE(none.empty());
  stamps.Take(0, 120, &left);
  stamps.Take(150, 1000, &right);
  EXPECT_EQ(left.LatestTick(), 5u);
  EXPECT_EQ(right.LatestTick(), 5u);
  EXPECT_TRUE(stamps.empty());
}

TEST(ReleaseStampsTest, WhatIsSettledIsNoMore) {
  std::pmr::unsynchronized_pool_resource nodes;
  ReleaseStamps stamps(&nodes);
  stamps.Put(0, 10, Point(1, 5));
  stamps.Put(10, 20, Point(2, 7));
  stamps.Settle(6);
  ReuseAfter after;
  stamps.Take(0, 20, &after);
  ASSERT_EQ(after.count, 1u);
  EXPECT_EQ(after.points[0].stream, 2u);
  stamps.Put(0, 10, Point(1, 8));
  stamps.Settle(8);
  EXPECT_TRUE(stamps.empty());
}

// Against a model of every address: the stamps of a taken range cover those of each of its addresses.
TEST(ReleaseStampsTest, AgainstAModelOfEveryAddress) {
  constexpr uint64_t kAddresses = 200;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::pmr::unsynchronized_pool_resource nodes;
    ReleaseStamps stamps(&nodes);
    std::array<std::map<uint32_t, uint64_t>, kAddresses> model;  // by address: stream → tick
    uint64_t settled = 0;
    for (uint64_t tick = 1; tick <= 200; ++tick) {
      const uint64_t begin = random() % kAddresses, end = begin + 1 + random() % (kAddresses - begin);
      ReuseAfter after;
      stamps.Take(begin, end, &after);
      for (uint64_t a = begin; a < end; ++a) {
        for (const auto& [stream, at] : model[a]) {
          bool covered = at <= settled || at <= after.all_tick;
          for (uint32_t i = 0; i < after.count; ++i) {
            covered = covered || (after.points[i].stream == stream && after.points[i].tick >= at);
          }
          ASSERT_TRUE(covered) << "address " << a << ", stream " << stream << ", tick " << at;
        }
        model[a].clear();
      }
      if (random() % 4 == 0) continue;  // it stays for a while
      const uint32_t stream = static_cast<uint32_t>(random() % 6);
      const ReuseAfter point = Point(stream == 5 ? kAllStreams : stream, tick);
      stamps.Put(begin, end, point);
      for (uint64_t a = begin; a < end; ++a) model[a] = {{stream == 5 ? kAllStreams : stream, tick}};
      if (random() % 16 == 0) stamps.Settle(settled = std::max(settled, tick - random() % 8 % tick));
    }
  }
}

// The engine reports to the next owner of memory, in whichever way it is served.
TEST(EngineReuseTest, TheNextOwnerIsTold) {
  FakeDeviceMemory memory;
  Engine engine(&memory, {});
  for (int i = 0; i < 2000; ++i) {  // dynamic first, then by script
    DeviceAddress a = 0, b = 0;
    ReuseAfter of_a, of_b;
    ASSERT_EQ(engine.Allocate(1 << 20, 0, &a, &of_a), EngineStatus::kOk);
    ASSERT_EQ(engine.Allocate(3 << 20, 0, &b, &of_b), EngineStatus::kOk);
    const auto tick = static_cast<uint64_t>(i) + 1;
    const ReuseAfter first = Point(1, tick), second = Point(2, tick);
    ASSERT_EQ(engine.Release(a, 0, &first), EngineStatus::kOk);
    ASSERT_EQ(engine.Release(b, 0, &second), EngineStatus::kOk);
    DeviceAddress again = 0;
    ReuseAfter after;
    ASSERT_EQ(engine.Allocate(512, 0, &again, &after), EngineStatus::kOk);
    const bool reused = (again >= a && again < a + (1 << 20)) || (again >= b && again < b + (3 << 20));
    EXPECT_EQ(after.LatestTick(), reused ? tick : after.LatestTick());
    ASSERT_EQ(engine.Release(again, 0, &first), EngineStatus::kOk);
    if (i % 50 == 49) engine.WaitPlan(-1);
  }
  EXPECT_GT(engine.Stats().planned, 1000u);
}

}  // namespace
}  // namespace hotpack
