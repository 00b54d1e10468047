// Public instances and recorded traces, if they lie next to the repository.
#include "shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <numeric>

#include "packer/best_fit.h"
#include "packer/bounds.h"
#include "packer/csv.h"
#include "packer/pack.h"
#include "packer/skyline.h"
#include "packer/validator.h"
#include "tests/support/sanitized.h"

namespace hotpack {
namespace {

using ::testing::IsEmpty;

#ifdef HOTPACK_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

double Ratio(Bytes height, Bytes bound) { return static_cast<double>(height) / static_cast<double>(bound); }

// Best-fit with the other plausible tie rule: of blocks with equal lifetime the one with the smaller index, whatever
// the sizes.
Bytes BestFitHeightWithIndexTies(const Instance& instance) {
  const Timeline timeline = MakeTimeline(instance);
  std::vector<int32_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return timeline.lifetimes[a] > timeline.lifetimes[b]; });
  std::vector<int32_t> ranks(order.size());
  for (size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<int32_t>(order.size() - i);
  StopCheck never(std::numeric_limits<int64_t>::max(), nullptr);
  Placement placement;
  Skyline(timeline).Dive(ranks, std::numeric_limits<Bytes>::max(), &never, &placement.offsets, &placement.height);
  EXPECT_THAT(Validate(instance, placement), IsEmpty());
  return placement.height;
}

void PrintResult(const std::string& name, size_t blocks, const PackResult& best_fit, const PackResult& best) {
  std::printf("%-24s %6zu blocks, bound %12lld, best-fit %.6f in %7.2f ms, auto %.6f in %8.2f ms (%s)\n", name.c_str(),
              blocks, static_cast<long long>(best.lower_bound), Ratio(best_fit.placement.height, best.lower_bound),
              static_cast<double>(best_fit.nanoseconds) * 1e-6, Ratio(best.placement.height, best.lower_bound),
              static_cast<double>(best.nanoseconds) * 1e-6, best.algorithm);
}

PackResult PackFor(const Instance& instance, Algorithm algorithm, int64_t milliseconds) {
  PackOptions options;
  options.algorithm = algorithm;
  options.time_limit_ns = milliseconds * 1'000'000;
  PackResult result = Pack(instance, options);
  EXPECT_EQ(result.status, PackStatus::kOk);
  EXPECT_THAT(Validate(instance, result.placement), IsEmpty());
  return result;
}

// Heights of the published best-fit relative to the lower bound as others have measured them, the better of the two tie
// rules (size, index) each.
TEST(SharedInstancesTest, PublishedBestFitHasTheKnownRatios) {
  const std::string folder = SharedFolder("instances");
  if (folder.empty()) GTEST_SKIP() << "no shared instances (set HOTPACK_SHARED)";
  const std::map<std::string, double> known = {{"A", 1.162},   {"B", 1.225},         {"C", 1.262},
                                               {"D", 1.185},   {"F", 1.272},         {"G", 1.187},
                                               {"I", 1.397},   {"K", 1.198},         {"somas_resnet50", 1.0042},
                                               {"S_1", 1.045}, {"random_10k", 1.026}};
  for (const auto& [name, ratio] : known) {
    const absl::StatusOr<NamedInstance> read = ReadCsvFile(folder + "/" + name + ".csv");
    if (!read.ok()) continue;
    const Bytes bound = MaxLoad(read->instance);
    const Placement placement = PackBestFit(read->instance);
    EXPECT_THAT(Validate(read->instance, placement), IsEmpty());
    const Bytes by_index = BestFitHeightWithIndexTies(read->instance);
    std::printf("%-16s known %.4f, ties by size %.4f, by index %.4f\n", name.c_str(), ratio,
                Ratio(placement.height, bound), Ratio(by_index, bound));
    EXPECT_NEAR(Ratio(std::min(placement.height, by_index), bound), ratio, 0.0006) << name;
  }
}

TEST(SharedInstancesTest, AutoIsValidAndNotWorseThanBestFit) {
  const std::vector<std::string> paths = CsvFilesIn(SharedFolder("instances"));
  if (paths.empty()) GTEST_SKIP() << "no shared instances (set HOTPACK_SHARED)";
  for (const std::string& path : paths) {
    const absl::StatusOr<NamedInstance> read = ReadCsvFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    const PackResult best_fit = PackFor(read->instance, Algorithm::kBestFit, 60'000);
    const PackResult best = PackFor(read->instance, Algorithm::kAuto, 1000);
    PrintResult(FileStem(path), read->ids.size(), best_fit, best);
    EXPECT_LE(best.placement.height, best_fit.placement.height) << path;
  }
}

// The load is the least height of each, which is proved by a placement of that height. Most take a fraction of a
// second.
TEST(SharedInstancesTest, KnownBenchmarksArePackedAtTheirBound) {
  if (kSanitized) GTEST_SKIP() << "too slow with a sanitizer";
  const std::string folder = SharedFolder("instances");
  if (folder.empty()) GTEST_SKIP() << "no shared instances (set HOTPACK_SHARED)";
  for (const char* name : {"A", "B", "C", "F", "G", "I", "K"}) {
    const absl::StatusOr<NamedInstance> read = ReadCsvFile(folder + "/" + name + ".csv");
    if (!read.ok()) continue;
    const PackResult best = PackFor(read->instance, Algorithm::kAuto, 10'000);
    PrintResult(name, read->ids.size(), best, best);
    EXPECT_EQ(best.placement.height, MaxLoad(read->instance)) << name;
    EXPECT_TRUE(best.proven_optimal) << name;
  }
}

// At the load on a machine of which the test has a share; a sanitizer leaves time for less.
TEST(SharedTracesTest, CyclicIterationsArePackedAtTheirBound) {
  const std::vector<std::string> paths = CsvFilesIn(SharedFolder("traces"));
  if (paths.empty()) GTEST_SKIP() << "no shared traces (set HOTPACK_SHARED)";
  for (const std::string& path : paths) {
    const std::optional<Instance> instance = CyclicInstanceOfTrace(path);
    ASSERT_TRUE(instance.has_value()) << path;
    const PackResult best_fit = PackFor(*instance, Algorithm::kBestFit, 60'000);
    const PackResult best = PackFor(*instance, Algorithm::kAuto, kSanitized ? 1000 : 10'000);
    PrintResult(FileStem(path), instance->blocks.size(), best_fit, best);
    EXPECT_LE(Ratio(best.placement.height, best.lower_bound), kSanitized ? 1.005 : 1.0) << path;
  }
}

TEST(SharedTracesTest, WholeRecordingsAreWithinOnePercentOfTheBound) {
  const std::vector<std::string> paths = CsvFilesIn(SharedFolder("traces"));
  if (paths.empty()) GTEST_SKIP() << "no shared traces (set HOTPACK_SHARED)";
  for (const std::string& path : paths) {
    const std::optional<Instance> instance = WholeTrace(path);
    ASSERT_TRUE(instance.has_value()) << path;
    const PackResult best = PackFor(*instance, Algorithm::kAuto, 1000);
    PrintResult(FileStem(path), instance->blocks.size(), best, best);
    EXPECT_LE(Ratio(best.placement.height, best.lower_bound), 1.01) << path;
  }
}

}  // namespace
}  // namespace hotpack
