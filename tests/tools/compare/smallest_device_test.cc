// The search of the smallest device: by hand, for jobs whose answer is known, and against every size.
#include "tools/compare/smallest_device.h"

#include <set>

#include "gtest/gtest.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tools/compare/compare_facts.h"
#include "tools/compare/peers.h"
#include "tools/recording/trace_facts.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Devices of `least` MiB and more suffice, but not those of `holes`.
SmallestDevice Find(uint64_t live, uint64_t held, uint64_t least, const std::set<uint64_t>& holes = {},
                    int* probes = nullptr) {
  return FindSmallestDevice(live * kMiB, held * kMiB, [&](uint64_t bytes) {
    if (probes != nullptr) ++*probes;
    const uint64_t size = bytes / kMiB;
    EXPECT_EQ(bytes % kDeviceStep, 0u);
    return DeviceProbe{size >= least && holes.count(size) == 0, 1000 - size, size};
  });
}

TEST(SmallestDeviceTest, TheLeastThatFits) {
  for (uint64_t least = 100; least <= 220; least += 2) EXPECT_EQ(Find(100, 220, least).bytes, least * kMiB);
  EXPECT_EQ(Find(99, 100, 100).bytes, 100 * kMiB) << "what is live, in whole steps";
  const SmallestDevice found = Find(100, 220, 150);
  EXPECT_EQ(found.device_calls, 850u) << "of the device that was found";
  EXPECT_EQ(found.synchronizations, 150u);
}

TEST(SmallestDeviceTest, FewProbes) {
  int probes = 0;
  Find(1000, 9000, 5002, {}, &probes);
  EXPECT_LE(probes, 17) << "12 of the bisection, 3 above it, the upper end";
}

// What was held without a limit may not suffice: a smaller device leads to other places.
TEST(SmallestDeviceTest, MoreThanWasHeld) {
  EXPECT_EQ(Find(100, 120, 130).bytes, 130 * kMiB);
  EXPECT_EQ(Find(100, 120, 10'000).bytes, 0u) << "unknown";
  EXPECT_EQ(Find(0, 0, 0).bytes, 0u) << "nothing was requested";
}

// To fit is not monotone. A size right above the result that does not fit moves it up.
TEST(SmallestDeviceTest, HolesAboveTheResult) {
  for (const uint64_t hole : {152, 154, 158}) EXPECT_GT(Find(100, 220, 150, {hole}).bytes, hole * kMiB);
  EXPECT_EQ(Find(100, 220, 150, {152}).bytes, 154 * kMiB);
}

Trace Load(const std::string& name) {
  const auto file = LoadTrace(HOTPACK_SOURCE_DIR "/tests/data/" + name);
  EXPECT_TRUE(file.ok()) << name;
  return file.ok() ? file->trace : Trace{};
}

// 30 MiB, then 10 MiB twice after it is gone. PyTorch's rules: a segment of 30 MiB, cut for the first 10 MiB; the rest
// serves the second. Then 22 MiB do not fit the free rest: what is free as a whole is given back only if needed.
TEST(SmallestDeviceTest, PyTorchGivesItsCacheBack) {
  Trace trace;
  const auto add = [&](EventKind kind, uint64_t id, uint64_t mebibytes) {
    trace.events.push_back({.kind = kind, .id = id, .bytes = mebibytes * kMiB});
  };
  add(EventKind::kAllocate, 1, 30);
  add(EventKind::kRelease, 1, 30);
  add(EventKind::kAllocate, 2, 40);
  add(EventKind::kRelease, 2, 40);
  const Comparison comparison = Compare(trace, {"pytorch", "cudamalloc"}, 0, true);
  EXPECT_EQ(comparison.peers[0].reserved_peak, 70 * kMiB);
  EXPECT_EQ(comparison.peers[0].smallest.bytes, 40 * kMiB);
  EXPECT_EQ(comparison.peers[0].smallest.device_calls, 4u) << "30, 40 refused, 30 given back, 40";
  EXPECT_EQ(comparison.peers[0].smallest.synchronizations, 1u);
  EXPECT_EQ(comparison.peers[1].smallest.bytes, 40 * kMiB);
  EXPECT_EQ(comparison.hotpack.smallest.bytes, 40 * kMiB);
}

// Every size from what is live to what is held: the result is the least from which on all that were tried fit, and one
// step less does not.
TEST(SmallestDeviceTest, AgainstEverySize) {
  for (const char* name : {"mlp-adam.csv", "cnn-carried.csv"}) {
    const Trace trace = Load(name);
    const Comparison all = Compare(trace, PeerNames(), 0, true);
    std::vector<PeerResult> rows = all.peers;
    rows.push_back(all.hotpack);
    for (const PeerResult& row : rows) {
      SCOPED_TRACE(std::string(name) + " " + row.name);
      const auto fits = [&](uint64_t capacity) {
        if (row.name == "hotpack") return !Compare(trace, {}, capacity).hotpack.out_of_memory;
        return !SimulatePeer(row.name, trace, {capacity}).out_of_memory;
      };
      ASSERT_GE(row.smallest.bytes, all.live_peak);
      EXPECT_LE(row.smallest.bytes, WholeSteps(row.reserved_peak));
      EXPECT_TRUE(fits(row.smallest.bytes));
      EXPECT_FALSE(fits(row.smallest.bytes - kDeviceStep));
      EXPECT_TRUE(fits(row.smallest.bytes + kDeviceStep));
    }
  }
}

TEST(SmallestDeviceTest, NotSearchedUnlessAsked) {
  EXPECT_EQ(Compare(Load("mlp-adam.csv"), {"pytorch"}, 0).hotpack.smallest.bytes, 0u);
}

}  // namespace
}  // namespace hotpack
