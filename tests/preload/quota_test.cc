// A quota between the program and the driver, preloaded before or after hotpack, on the simulated device. It must see
// hotpack's own calls, or those of the program, exactly where it would see the program's without hotpack.
#include <regex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;

constexpr int kLimitMiB = 64, kBlockMiB = 10;

Outcome RunClient(const std::string& preload, const char* way, const char* enabled = "") {
  const bool library = std::string(way) == "library";
  return hotpack_test::RunProgram(
      {HOTPACK_TEST_DIR "/quota_client" + std::string(library ? "_library" : ""), library ? "link" : way},
      {{"LD_PRELOAD", preload},
       {"LD_LIBRARY_PATH", HOTPACK_SIMGPU_LIBRARIES ":" HOTPACK_LIBRARIES},
       {"QUOTA_LIMIT", std::to_string(kLimitMiB << 20)},
       {"SIMGPU_MEMORY", "1G"},
       {"HOTPACK", enabled}});
}

struct Seen {
  int allocs = -1, creates = -1, peak = -1, refused = -1, depth = -1;
};

Seen ByQuota(const Outcome& outcome) {
  static const std::regex line(R"(quota: (\d+) allocs, (\d+) creates, peak (\d+) MiB, (\d+) refused, depth (\d+))");
  std::smatch found;
  if (!std::regex_search(outcome.err, found, line)) return {};
  const auto number = [&](int i) { return std::stoi(found[i]); };
  return {number(1), number(2), number(3), number(4), number(5)};
}

// The blocks that the client got in each of its three rounds.
std::vector<int> Blocks(const Outcome& outcome) {
  std::vector<int> blocks;
  static const std::regex line(R"((\d+) blocks, then)");
  for (auto i = std::sregex_iterator(outcome.out.begin(), outcome.out.end(), line); i != std::sregex_iterator(); ++i) {
    blocks.push_back(std::stoi((*i)[1]));
  }
  return blocks;
}

class Quota : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  const std::string quota_ = std::string(HOTPACK_TEST_DIR "/libquota_") + std::get<0>(GetParam()) + ".so";
  const char* const way_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, Quota,
                         testing::Combine(testing::Values("exports", "answers", "proc"),
                                          testing::Values("link", "dlsym", "proc")),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param);
                         });

// Behind hotpack it sees the memory that hotpack takes, and its refusals are hotpack's refusals.
TEST_P(Quota, BehindHotpackSeesItsCalls) {
  const Outcome outcome = RunClient(HOTPACK_PRELOAD ":" + quota_, way_);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Seen seen = ByQuota(outcome);
  EXPECT_GT(seen.creates, 0) << outcome.err;
  EXPECT_GT(seen.refused, 0);
  EXPECT_LE(seen.peak, kLimitMiB);
  EXPECT_EQ(seen.depth, 1) << "a call came back to the quota";
  for (const int blocks : Blocks(outcome)) {
    EXPECT_GE(blocks, kLimitMiB / kBlockMiB - 1) << outcome.out;
    EXPECT_LE(blocks, kLimitMiB / kBlockMiB) << outcome.out;
  }
  EXPECT_EQ(Blocks(outcome).size(), 3u) << outcome.out;
}

// libhotpack.so has no hooks. A quota of any kind sees its calls.
TEST_P(Quota, SeesTheCallsOfTheLibraryWithoutHooks) {
  const Outcome outcome = RunClient(quota_, "library");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Seen seen = ByQuota(outcome);
  EXPECT_GT(seen.creates, 0) << outcome.err;
  EXPECT_GT(seen.refused, 0);
  EXPECT_LE(seen.peak, kLimitMiB);
  EXPECT_EQ(seen.depth, 1);
}

// In front of hotpack it sees the calls of the program that it sees without hotpack.
TEST_P(Quota, InFrontOfHotpackSeesTheProgramsCalls) {
  const Outcome off = RunClient(quota_ + ":" + HOTPACK_PRELOAD, way_, "0");
  const Outcome on = RunClient(quota_ + ":" + HOTPACK_PRELOAD, way_);
  ASSERT_EQ(off.code, 0) << off.err;
  ASSERT_EQ(on.code, 0) << on.err;
  const Seen without = ByQuota(off), with = ByQuota(on);
  EXPECT_EQ(with.allocs, without.allocs) << on.err;
  EXPECT_EQ(with.refused, without.refused);
  EXPECT_EQ(with.peak, without.peak);
  EXPECT_LE(with.depth, 1) << "a call came back to the quota";
  EXPECT_EQ(Blocks(on), Blocks(off));
}

// With hotpack off the preload changes nothing.
TEST_P(Quota, BehindAnIdleHotpackSeesTheProgramsCalls) {
  const Outcome alone = RunClient(quota_, way_);
  const Outcome off = RunClient(HOTPACK_PRELOAD ":" + quota_, way_, "0");
  ASSERT_EQ(alone.code, 0) << alone.err;
  ASSERT_EQ(off.code, 0) << off.err;
  EXPECT_EQ(Blocks(off), Blocks(alone));
  EXPECT_LE(ByQuota(off).depth, 1);
}

}  // namespace
