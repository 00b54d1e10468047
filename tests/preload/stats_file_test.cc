#include "runtime/persist/stats_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace hotpack {
namespace {

TEST(StatsFile, WhatIsWrittenIsRead) {
  const hotpack_test::TemporaryDirectory directory;
  StatsFileHeader* header = CreateStatsFile(directory.path().c_str());
  ASSERT_NE(header, nullptr);
  ProcessStats process;
  const std::string path = directory.path() + "/stats." + std::to_string(getpid());
  ASSERT_TRUE(ReadStatsFile(path, &process));
  EXPECT_EQ(process.arenas, 0u);
  EXPECT_EQ(process.stats.steady_iteration, -1);
  StatsSlot* first = TakeStatsSlot(header);
  StatsSlot* second = TakeStatsSlot(header);
  ASSERT_NE(first, second);
  first->stats.requests = 5;
  first->stats.steady_iteration = 3;
  second->stats.requests = 7;
  first->load.fill(3);
  first->current = {.held = 400, .live = 300, .driver_calls = 7};
  second->current = {.held = 50, .live = 20, .driver_calls = 1};
  header->passed_through = 2;
  header->failed = {.count = 3, .bytes = 100, .total = 400, .free = 50, .held = 300, .live = 250, .requests = 9};
  ASSERT_TRUE(ReadStatsFile(path, &process));  // without any flush
  EXPECT_EQ(process.pid, getpid());
  EXPECT_EQ(process.program, "stats_file_test");
  EXPECT_EQ(process.arenas, 2u);
  EXPECT_EQ(process.stats.requests, 12u);
  EXPECT_EQ(process.stats.passed_through, 2u);
  EXPECT_EQ(process.current.held, 450u);
  EXPECT_EQ(process.current.live, 320u);
  EXPECT_EQ(process.current.driver_calls, 10u);  // with the requests passed through
  EXPECT_EQ(process.failed.count, 3u);
  EXPECT_EQ(process.failed.bytes, 100u);
  EXPECT_EQ(process.failed.requests, 9u);
  EXPECT_EQ(process.stats.steady_iteration, -1);  // the busier one's
  EXPECT_TRUE(process.load.empty());              // it has no plan
  second->load.fill(4);
  ASSERT_TRUE(ReadStatsFile(path, &process));
  EXPECT_EQ(process.load, std::vector<uint64_t>(kLoadColumns, 4));
}

TEST(StatsFile, MoreArenasThanSlots) {
  const hotpack_test::TemporaryDirectory directory;
  StatsFileHeader* header = CreateStatsFile(directory.path().c_str());
  for (uint32_t i = 0; i < kStatsSlots; ++i) TakeStatsSlot(header)->stats.requests = 1;
  EXPECT_EQ(TakeStatsSlot(header), nullptr);
  ProcessStats process;
  ASSERT_TRUE(ReadStatsFile(directory.path() + "/stats." + std::to_string(getpid()), &process));
  EXPECT_EQ(process.arenas, kStatsSlots + 1);
  EXPECT_EQ(process.stats.requests, kStatsSlots);
}

TEST(StatsFile, WhatIsNotOneIsLeftOut) {
  const hotpack_test::TemporaryDirectory directory;
  StatsFileHeader* header = CreateStatsFile(directory.path().c_str());
  TakeStatsSlot(header)->stats.requests = 1;
  const std::string own = directory.path() + "/stats." + std::to_string(getpid());
  std::filesystem::copy_file(own, directory.path() + "/stats.1");
  std::filesystem::resize_file(directory.path() + "/stats.1", 100);
  std::filesystem::copy_file(own, directory.path() + "/stats.2");
  std::fstream(directory.path() + "/stats.2", std::ios::in | std::ios::out | std::ios::binary) << "X";
  std::ofstream(directory.path() + "/stats.3");
  EXPECT_EQ(ReadStatsDirectory(directory.path()).size(), 1u);
  EXPECT_FALSE(IsOtherStatsVersion(own));
  for (const char* name : {"/stats.1", "/stats.2", "/stats.3", "/none"}) {
    EXPECT_FALSE(IsOtherStatsVersion(directory.path() + name)) << name;
  }
  header->version = kStatsVersion - 1;
  EXPECT_TRUE(IsOtherStatsVersion(own));
  EXPECT_TRUE(ReadStatsDirectory(directory.path()).empty());
  EXPECT_TRUE(ReadStatsDirectory("/nowhere").empty());
  EXPECT_EQ(CreateStatsFile("/nowhere"), nullptr);
}

TEST(Combine, AddsUpAndTakesTheBusiest) {
  hotpack_stats stats[2] = {};
  stats[0].requests = 10;
  stats[0].live_peak = 100;
  stats[0].ns_per_request = 40;
  stats[0].steady_iteration = 2;
  stats[1].requests = 3;
  stats[1].live_peak = 50;
  stats[1].ns_per_request = 90;
  stats[1].steady_iteration = 7;
  stats[0].no_plan_reason = HOTPACK_NO_PLAN_DIFFERENT;
  stats[1].no_plan_reason = HOTPACK_NO_PLAN_TOO_SHORT;
  const hotpack_stats sum = Combine(stats, 2);
  EXPECT_EQ(sum.no_plan_reason, HOTPACK_NO_PLAN_DIFFERENT);
  EXPECT_EQ(sum.requests, 13u);
  EXPECT_EQ(sum.live_peak, 150u);
  EXPECT_EQ(sum.ns_per_request, 40u);
  EXPECT_EQ(sum.steady_iteration, 2);
  EXPECT_EQ(Combine(stats, 0).steady_iteration, -1);
}

}  // namespace
}  // namespace hotpack
