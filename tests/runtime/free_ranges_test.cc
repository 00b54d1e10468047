#include "runtime/memory/free_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory_resource>
#include <random>
#include <vector>

#include "runtime/base/node_pool.h"
#include "runtime/base/node_reserve.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;  // (begin, bytes)

Ranges List(const FreeRanges& free) { return {free.ranges().begin(), free.ranges().end()}; }

class FreeRangesTest : public ::testing::Test {
 protected:
  NodePool memory_;
  FreeRanges free_{&memory_};
};

TEST_F(FreeRangesTest, JoinsNeighbours) {
  free_.Add(100, 10);
  free_.Add(120, 10);
  EXPECT_EQ(List(free_), (Ranges{{100, 10}, {120, 10}}));
  free_.Add(110, 10);  // closes the gap
  EXPECT_EQ(List(free_), (Ranges{{100, 30}}));
  free_.Add(130, 5);
  free_.Add(90, 10);
  EXPECT_EQ(List(free_), (Ranges{{90, 45}}));
  EXPECT_EQ(free_.total(), 45u);
  free_.Add(200, 0);
  free_.Remove(200, 0);
  EXPECT_EQ(List(free_), (Ranges{{90, 45}}));
}

TEST_F(FreeRangesTest, RemoveSplits) {
  free_.Add(0, 100);
  free_.Remove(40, 20);
  EXPECT_EQ(List(free_), (Ranges{{0, 40}, {60, 40}}));
  free_.Remove(0, 10);
  free_.Remove(90, 10);
  EXPECT_EQ(List(free_), (Ranges{{10, 30}, {60, 30}}));
  free_.Remove(10, 30);
  EXPECT_EQ(List(free_), (Ranges{{60, 30}}));
}

TEST_F(FreeRangesTest, BestFitIsTheSmallestThenTheLowest) {
  free_.Add(0, 50);
  free_.Add(100, 20);
  free_.Add(200, 20);
  free_.Add(300, 30);
  uint64_t begin = 0;
  ASSERT_TRUE(free_.BestFit(15, &begin));
  EXPECT_EQ(begin, 100u);
  ASSERT_TRUE(free_.BestFit(21, &begin));
  EXPECT_EQ(begin, 300u);
  EXPECT_FALSE(free_.BestFit(51, &begin));
}

TEST_F(FreeRangesTest, AgreesWithAModel) {
  std::mt19937_64 random(TestSeed());
  constexpr uint64_t kSize = 200;
  std::vector<bool> is_free(kSize, false);
  for (int step = 0; step < 20000; ++step) {
    uint64_t begin = random() % kSize, bytes = 1 + random() % 12;
    bytes = std::min(bytes, kSize - begin);
    bool all_free = true, none_free = true;
    for (uint64_t a = begin; a < begin + bytes; ++a) (is_free[a] ? none_free : all_free) = false;
    if (none_free) {
      free_.Add(begin, bytes);
    } else if (all_free) {
      free_.Remove(begin, bytes);
    } else {
      continue;
    }
    for (uint64_t a = begin; a < begin + bytes; ++a) is_free[a] = none_free;

    Ranges expected;
    uint64_t total = 0;
    for (uint64_t a = 0; a < kSize; ++a) {
      if (!is_free[a]) continue;
      ++total;
      if (a > 0 && is_free[a - 1]) {
        ++expected.back().second;
      } else {
        expected.push_back({a, 1});
      }
    }
    ASSERT_EQ(List(free_), expected);
    ASSERT_EQ(free_.total(), total);
    uint64_t want = 1 + random() % 30;
    std::pair<uint64_t, uint64_t> best{UINT64_MAX, 0};  // (bytes, begin)
    for (auto [b, n] : expected) {
      if (n >= want) best = std::min(best, {n, b});
    }
    uint64_t found = 0;
    ASSERT_EQ(free_.BestFit(want, &found), best.first != UINT64_MAX);
    if (best.first != UINT64_MAX) {
      ASSERT_EQ(found, best.second);
    }
    uint64_t at = random() % kSize;
    auto it = free_.Containing(at);
    ASSERT_EQ(it != free_.ranges().end(), is_free[at]);
    if (is_free[at]) {
      ASSERT_TRUE(it->first <= at && at < it->first + it->second);
    }
  }
}

// Counts the most nodes of each size that were in use at once.
class CountedNodes : public std::pmr::memory_resource {
 public:
  std::map<size_t, size_t> most;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    const size_t size = (bytes + 15) / 16 * 16;  // as NodePool
    most[size] = std::max(most[size], ++used_[size]);
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    --used_[(bytes + 15) / 16 * 16];
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::map<size_t, size_t> used_;
};

// A steady state that comes and goes makes no heap allocation: the reserved nodes are enough for so many ranges, in
// whatever order they come and go.
TEST(FreeRangesNodes, NoMoreAreNeededThanReserved) {
  for (const size_t count : {1u, 20u, 300u, 20000u}) {
    CountedNodes reserved, used;
    ReserveBTreeNodes(&reserved, 2 * count);
    FreeRanges free(&used);
    std::mt19937_64 random(TestSeed());
    std::vector<Ranges::value_type> ranges;
    for (size_t i = 0; i < count; ++i) ranges.push_back({100 * i, 1 + random() % 90});
    for (int round = 0; round < 6; ++round) {
      if (round % 3 == 1) std::shuffle(ranges.begin(), ranges.end(), random);
      for (const auto& [begin, bytes] : ranges) free.Add(begin, bytes);
      if (round % 3 == 2) std::reverse(ranges.begin(), ranges.end());
      for (size_t i = 0; i < 2 * count; ++i) {  // some leave, others come
        const auto& [begin, bytes] = ranges[random() % count];
        const bool there = free.Containing(begin) != free.ranges().end();
        there ? free.Remove(begin, bytes) : free.Add(begin, bytes);
      }
      for (const auto& [begin, bytes] : ranges) {
        if (free.Containing(begin) != free.ranges().end()) free.Remove(begin, bytes);
      }
      ASSERT_EQ(free.total(), 0u);
    }
    for (const auto& [size, most] : used.most) EXPECT_LE(most, reserved.most[size]) << size << " bytes, " << count;
  }
}

}  // namespace
}  // namespace hotpack
