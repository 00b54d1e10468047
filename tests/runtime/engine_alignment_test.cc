// Blocks of 1 MiB and more at multiples of 64 KiB: by best fit, in grown memory, by script, displaced, next to blocks
// that stay, and by a saved plan.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/persist/saved_plan.h"
#include "tests/runtime/fake_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kAlignment = 64 << 10;

struct Played {
  uint64_t large = 0, misaligned = 0;
  hotpack_stats stats = {};
  std::shared_ptr<const SavedPlan> plan;
};

// Iterations of random sizes, the same each time but for a few. Some blocks of the first ones stay. `alignment`: of the
// engine.
Played Play(uint64_t seed, uint64_t alignment, std::shared_ptr<const SavedPlan> plan = nullptr,
            bool envelopes = false) {
  FakeDeviceMemory device(uint64_t{8} << 30);
  device.SetExtents({uint64_t{16} << 20, 8});
  EngineOptions options;
  options.logical_time = true;
  options.plan_time_limit_ns = 5'000'000;
  options.large_alignment = alignment;
  options.envelopes = envelopes;
  options.plan = std::move(plan);
  Engine engine(&device, options);
  Played run;
  std::mt19937_64 random(seed);
  std::vector<uint64_t> sizes;
  for (int i = 0; i < 60; ++i) {
    const uint64_t units = i % 3 == 0 ? 1 + random() % 300 : 2000 + random() % 8000;
    sizes.push_back(512 * units);
  }
  sizes[7] = kMiB;
  const auto ask = [&](uint64_t bytes) {
    DeviceAddress address = 0;
    EXPECT_EQ(engine.Allocate(bytes, 0, &address), EngineStatus::kOk);
    EXPECT_TRUE(device.Accessible(address, bytes));
    if (bytes >= kMiB) {
      ++run.large;
      run.misaligned += address % kAlignment != 0;
    }
    return address;
  };
  for (int iteration = 0; iteration < 14; ++iteration) {
    std::vector<DeviceAddress> live;
    engine.Mark();
    const int other = iteration >= 6 && iteration % 2 == 0 ? 11 : -1;
    for (int i = 0; i < 60; ++i) {
      if (iteration == 1 && i % 9 == 4) ask(sizes[i] / 2048 * 512 + 512);  // stays
      live.push_back(ask(sizes[i] + (i == other ? 3 * kMiB : 0)));
      const bool late = iteration == 9 && i < 30;  // places of the script are still in use: requests are displaced
      if (!late && live.size() > 12) {
        const size_t victim = static_cast<size_t>(i * 7) % live.size();
        EXPECT_EQ(engine.Release(live[victim], 0), EngineStatus::kOk);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    for (const DeviceAddress address : live) EXPECT_EQ(engine.Release(address, 0), EngineStatus::kOk);
  }
  EXPECT_EQ(device.FirstFault(), "");
  run.stats = engine.Stats();
  run.plan = engine.PlanToSave();
  return run;
}

TEST(EngineAlignment, LargeBlocksBeginAtMultiplesOf64KiB) {
  constexpr uint64_t kSeeds = 8;
  const uint64_t first = TestSeed();
  uint64_t planned = 0, displaced = 0, misaligned_without = 0, entries = 0;
  for (uint64_t seed = first; seed < first + kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Played run = Play(seed, kAlignment);
    EXPECT_EQ(run.misaligned, 0u);
    EXPECT_GT(run.large, 400u);
    planned += run.stats.planned;
    displaced += run.stats.displaced;
    ASSERT_NE(run.plan, nullptr);
    EXPECT_TRUE(IsAligned(*run.plan, kAlignment));
    const Played again = Play(seed, kAlignment, run.plan);
    EXPECT_EQ(again.misaligned, 0u);
    const Played by_envelope = Play(seed, kAlignment, nullptr, true);
    EXPECT_EQ(by_envelope.misaligned, 0u);
    entries += by_envelope.stats.envelope_entries;
    if (seed == first) misaligned_without = Play(seed, 512).misaligned;
  }
  EXPECT_GT(planned, kSeeds * 200);
  EXPECT_GT(entries, 0u) << "some have many displaced requests";
  EXPECT_GT(displaced, kSeeds);
  EXPECT_GT(misaligned_without, 100u);
  EXPECT_FALSE(IsAligned(*Play(first, 512).plan, kAlignment));
}

TEST(EngineAlignment, APlanThatIsNotAlignedIsNotFollowed) {
  const uint64_t seed = TestSeed();
  const Played unaligned = Play(seed, 512);
  ASSERT_FALSE(IsAligned(*unaligned.plan, kAlignment));
  const Played run = Play(seed, kAlignment, unaligned.plan);
  EXPECT_EQ(run.misaligned, 0u);
  EXPECT_EQ(run.stats.planned, Play(seed, kAlignment).stats.planned);
}

}  // namespace
}  // namespace hotpack
