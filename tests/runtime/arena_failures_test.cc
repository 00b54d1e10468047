// Arenas on a device whose calls fail.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "runtime/memory/arena.h"
#include "tests/runtime/fake_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 64 << 10;
constexpr uint64_t kMany = uint64_t{1} << 40;

// Random work while every k-th driver call fails: live blocks stay disjoint and accessible, and the books stay right.
void RandomWorkWithFailures(uint64_t chunks, const ExtentLimits& extents) {
  uint64_t seed = TestSeed();
  for (uint64_t k = 1; k <= 40; ++k) {
    SCOPED_TRACE("every call number " + std::to_string(k));
    std::mt19937_64 random(seed + k);
    FakeDeviceMemory device(chunks * kChunk, kChunk);
    device.SetExtents(extents);
    Arena arena(&device);
    ASSERT_EQ(arena.Open(8), MemoryStatus::kOk);
    device.FailEvery(k);
    std::map<DeviceAddress, uint64_t> live;
    AddressRange zone;
    bool has_zone = false;
    uint64_t served = 0;
    auto check = [&] {
      ASSERT_TRUE(arena.Consistent());
      ASSERT_EQ(device.FirstFault(), "");
      ASSERT_EQ(arena.reserved(), device.Held());
      DeviceAddress last = 0;
      for (auto [address, bytes] : live) {
        ASSERT_GE(address, last);
        ASSERT_TRUE(device.Accessible(address, bytes));
        last = address + bytes;
      }
    };
    auto run = [&](PageWork* work) {
      arena.Execute(work);
      return arena.Finish(work);
    };
    for (int step = 0; step < 400; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          uint64_t bytes = 512 * (1 + random() % (random() % 2 ? 60 : 400));
          DeviceAddress address = 0;
          bool ok = arena.TryAllocate(bytes, &address);
          PageWork work;
          if (!ok && arena.BeginGrowth(bytes, random() % 2 ? kMany : 0, random() % 2 ? kMany : 0, &work) &&
              run(&work)) {
            ok = !work.small || arena.TryAllocate(bytes, &address);
            ASSERT_TRUE(ok);
            if (!work.small) address = work.block.begin;
          }
          if (ok) {
            ASSERT_TRUE(live.emplace(address, bytes).second);
            ++served;
          }
          break;
        }
        case 3:
        case 4:
          if (!live.empty()) {
            auto it = std::next(live.begin(), random() % live.size());
            arena.Free(it->first, it->second);
            live.erase(it);
          }
          break;
        case 5: {
          if (random() % 2) arena.NewEpoch();
          PageWork work;
          if (arena.BeginTrim(&work)) run(&work);
          break;
        }
        case 6:
          if (!has_zone) {
            has_zone = arena.TakeZone((1 + random() % 10) * kChunk, &zone);
          } else {
            std::vector<AddressRange> in_zone;  // what lives there from now on: up to one block a mapped chunk
            for (DeviceAddress c = zone.begin; c < zone.begin + zone.bytes; c += kChunk) {
              if (!arena.Mapped(c, kChunk) || random() % 3 == 0) continue;
              in_zone.push_back({c + 512 * (random() % 60), 512 * (1 + random() % 60)});
              live.emplace(in_zone.back().begin, in_zone.back().bytes);
            }
            arena.RetireZone(zone, in_zone);
            has_zone = false;
          }
          break;
        case 7:
          if (has_zone) {
            PageWork work;
            bool begun = random() % 2 ? arena.BeginMap(zone.begin, zone.bytes, zone, random() % 2 ? kMany : 0, &work)
                                      : arena.BeginMapAvailable(zone, 0, &work);
            if (begun) run(&work);
          }
          break;
      }
      ASSERT_NO_FATAL_FAILURE(check()) << "step " << step;
    }
    EXPECT_TRUE(k < 8 || served > 20) << served;
    // Afterwards, all is well: everything can be released and given back but what could not be unmapped.
    device.FailEvery(0);
    for (auto [address, bytes] : live) arena.Free(address, bytes);
    if (has_zone) arena.RetireZone(zone, {});
    arena.NewEpoch();
    PageWork work;
    if (arena.BeginTrim(&work)) run(&work);
    ASSERT_EQ(device.FirstFault(), "");
    EXPECT_LE(device.Held(), device.stuck() * kChunk);
  }
}

TEST(ArenaFailures, EveryKthDriverCall) { RandomWorkWithFailures(64, {0}); }
TEST(ArenaFailures, EveryKthDriverCallInLargeHandles) { RandomWorkWithFailures(96, {8 * kChunk, 2}); }

}  // namespace
}  // namespace hotpack
