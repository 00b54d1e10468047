#include "runtime/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/runtime/fake_device_memory.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 64 << 10;  // 128 units: small, so that places can be tried one by one
constexpr uint64_t kMany = uint64_t{1} << 40;

class ArenaTest : public ::testing::Test {
 protected:
  explicit ArenaTest(uint64_t chunks = 256) : device_(chunks * kChunk, kChunk), arena_(&device_) {}
  void SetUp() override { ASSERT_EQ(arena_.Open(8), MemoryStatus::kOk); }
  void TearDown() override {
    EXPECT_EQ(device_.FirstFault(), "");
    EXPECT_TRUE(arena_.Consistent());
    EXPECT_EQ(arena_.reserved(), device_.Held());
  }

  bool Run(PageWork* work) {
    arena_.Execute(work);
    return arena_.Finish(work);
  }
  // As the engine does it; 0 if there is no memory.
  DeviceAddress Allocate(uint64_t bytes, uint64_t create_up_to = kMany) {
    DeviceAddress address = 0;
    if (arena_.TryAllocate(bytes, &address)) return address;
    PageWork work;
    if (!arena_.BeginGrowth(bytes, create_up_to, create_up_to, &work)) return 0;
    if (!Run(&work)) return 0;
    if (!work.small) return work.block.begin;
    return arena_.TryAllocate(bytes, &address) ? address : 0;
  }
  uint64_t Chunks() const { return arena_.reserved() / kChunk; }

  FakeDeviceMemory device_;
  Arena arena_;
};

class ArenaOfManyChunks : public ArenaTest {
 protected:
  ArenaOfManyChunks() : ArenaTest(1024) {}
};

TEST_F(ArenaTest, GrowsByWholeChunksAndServesFromThem) {
  DeviceAddress a = Allocate(kChunk + 512);
  ASSERT_NE(a, 0u);
  EXPECT_TRUE(device_.Accessible(a, kChunk + 512));
  EXPECT_EQ(Chunks(), 2u);
  EXPECT_EQ(arena_.free_mapped(), kChunk - 512);
  uint64_t calls = device_.Calls();
  DeviceAddress b = Allocate(kChunk - 512);  // fits into the rest
  ASSERT_NE(b, 0u);
  EXPECT_EQ(device_.Calls(), calls);
  EXPECT_EQ(Chunks(), 2u);
  EXPECT_EQ(arena_.free_mapped(), 0u);
}

// Held: 80 chunks. A free range begins in the middle of a chunk.
//
//   │▓▓▓▓░░░░░░░░│▓▓▓▓│ V: 40 chunks │▓▓▓▓│
//
// A block of 4 chunks goes next to what is below, so that no gap is left there. If much more is free (V), it goes where
// it touches 4 chunks instead of 5: should it stay, fewer of them are lost.
TEST_F(ArenaOfManyChunks, LeavesNoGapBetweenBlocksIfLittleIsFree) {
  for (const bool much_free : {false, true}) {
    SCOPED_TRACE(much_free);
    const DeviceAddress below = Allocate(kChunk * 3 / 2);
    const DeviceAddress range = Allocate(kChunk * 17 / 2);
    const DeviceAddress wall = Allocate(2 * kChunk), v = Allocate(240 * kChunk), top = Allocate(288 * kChunk);
    ASSERT_EQ(Chunks(), 540u);
    ASSERT_EQ(range, below + kChunk * 3 / 2);
    arena_.Free(range, kChunk * 17 / 2);
    if (much_free) arena_.Free(v, 240 * kChunk);
    const DeviceAddress block = Allocate(4 * kChunk);
    if (much_free) {
      EXPECT_EQ(block % kChunk, 0u);
      EXPECT_LT(block, wall);
    } else {
      EXPECT_EQ(block, range);
      arena_.Free(v, 240 * kChunk);
    }
    arena_.Free(block, 4 * kChunk);
    arena_.Free(below, kChunk * 3 / 2);
    arena_.Free(wall, 2 * kChunk);
    arena_.Free(top, 288 * kChunk);
  }
}

TEST_F(ArenaTest, SmallRequestsShareAChunkThatIsGivenBackWhole) {
  DeviceAddress a = Allocate(512), b = Allocate(kChunk / 2);
  EXPECT_EQ(Chunks(), 1u);
  EXPECT_EQ(a / kChunk, b / kChunk);
  DeviceAddress large = Allocate(kChunk / 2 + 512);
  EXPECT_NE(large / kChunk, a / kChunk);  // although it would nearly fit there
  EXPECT_EQ(Chunks(), 2u);
  arena_.Free(a, 512);
  arena_.Free(b, kChunk / 2);
  EXPECT_EQ(arena_.free_mapped(), kChunk + kChunk / 2 - 512);
  EXPECT_NE(Allocate(2 * kChunk, /*create_up_to=*/0), 0u);  // its pages serve for anything again
  EXPECT_EQ(Chunks(), 3u);                                  // one moved, one new
}

TEST_F(ArenaTest, ASmallBlockMayLieAcrossTwoChunks) {
  std::vector<DeviceAddress> small;
  for (int i = 0; i < 5; ++i) small.push_back(Allocate(kChunk * 2 / 5 / 512 * 512));
  EXPECT_LE(Chunks(), 3u);
  for (DeviceAddress a : small) arena_.Free(a, kChunk * 2 / 5 / 512 * 512);
  EXPECT_EQ(arena_.free_mapped(), Chunks() * kChunk);
  uint64_t before = Chunks();
  EXPECT_NE(Allocate(before * kChunk, /*create_up_to=*/0), 0u);  // all pages, in one piece
  EXPECT_EQ(Chunks(), before);
}

//   before   |██░░|░░..|      █ live, ░ free and mapped, . no pages (in chunks of 4)
//   wanted    ████ : at the free piece, one new chunk instead of two
TEST_F(ArenaTest, GrowsAgainstFreePages) {
  DeviceAddress a = Allocate(kChunk), b = Allocate(kChunk);
  ASSERT_EQ(b, a + kChunk);
  arena_.Free(b, kChunk);
  DeviceAddress c = Allocate(2 * kChunk);
  EXPECT_EQ(c, b);
  EXPECT_EQ(Chunks(), 3u);
}

// Every place, in steps of one unit, against the one chosen: none needs fewer new pages.
TEST_F(ArenaTest, GrowthNeedsTheFewestNewPages) {
  std::mt19937_64 random(TestSeed());
  std::map<DeviceAddress, uint64_t> live;
  const uint64_t span = std::min<uint64_t>(256 * kChunk, arena_.bytes());
  int grown = 0;
  for (int step = 0; step < 1500; ++step) {
    if (live.size() > 12 || (!live.empty() && random() % 2 == 0)) {
      auto it = std::next(live.begin(), random() % live.size());
      arena_.Free(it->first, it->second);
      live.erase(it);
      if (random() % 8 == 0) {
        arena_.NewEpoch();
        PageWork trim;
        if (arena_.BeginTrim(&trim)) Run(&trim);
      }
      continue;
    }
    uint64_t bytes = kChunk / 2 + 512 * (1 + random() % 500);
    DeviceAddress address = 0;
    if (!arena_.TryAllocate(bytes, &address)) {
      // By brute force: live blocks bar places, mapped chunks cost nothing.
      uint64_t fewest = UINT64_MAX;
      for (DeviceAddress at = arena_.base(); at + bytes <= arena_.base() + span; at += 512) {
        auto next = live.upper_bound(at);
        if (next != live.end() && next->first < at + bytes) continue;
        if (next != live.begin() && std::prev(next)->first + std::prev(next)->second > at) continue;
        uint64_t missing = 0;
        for (DeviceAddress c = at / kChunk * kChunk; c < at + bytes; c += kChunk) missing += !arena_.Mapped(c, 512);
        fewest = std::min(fewest, missing);
      }
      PageWork work;
      ASSERT_TRUE(arena_.BeginGrowth(bytes, kMany, kMany, &work));
      EXPECT_EQ(work.TargetBytes() / kChunk, fewest) << "step " << step << ", " << bytes << " bytes";
      ASSERT_TRUE(Run(&work));
      address = work.block.begin;
      ++grown;
    }
    ASSERT_TRUE(device_.Accessible(address, bytes));
    live[address] = bytes;
  }
  EXPECT_GT(grown, 100);
}

TEST_F(ArenaTest, BeyondTheAllowancePagesAreMovedBeforeNewOnesAreMade) {
  DeviceAddress a = Allocate(8 * kChunk);
  DeviceAddress wall = Allocate(kChunk);
  arena_.Free(a, 8 * kChunk);
  EXPECT_EQ(Chunks(), 9u);
  DeviceAddress b = Allocate(10 * kChunk, 9 * kChunk);  // does not fit below the wall
  ASSERT_NE(b, 0u);
  EXPECT_GT(b, wall);
  EXPECT_EQ(Chunks(), 11u);  // 8 moved, 2 made
  EXPECT_EQ(device_.synchronizations(), 1u);
  EXPECT_TRUE(device_.Accessible(b, 10 * kChunk));
  EXPECT_FALSE(device_.Accessible(a, 512));
  DeviceAddress c = Allocate(3 * kChunk, kMany);  // within the allowance nothing waits for the device
  ASSERT_NE(c, 0u);
  EXPECT_EQ(device_.synchronizations(), 1u);
}

TEST_F(ArenaTest, ShortfallIsWhatMustBeMadeBeyondTheAllowance) {
  Allocate(4 * kChunk);
  DeviceAddress b = Allocate(2 * kChunk);
  Allocate(kChunk);
  arena_.Free(b, 2 * kChunk);
  PageWork work;
  ASSERT_TRUE(arena_.BeginGrowth(6 * kChunk, 8 * kChunk, 8 * kChunk, &work));
  EXPECT_EQ(work.TargetBytes() / kChunk, 6u);
  EXPECT_EQ(arena_.Shortfall(work, 8 * kChunk), 3u);  // 2 free chunks and one within the allowance
  ASSERT_TRUE(Run(&work));
  EXPECT_EQ(Chunks(), 11u);
}

TEST_F(ArenaTest, TrimGivesBackWhatWasNotUsedSinceTheEpoch) {
  DeviceAddress a = Allocate(4 * kChunk), b = Allocate(4 * kChunk);
  arena_.Free(a, 4 * kChunk);
  arena_.Free(b, 4 * kChunk);
  PageWork none;
  EXPECT_FALSE(arena_.BeginTrim(&none));  // all used in this epoch
  arena_.NewEpoch();
  a = Allocate(4 * kChunk);
  arena_.Free(a, 4 * kChunk);
  PageWork work;
  ASSERT_TRUE(arena_.BeginTrim(&work));
  Run(&work);
  EXPECT_EQ(Chunks(), 4u);
  EXPECT_TRUE(arena_.Mapped(a, 4 * kChunk));
}

// A script's zone that has become ordinary memory goes back to the script, with its pages and the blocks in it.
TEST_F(ArenaTest, AZoneIsTakenBack) {
  AddressRange zone;
  ASSERT_TRUE(arena_.TakeZone(8 * kChunk, &zone));
  PageWork work;
  ASSERT_TRUE(arena_.BeginMap(zone.begin, 6 * kChunk, zone, kMany, &work));
  ASSERT_TRUE(Run(&work));
  arena_.RetireZone(zone, {{zone.begin + kChunk, 512}});  // a chunk for small requests
  const DeviceAddress place = zone.begin + 3 * kChunk;
  ASSERT_TRUE(arena_.TryAllocateAt(place, 2 * kChunk));
  EXPECT_FALSE(arena_.TryAllocateAt(place + kChunk, 512)) << "in use";
  EXPECT_FALSE(arena_.TryAllocateAt(zone.begin + 6 * kChunk, 512)) << "without pages";
  EXPECT_FALSE(arena_.TryAllocateAt(zone.begin + kChunk + 512, 512)) << "for small requests";
  const uint64_t calls = device_.Calls();
  EXPECT_FALSE(arena_.RetakeZone(zone, 512)) << "not all is free";
  EXPECT_FALSE(arena_.RetakeZone(zone, 2 * kChunk));
  ASSERT_TRUE(arena_.RetakeZone(zone, 512 + 2 * kChunk));
  EXPECT_EQ(device_.Calls(), calls);
  EXPECT_EQ(arena_.free_mapped(), 0u);
  EXPECT_TRUE(arena_.Mapped(zone.begin, 6 * kChunk));
  EXPECT_FALSE(arena_.RetakeZone(zone, 512 + 2 * kChunk)) << "it is taken";
  DeviceAddress elsewhere = Allocate(4 * kChunk);
  EXPECT_TRUE(elsewhere + 4 * kChunk <= zone.begin || elsewhere >= zone.begin + zone.bytes);
}

// Pages are taken from a zone by whole extents. One across its end would take those of others along.
TEST_F(ArenaTest, AZoneThatAnExtentCrossesIsNotTakenBack) {
  device_.SetExtents({4 * kChunk, 1});
  AddressRange zone;
  ASSERT_TRUE(arena_.TakeZone(16 * kChunk, &zone));
  for (const DeviceAddress begin : {zone.begin, zone.begin + 8 * kChunk}) {
    PageWork work;
    ASSERT_TRUE(arena_.BeginMap(begin, 4 * kChunk, {begin, 4 * kChunk}, kMany, &work));
    ASSERT_TRUE(Run(&work));
    ASSERT_EQ(arena_.ExtentAt(begin).bytes, 4 * kChunk);
  }
  arena_.RetireZone(zone, {});
  EXPECT_FALSE(arena_.RetakeZone({zone.begin + 2 * kChunk, 6 * kChunk}, 0)) << "across the beginning";
  EXPECT_FALSE(arena_.RetakeZone({zone.begin + 4 * kChunk, 6 * kChunk}, 0)) << "across the end";
  EXPECT_TRUE(arena_.RetakeZone({zone.begin + 4 * kChunk, 4 * kChunk}, 0));
}

TEST_F(ArenaTest, NothingIsUnmappedWhileAStreamCaptures) {
  DeviceAddress a = Allocate(4 * kChunk);
  Allocate(kChunk);
  arena_.Free(a, 4 * kChunk);
  device_.SetCapturing(true);
  DeviceAddress b = Allocate(6 * kChunk, 0);  // wants to move pages, and makes new ones
  ASSERT_NE(b, 0u);
  EXPECT_TRUE(device_.Accessible(b, 6 * kChunk));
  EXPECT_TRUE(device_.Accessible(a, 4 * kChunk));
  EXPECT_EQ(Chunks(), 11u);
  arena_.NewEpoch();
  PageWork work;
  if (arena_.BeginTrim(&work)) Run(&work);
  EXPECT_TRUE(device_.Accessible(a, 4 * kChunk));
  EXPECT_EQ(device_.unmaps(), 0u);
}

TEST_F(ArenaTest, AZoneIsFreshAndGetsThePagesThatAreFree) {
  DeviceAddress a = Allocate(5 * kChunk);
  DeviceAddress keep = Allocate(kChunk);
  arena_.Free(a, 5 * kChunk);
  AddressRange zone;
  ASSERT_TRUE(arena_.TakeZone(8 * kChunk - 512, &zone));
  EXPECT_EQ(zone.bytes, 8 * kChunk);
  EXPECT_GT(zone.begin, keep);
  EXPECT_FALSE(arena_.Mapped(zone.begin, 512));
  PageWork work;
  ASSERT_TRUE(arena_.BeginMapAvailable(zone, 7 * kChunk, &work));  // 5 free chunks and one more
  ASSERT_TRUE(Run(&work));
  EXPECT_TRUE(arena_.Mapped(zone.begin, 6 * kChunk));
  EXPECT_FALSE(arena_.Mapped(zone.begin + 6 * kChunk, kChunk));
  EXPECT_EQ(Chunks(), 7u);
  PageWork rest;
  ASSERT_TRUE(arena_.BeginMap(zone.begin + 5 * kChunk, 3 * kChunk, zone, kMany, &rest));
  ASSERT_TRUE(Run(&rest));
  EXPECT_TRUE(device_.Accessible(zone.begin, 8 * kChunk));
  PageWork none;
  EXPECT_FALSE(arena_.BeginMap(zone.begin, zone.bytes, zone, kMany, &none));  // all there
}

//   zone   |████░░██|██░░....|....|    two live blocks, one across a chunk's end; the last chunk has no pages
TEST_F(ArenaTest, ARetiredZoneIsOrdinaryMemoryAroundWhatLives) {
  AddressRange zone;
  ASSERT_TRUE(arena_.TakeZone(3 * kChunk, &zone));
  PageWork work;
  ASSERT_TRUE(arena_.BeginMap(zone.begin, 2 * kChunk, zone, kMany, &work));
  ASSERT_TRUE(Run(&work));
  std::vector<AddressRange> live = {{zone.begin, kChunk / 2}, {zone.begin + kChunk * 3 / 4, kChunk / 2}};
  arena_.RetireZone(zone, live);
  EXPECT_TRUE(arena_.Consistent());
  EXPECT_EQ(arena_.free_mapped(), kChunk);  // a quarter and three quarters
  DeviceAddress a = Allocate(kChunk * 3 / 4);
  EXPECT_EQ(a, zone.begin + kChunk * 5 / 4);
  arena_.Free(a, kChunk * 3 / 4);
  for (const AddressRange& block : live) arena_.Free(block.begin, block.bytes);
  EXPECT_EQ(arena_.free_mapped(), 2 * kChunk);
  AddressRange again;
  ASSERT_TRUE(arena_.TakeZone(arena_.bytes() - 2 * kChunk, &again) || arena_.TakeZone(kChunk, &again));
}

//   zone   |█░░░░░░░|█░█░░███|░░░░░░██|██░░░░░░|    little, more than half, and a block across a chunk's end
TEST_F(ArenaTest, ChunksOfARetiredZoneWithLittleInThemAreForSmallRequests) {
  AddressRange zone;
  ASSERT_TRUE(arena_.TakeZone(4 * kChunk, &zone));
  PageWork work;
  ASSERT_TRUE(arena_.BeginMap(zone.begin, zone.bytes, zone, kMany, &work));
  ASSERT_TRUE(Run(&work));
  const DeviceAddress second = zone.begin + kChunk;
  const std::vector<AddressRange> live = {{zone.begin, kChunk / 8},
                                          {second, kChunk / 8},
                                          {second + kChunk / 4, kChunk / 8},
                                          {second + kChunk * 5 / 8, kChunk * 3 / 8},
                                          {zone.begin + kChunk * 11 / 4, kChunk / 2}};
  arena_.RetireZone(zone, live);
  EXPECT_TRUE(arena_.Consistent());
  const uint64_t created = arena_.reserved();
  const auto lies_in = [&](DeviceAddress address, uint64_t chunk) { return (address - zone.begin) / kChunk == chunk; };
  EXPECT_TRUE(lies_in(Allocate(kChunk / 2), 0));
  EXPECT_TRUE(lies_in(Allocate(kChunk * 3 / 8), 0));
  EXPECT_TRUE(lies_in(Allocate(kChunk * 5 / 8), 2));
  EXPECT_TRUE(lies_in(Allocate(kChunk * 9 / 16), 3));
  EXPECT_EQ(arena_.reserved(), created);
  arena_.Free(zone.begin, kChunk / 8);
  EXPECT_TRUE(arena_.Consistent());
}

TEST_F(ArenaTest, NoAddressesLeft) {
  AddressRange zone;
  EXPECT_FALSE(arena_.TakeZone(arena_.bytes() + 1, &zone));
  ASSERT_TRUE(arena_.TakeZone(arena_.bytes(), &zone));
  PageWork work;
  EXPECT_FALSE(arena_.BeginGrowth(kChunk, kMany, kMany, &work));
  EXPECT_FALSE(arena_.BeginGrowth(512, kMany, kMany, &work));
}

//   chunks   |  kept   ░░░|░ kept ░|   (other)   |░░ kept░|
TEST_F(ArenaTest, FragmentsAreWhatKeptBlocksLeaveOver) {
  DeviceAddress base = Allocate(6 * kChunk);
  std::vector<AddressRange> kept = {
      {base, kChunk * 3 / 4}, {base + kChunk * 5 / 4, kChunk / 4}, {base + kChunk * 9 / 2, kChunk / 4}};
  std::vector<AddressRange> fragments = arena_.Fragments(kept);
  ASSERT_EQ(fragments.size(), 4u);
  EXPECT_EQ(fragments[0].begin, base + kChunk * 3 / 4);
  EXPECT_EQ(fragments[0].bytes, kChunk / 2);
  EXPECT_EQ(fragments[1].begin, base + kChunk * 3 / 2);
  EXPECT_EQ(fragments[1].bytes, kChunk / 2);
  EXPECT_EQ(fragments[2].begin, base + 4 * kChunk);
  EXPECT_EQ(fragments[2].bytes, kChunk / 2);
  EXPECT_EQ(fragments[3].begin, base + kChunk * 19 / 4);
  EXPECT_EQ(fragments[3].bytes, kChunk / 4);
  EXPECT_TRUE(arena_.Fragments({}).empty());
}

TEST_F(ArenaTest, TakeRangeTakesWhatIsFreeOfIt) {
  DeviceAddress a = Allocate(kChunk), b = Allocate(kChunk), c = Allocate(kChunk);
  ASSERT_EQ(c, a + 2 * kChunk);
  arena_.Free(a, kChunk);
  arena_.Free(c, kChunk);
  ASSERT_TRUE(arena_.TakeRange({a + 512, 3 * kChunk - 1024}));
  EXPECT_EQ(arena_.free_mapped(), 1024u);
  EXPECT_FALSE(arena_.TakeRange({a, 64 * kChunk}));  // not all mapped: nothing done
  EXPECT_EQ(arena_.free_mapped(), 1024u);
  arena_.Free(a + 512, kChunk - 512);
  arena_.Free(c, kChunk - 512);
  EXPECT_EQ(arena_.free_mapped(), 2 * kChunk);
  arena_.Free(b, kChunk);
  EXPECT_EQ(Allocate(3 * kChunk), a);
}

// Small blocks lie in the upper half of the addresses, in chunks of their own; those of a range are given back there.
TEST_F(ArenaTest, KindsKeepApart) {
  DeviceAddress large = Allocate(kChunk);
  DeviceAddress first = Allocate(kChunk / 2), second = Allocate(kChunk / 2);
  EXPECT_GE(std::min(first, second), arena_.base() + arena_.bytes() / 2);
  EXPECT_LT(large, arena_.base() + arena_.bytes() / 2);
  arena_.Free(first, kChunk / 2);
  ASSERT_TRUE(arena_.TakeRange({first, kChunk / 2}));
  EXPECT_EQ(arena_.free_mapped(), 0u);
  arena_.Free(first, kChunk / 2);
  EXPECT_TRUE(arena_.Consistent());
  EXPECT_EQ(Allocate(kChunk / 2), first);
}

TEST(ArenaOpen, TriesFewerAddressesWhenTheReservationFails) {
  FakeDeviceMemory device(256 * kChunk, kChunk);
  int reserves = 0;
  device.SetHook([&](const char* call) {
    if (std::string(call) != "Reserve") return;
    device.FailEvery(++reserves <= 2 ? 1 : 0);
  });
  Arena arena(&device);
  ASSERT_EQ(arena.Open(8), MemoryStatus::kOk);
  EXPECT_EQ(arena.bytes(), 2 * 256 * kChunk);
  device.FailEvery(1);
  device.SetHook(nullptr);
  Arena none(&device);
  EXPECT_NE(none.Open(8), MemoryStatus::kOk);
  EXPECT_FALSE(none.open());
}

}  // namespace
}  // namespace hotpack
