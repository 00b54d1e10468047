// The arena's large handles: they are mapped and unmapped whole, and cost hardly any memory.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/memory/arena.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 64 << 10;
constexpr uint64_t kMany = uint64_t{1} << 40;

class ArenaExtentsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(256, {8 * kChunk, 1}); }
  void TearDown() override {
    EXPECT_EQ(device_->FirstFault(), "");
    EXPECT_TRUE(arena_->Consistent());
    EXPECT_EQ(arena_->reserved(), device_->Held());
  }
  void Open(uint64_t chunks, const ExtentLimits& extents) {
    device_ = std::make_unique<FakeDeviceMemory>(chunks * kChunk, kChunk);
    device_->SetExtents(extents);
    arena_ = std::make_unique<Arena>(device_.get());
    ASSERT_EQ(arena_->Open(8), MemoryStatus::kOk);
  }
  bool Run(PageWork* work) {
    arena_->Execute(work);
    return arena_->Finish(work);
  }
  DeviceAddress Allocate(uint64_t bytes, uint64_t create_up_to = kMany, uint64_t ahead_up_to = 0) {
    DeviceAddress address = 0;
    if (arena_->TryAllocate(bytes, &address)) return address;
    PageWork work;
    if (!arena_->BeginGrowth(bytes, create_up_to, ahead_up_to, &work) || !Run(&work)) return 0;
    if (!work.small) return work.block.begin;
    return arena_->TryAllocate(bytes, &address) ? address : 0;
  }
  uint64_t Held() const { return arena_->reserved() / kChunk; }

  std::unique_ptr<FakeDeviceMemory> device_;
  std::unique_ptr<Arena> arena_;
};

TEST(ExtentTableTest, FindsTheHighestChunkWithPages) {
  constexpr DeviceAddress kBase = uint64_t{7} << 30;
  ExtentTable table;
  table.Open(kBase, 200 * kChunk, kChunk);
  const auto at = [&](uint64_t chunk) { return kBase + chunk * kChunk; };
  EXPECT_EQ(table.MappedEnd(at(0), at(200)), at(0));
  table.Register({at(3), {1, 4 * kChunk}});
  table.Register({at(150), {2, kChunk}});
  EXPECT_EQ(table.MappedEnd(at(0), at(200)), at(151));
  EXPECT_EQ(table.MappedEnd(at(0), at(150)), at(7));
  EXPECT_EQ(table.MappedEnd(at(0), at(5)), at(5)) << "in the middle of an extent";
  EXPECT_EQ(table.MappedEnd(at(10), at(150)), at(10));
  EXPECT_EQ(table.MappedEnd(at(10), at(10)), at(10));
  table.Forget({at(150), kChunk});
  EXPECT_EQ(table.MappedEnd(at(7), at(200)), at(7));
}

TEST_F(ArenaExtentsTest, AStretchTakesFewHandlesAndOneCallForAccess) {
  const DeviceAddress a = Allocate(21 * kChunk);  // 8 + 8 + 4 + 1
  ASSERT_NE(a, 0u);
  EXPECT_TRUE(device_->Accessible(a, 21 * kChunk));
  EXPECT_EQ(device_->creates(), 4u);
  EXPECT_EQ(arena_->calls().create, 4u);
  EXPECT_EQ(arena_->calls().map, 4u);
  EXPECT_EQ(arena_->calls().set_access, 1u);
  EXPECT_EQ(Held(), 21u);
}

//   extent   |████████|   a block of it goes: the rest of the extent cannot move, its pages are free for best fit only
//            |███░░░░█|
TEST_F(ArenaExtentsTest, AnExtentInWhichABlockLivesStays) {
  const DeviceAddress a = Allocate(8 * kChunk);
  arena_->Free(a + 3 * kChunk, 4 * kChunk);
  EXPECT_EQ(arena_->Returnable(), 0u);
  arena_->NewEpoch();
  PageWork none;
  EXPECT_FALSE(arena_->BeginTrim(&none));
  EXPECT_EQ(Allocate(4 * kChunk), a + 3 * kChunk);
  arena_->Free(a, 8 * kChunk);
  EXPECT_EQ(arena_->Returnable(), 8 * kChunk);
  arena_->NewEpoch();
  PageWork work;
  ASSERT_TRUE(arena_->BeginTrim(&work));
  Run(&work);
  EXPECT_EQ(Held(), 0u);
  EXPECT_EQ(device_->unmaps(), 1u);
}

// Only partly used extents of several chunks keep free memory from other places.
TEST_F(ArenaExtentsTest, FreeMemoryOfPartlyUsedExtentsIsStuck) {
  const DeviceAddress a = Allocate(13 * kChunk);  // 8 + 4 + 1
  EXPECT_EQ(arena_->Stuck(), 0u);
  arena_->Free(a + 6 * kChunk, 4 * kChunk);  // 2 of the first, 2 of the second
  EXPECT_EQ(arena_->Stuck(), 4 * kChunk);
  arena_->Free(a + 10 * kChunk, 2 * kChunk);  // the second is free
  EXPECT_EQ(arena_->Stuck(), 2 * kChunk);
  arena_->Free(a + 12 * kChunk, 512);  // the last is a chunk
  EXPECT_EQ(arena_->Stuck(), 2 * kChunk);
  arena_->Free(a, 6 * kChunk);
  arena_->Free(a + 12 * kChunk + 512, kChunk - 512);
  EXPECT_EQ(arena_->Stuck(), 0u);
}

// Pages move to a place that is too short for their extent: the extent goes, a smaller one comes.
TEST_F(ArenaExtentsTest, ATooLargeExtentIsReplaced) {
  const DeviceAddress a = Allocate(8 * kChunk);
  AddressRange zone;
  ASSERT_TRUE(arena_->TakeZone(2 * kChunk, &zone));
  arena_->Free(a, 8 * kChunk);
  PageWork work;
  ASSERT_TRUE(arena_->BeginMap(zone.begin, 2 * kChunk, zone, 0, &work));
  ASSERT_TRUE(Run(&work));
  EXPECT_TRUE(device_->Accessible(zone.begin, 2 * kChunk));
  EXPECT_FALSE(device_->Accessible(a, 512));
  EXPECT_EQ(Held(), 2u);
}

TEST_F(ArenaExtentsTest, ExtentsThatFitMoveWithoutNewOnes) {
  const DeviceAddress a = Allocate(13 * kChunk);  // 8 + 4 + 1
  AddressRange zone;
  ASSERT_TRUE(arena_->TakeZone(13 * kChunk, &zone));
  arena_->Free(a, 13 * kChunk);
  const uint64_t created = device_->creates();
  PageWork work;
  ASSERT_TRUE(arena_->BeginMapAvailable(zone, 0, &work));
  ASSERT_TRUE(Run(&work));
  EXPECT_TRUE(device_->Accessible(zone.begin, 13 * kChunk));
  EXPECT_EQ(device_->creates(), created);
  EXPECT_EQ(Held(), 13u);
}

TEST_F(ArenaExtentsTest, TheLastMemoryOfADeviceComesInSmallHandles) {
  Open(13, {8 * kChunk, 1});
  const DeviceAddress a = Allocate(8 * kChunk);
  const DeviceAddress b = Allocate(5 * kChunk, kMany, kMany);  // ahead there is no memory
  ASSERT_NE(b, 0u);
  EXPECT_TRUE(device_->Accessible(b, 5 * kChunk));
  EXPECT_EQ(Held(), 13u);
  EXPECT_EQ(Allocate(kChunk), 0u);
  arena_->Free(a, 8 * kChunk);
}

// While the job only grows, blocks share extents. Later an extent ends with its block.
TEST_F(ArenaExtentsTest, GrowthReachesAheadUntilSomethingIsReleased) {
  Allocate(8 * kChunk);
  const DeviceAddress a = Allocate(3 * kChunk, kMany, kMany);
  EXPECT_EQ(Held(), 16u);
  EXPECT_EQ(Allocate(5 * kChunk), a + 3 * kChunk);
  EXPECT_EQ(device_->creates(), 2u);
  EXPECT_NE(Allocate(3 * kChunk, kMany, 18 * kChunk), 0u);  // above what growth may reach
  EXPECT_EQ(Held(), 19u);
  arena_->Free(a, 3 * kChunk);
  EXPECT_NE(Allocate(5 * kChunk, kMany, kMany), 0u);
  EXPECT_EQ(Held(), 24u);
}

// Chunks of one extent are of one kind, also after a zone has ended.
TEST_F(ArenaExtentsTest, SmallRequestsDoNotBreakIntoALargeExtent) {
  AddressRange zone;
  ASSERT_TRUE(arena_->TakeZone(8 * kChunk, &zone));
  PageWork work;
  ASSERT_TRUE(arena_->BeginMap(zone.begin, zone.bytes, zone, kMany, &work));
  ASSERT_TRUE(Run(&work));
  arena_->RetireZone(zone, {{zone.begin, 512}});
  EXPECT_TRUE(arena_->Consistent());
  EXPECT_LT(Allocate(7 * kChunk) - zone.begin, zone.bytes);
  const DeviceAddress small = Allocate(512);
  EXPECT_GE(small - zone.begin, zone.bytes);
}

// What is held by and free around a block of 1 chunk in an extent of 8 is a fragment, which a script may use.
TEST_F(ArenaExtentsTest, FragmentsReachToTheEndsOfTheirExtents) {
  const DeviceAddress a = Allocate(16 * kChunk);
  arena_->Free(a, 16 * kChunk);
  const std::vector<AddressRange> fragments = arena_->Fragments({{a + 2 * kChunk, kChunk}});
  ASSERT_EQ(fragments.size(), 2u);
  EXPECT_EQ(fragments[0].begin, a);
  EXPECT_EQ(fragments[0].bytes, 2 * kChunk);
  EXPECT_EQ(fragments[1].begin, a + 3 * kChunk);
  EXPECT_EQ(fragments[1].bytes, 5 * kChunk);
}

struct Growth {
  uint64_t creates = 0, held = 0, accesses = 0;
};

// A job that only grows, to 64 GiB.
Growth Grow(const std::vector<uint64_t>& sizes, const ExtentLimits& extents) {
  constexpr uint64_t kTotal = uint64_t{64} << 30;
  FakeDeviceMemory device(uint64_t{80} << 30);
  device.SetExtents(extents);
  Engine engine(&device, {});
  uint64_t live = 0;
  for (size_t i = 0; live + sizes[i % sizes.size()] <= kTotal; ++i) {
    DeviceAddress address = 0;
    EXPECT_EQ(engine.Allocate(sizes[i % sizes.size()], 0, &address), EngineStatus::kOk);
    live += sizes[i % sizes.size()];
  }
  EXPECT_EQ(device.FirstFault(), "");
  const hotpack_stats stats = engine.Stats();
  EXPECT_EQ(stats.handles_created, device.creates());
  EXPECT_EQ(stats.handles_mapped, device.creates());
  return {device.creates(), device.Held(), stats.access_calls};
}

TEST(ArenaGrowth, To64GiBTakesFewHandles) {
  constexpr uint64_t kMiB = 1 << 20;
  const std::vector<std::vector<uint64_t>> jobs = {
      {kMiB},        {2 * kMiB},         {20 * kMiB},
      {64 * kMiB},   {100 * kMiB + 512}, {300 * kMiB},
      {1024 * kMiB}, {65536 * kMiB},     {700'160, 5 * kMiB, 33 * kMiB + 1024, 130 * kMiB, 4096, 515 * kMiB}};
  for (const std::vector<uint64_t>& sizes : jobs) {
    SCOPED_TRACE(std::to_string(sizes[0]) + " bytes first");
    const Growth single = Grow(sizes, {0}), large = Grow(sizes, {});
    EXPECT_GE(single.creates, 32'000u);
    EXPECT_LE(large.creates, 2'500u);
    EXPECT_LE(large.held, single.held + single.held / 200);
    RecordProperty("creates_" + std::to_string(sizes[0]), static_cast<int>(large.creates));
  }
}

}  // namespace
}  // namespace hotpack
