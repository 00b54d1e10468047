// The limit of waits for idle pages: what a wait in vain, and one that ends, make of it.
#include "runtime/engine/page_wait.h"

#include "gtest/gtest.h"

namespace hotpack {
namespace {

constexpr uint64_t kLimit = 1000;  // microseconds

PageWork Taking(const PageWait& wait) {
  PageWork work = wait.BoundedWork();
  work.take.push_back({0, 1 << 21});
  return work;
}

// Plays one change of pages. Returns whether it waits.
bool Play(PageWait* wait, bool in_vain) {
  PageWork work = Taking(*wait);
  wait->Begin(&work);
  const bool waits = !work.unfinished;
  if (waits) work.unfinished = in_vain;
  wait->End(work);
  return waits;
}

uint64_t Unfinished(const PageWait& wait) {
  hotpack_stats stats = {};
  wait.AddTo(&stats);
  return stats.page_waits_unfinished;
}

TEST(PageWait, WaitsInVainHalveTheLimitAndAreLeftOut) {
  PageWait wait(kLimit);
  uint64_t limit = kLimit, skips = 2;
  for (int round = 0; round < 8; ++round) {
    EXPECT_EQ(wait.BoundedWork().max_wait, limit);
    EXPECT_TRUE(Play(&wait, true));
    for (uint64_t i = 0; i < skips; ++i) EXPECT_FALSE(Play(&wait, true)) << round;
    limit /= 2;
    skips = std::min<uint64_t>(64, 2 * skips);
  }
  EXPECT_EQ(Unfinished(wait), 8u);
}

TEST(PageWait, AWaitThatEndsRestoresTheLimit) {
  PageWait wait(kLimit);
  EXPECT_TRUE(Play(&wait, true));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Play(&wait, false));
  EXPECT_EQ(wait.BoundedWork().max_wait, kLimit / 2);
  EXPECT_TRUE(Play(&wait, false));
  EXPECT_EQ(wait.BoundedWork().max_wait, kLimit);
  EXPECT_TRUE(Play(&wait, true)) << "none is left out";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Play(&wait, true)) << "two, as after the first";
  EXPECT_TRUE(Play(&wait, true));
}

TEST(PageWait, WorkThatTakesNoPagesCountsNot) {
  PageWait wait(kLimit);
  PageWork work = wait.BoundedWork();
  wait.Begin(&work);
  work.unfinished = true;
  wait.End(work);
  EXPECT_EQ(Unfinished(wait), 0u);
  EXPECT_EQ(wait.BoundedWork().max_wait, kLimit);
}

TEST(PageWait, WithoutALimitNothingIsLeftOut) {
  PageWait wait(UINT64_MAX);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Play(&wait, true));
  EXPECT_EQ(wait.BoundedWork().max_wait, UINT64_MAX);
  EXPECT_EQ(Unfinished(wait), 0u);
}

}  // namespace
}  // namespace hotpack
