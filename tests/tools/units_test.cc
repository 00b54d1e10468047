#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/subprocess.h"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/run/no_plan_text.h"

namespace hotpack {
namespace {

TEST(UnitsTest, Sizes) {
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("4096"), 4096);
  EXPECT_EQ(ParseSize("700B"), 700);
  EXPECT_EQ(ParseSize("512K"), 512 << 10);
  EXPECT_EQ(ParseSize("300M"), 300 << 20);
  EXPECT_EQ(ParseSize("1.5GiB"), 3ll << 29);
  EXPECT_EQ(ParseSize("6GB"), 6'000'000'000);
  EXPECT_EQ(ParseSize("1.5kB"), 1500);
  EXPECT_EQ(ParseSize("1048576T"), 1ll << 60);
  for (const char* bad :
       {"", "M", "-1", "+1", " 1", "1 M", "1m", "1mb", "1KB", "1e3", "0x10", "nan", "inf", "1048577T", ".5M", "1M1"}) {
    EXPECT_EQ(ParseSize(bad), std::nullopt) << bad;
  }
}

TEST(UnitsTest, Durations) {
  EXPECT_EQ(ParseDuration("20ns"), 20);
  EXPECT_EQ(ParseDuration("20us"), 20'000);
  EXPECT_EQ(ParseDuration("500ms"), 500'000'000);
  EXPECT_EQ(ParseDuration("0.5s"), 500'000'000);
  EXPECT_EQ(ParseDuration("2m"), 120'000'000'000);
  for (const char* bad : {"", "2", "0s", "-1s", "s", "2 s", "2sec", "0.1ns", "2h", "100000s", "nans"}) {
    EXPECT_EQ(ParseDuration(bad), std::nullopt) << bad;
  }
}

TEST(UnitsTest, SizesForPeople) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(9728), "9.5 KiB");
  EXPECT_EQ(FormatSize(300 << 20), "300.0 MiB");
  EXPECT_EQ(FormatSize(UINT64_MAX), "16.0 EiB");
}

TEST(UnitsTest, Counts) {
  EXPECT_EQ(CountText(0, "stream"), "0 streams");
  EXPECT_EQ(CountText(1, "stream"), "1 stream");
  EXPECT_EQ(CountText(2, "stream"), "2 streams");
  EXPECT_EQ(CountText(1, "copy"), "1 copy");
  EXPECT_EQ(CountText(3, "copy"), "3 copies");
  EXPECT_EQ(CountText(3, "day"), "3 days");
  EXPECT_EQ(CountText(1, "other process"), "1 other process");
  EXPECT_EQ(CountText(2, "other process"), "2 other processes");
  EXPECT_EQ(CountText(2, "launch"), "2 launches");
  EXPECT_EQ(CountText(uint64_t{1} << 63, "byte"), "9223372036854775808 bytes");
}

// Each reason has words of its own, and they are on the page of statistics.
TEST(NoPlanTextTest, EveryReason) {
  const std::string page = hotpack_test::ReadFile(HOTPACK_SOURCE_DIR "/docs/statistics.md");
  hotpack_stats stats = {};
  EXPECT_EQ(NoPlanText(stats), "");
  std::set<std::string> texts;
  for (uint64_t reason = HOTPACK_NO_PLAN_TOO_SHORT; reason <= HOTPACK_NO_PLAN_GIVEN_UP; ++reason) {
    stats.no_plan_reason = reason;
    const std::string text = NoPlanText(stats);
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_NE(page.find("| " + std::to_string(reason) + " | " + text + " |"), std::string::npos) << text;
  }
  stats.planned = 1;
  EXPECT_EQ(NoPlanText(stats), "");
  stats = {};
  stats.no_plan_reason = HOTPACK_NO_PLAN_GIVEN_UP + 1;
  EXPECT_EQ(NoPlanText(stats), "") << "of a later version";
}

}  // namespace
}  // namespace hotpack
