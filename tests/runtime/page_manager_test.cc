#include "runtime/engine/page_manager.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fake_device_memory.h"
#include "runtime/base/node_pool.h"
#include "script_helper.h"

namespace hotpack {
namespace {

constexpr uint64_t kChunk = 64 << 10;
constexpr uint32_t kChunkUnits = kChunk / kBlockUnit;

class PageManagerTest : public testing::Test {
 protected:
  explicit PageManagerTest(uint64_t device_bytes = 64 * kChunk) : device_(device_bytes, kChunk) {
    EngineLock lock(mutex_);
    EXPECT_EQ(pages_.Open(lock), MemoryStatus::kOk);
  }
  ~PageManagerTest() override { EXPECT_EQ(device_.FirstFault(), ""); }

  PageManager::GrowStatus Grow(uint32_t units, DeviceAddress* address, bool zone_given = false) {
    EngineLock lock(mutex_);
    EngineRequest request;
    request.bytes = units * kBlockUnit;
    request.units = units;
    bool foreign = false;
    const auto status = pages_.Grow(lock, request, policy_, zone_given, &foreign, address);
    if (status == PageManager::GrowStatus::kOk) blocks_.CountLive(units);
    return status;
  }
  // Follows a script of the given blocks in a zone of its own.
  void Follow(const std::vector<TestBlock>& blocks) {
    script_ = ScriptOf(blocks);
    ASSERT_TRUE(pages_.TakeZone(*script_));
    follower_.Start(script_, 0, pages_.base(), pages_.zone().begin);
    pages_.BeginScript();
  }
  // Leaves `chunks` chunks free and mapped, below one in use, while the device works.
  void LeaveFreeAndWork(uint32_t chunks) {
    DeviceAddress address = 0, kept = 0;
    ASSERT_EQ(Grow(chunks * kChunkUnits, &address), PageManager::GrowStatus::kOk);
    ASSERT_EQ(Grow(kChunkUnits, &kept), PageManager::GrowStatus::kOk);
    pages_.Free(address, chunks * kChunk, false);
    blocks_.RemoveLive(chunks * kChunkUnits);
    device_.SetBusy(true);
  }
  // The script asks for its next entry: its pages are mapped.
  bool MapNext(uint32_t units) {
    EngineLock lock(mutex_);
    blocks_.CountLive(units);
    const Follower::Answer answer = follower_.Next(units, history_.Append(units), history_);
    EXPECT_EQ(answer.outcome, Follower::Outcome::kUnmapped);
    return pages_.MapEntry(lock, answer.entry, policy_);
  }

  FakeDeviceMemory device_;
  std::atomic<bool> abandoned_{false};
  NodePool nodes_;
  History history_{1024};
  Follower follower_;
  DynamicBlocks blocks_{&nodes_};
  PageManager pages_{&device_, &abandoned_, &follower_, &blocks_, /*page_wait_us=*/1000};
  GrowthPolicy policy_;
  std::shared_ptr<const Script> script_;
  AdaptiveMutex mutex_;
};

// A script that comes back finds the pages of its last zone where they are. A block there is in its way, one at its own
// place or elsewhere is not.
TEST_F(PageManagerTest, AZoneIsTakenBackWithItsPages) {
  const std::vector<TestBlock> blocks = {{4 * kChunkUnits, 2, 0}, {4 * kChunkUnits, 1, 4 * kChunkUnits}};
  Follow(blocks);
  ASSERT_TRUE(MapNext(4 * kChunkUnits));
  ASSERT_TRUE(MapNext(4 * kChunkUnits));
  const AddressRange zone = pages_.zone();
  follower_.Stop();
  pages_.RetireZone({}, {});
  DeviceAddress home = 0;
  ASSERT_TRUE(pages_.TryAllocateInLastZone(*script_, 4 * kChunkUnits, 4 * kChunkUnits, &home));
  EXPECT_EQ(home, zone.begin + 4 * kChunk);
  DynamicBlock block;
  block.bytes = 4 * kChunk;
  block.units = 4 * kChunkUnits;
  block.ordinal = history_.Count();
  blocks_.Add(home, block);
  const uint64_t calls = device_.Calls();
  ASSERT_TRUE(pages_.RetakeZone(*script_, history_.Count()));
  follower_.Start(script_, 0, pages_.base(), pages_.zone().begin);
  pages_.BeginScript();
  EXPECT_EQ(pages_.zone().begin, zone.begin);
  EXPECT_TRUE(pages_.fully_mapped());
  EXPECT_EQ(device_.Calls(), calls);
  EXPECT_TRUE(blocks_.Find(home)->foreign);
  EXPECT_EQ(follower_.Next(4 * kChunkUnits, history_.Append(4 * kChunkUnits), history_).outcome,
            Follower::Outcome::kPlanned);
  EXPECT_EQ(follower_.Next(4 * kChunkUnits, history_.Append(4 * kChunkUnits), history_).outcome,
            Follower::Outcome::kDisplaced);
}

// A zone that was taken back may have pages that no entry needs.
TEST_F(PageManagerTest, PagesAboveAScriptThatTookAZoneBackAreGivenBack) {
  Follow({{12 * kChunkUnits, 1, 0}});
  ASSERT_TRUE(MapNext(12 * kChunkUnits));
  follower_.Stop();
  pages_.RetireZone({}, {});
  blocks_.RemoveLive(12 * kChunkUnits);
  script_ = ScriptOf({{4 * kChunkUnits, 1, 0}});
  ASSERT_TRUE(pages_.RetakeZone(*script_, history_.Count()));
  const DeviceAddress zone = pages_.zone().begin;
  const auto housekeep = [&] {
    EngineLock lock(mutex_);
    pages_.Housekeep(lock, policy_);
    pages_.EndIteration();
  };
  const auto begin = [&] {
    follower_.Start(script_, 0, pages_.base(), zone);
    pages_.BeginScript();
  };
  begin();
  EXPECT_TRUE(pages_.fully_mapped());
  policy_.takes_turns = true;  // the higher script may come back
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(pages_.NeedsHousekeeping(), i < 4) << i;
    if (pages_.NeedsHousekeeping()) housekeep();
  }
  EXPECT_EQ(device_.Held(), 12 * kChunk);
  policy_.takes_turns = false;
  begin();
  const uint32_t above = (zone - pages_.base()) / kBlockUnit + 8 * kChunkUnits;
  follower_.AddForeign(above, above + kChunkUnits);
  housekeep();
  EXPECT_EQ(device_.Held(), 5 * kChunk);
  EXPECT_TRUE(device_.Accessible(zone + 8 * kChunk, kChunk)) << "a block lies there";
  EXPECT_TRUE(pages_.NeedsHousekeeping());
  follower_.RemoveForeign(above, above + kChunkUnits);
  housekeep();
  EXPECT_EQ(device_.Held(), 4 * kChunk);
  EXPECT_TRUE(device_.Accessible(zone, 4 * kChunk));
  EXPECT_TRUE(pages_.fully_mapped());
  housekeep();  // looks once more, because the last time changed pages
  EXPECT_FALSE(pages_.NeedsHousekeeping());
}

// The script before may come back in another form: the job is still learnt.
TEST_F(PageManagerTest, PagesOfAHigherScriptStayInItsZone) {
  Follow({{12 * kChunkUnits, 1, 0}});
  ASSERT_TRUE(MapNext(12 * kChunkUnits));
  follower_.Release(0);
  blocks_.RemoveLive(12 * kChunkUnits);
  script_ = ScriptOf({{4 * kChunkUnits, 1, 0}});
  follower_.Start(script_, 0, pages_.base(), pages_.zone().begin);
  pages_.BeginScript();
  EXPECT_FALSE(pages_.NeedsHousekeeping());
  EngineLock lock(mutex_);
  pages_.Housekeep(lock, policy_);
  EXPECT_EQ(device_.Held(), 12 * kChunk);
}

// Much of it is in use, or little for long, or a block lies across its end: other addresses.
TEST_F(PageManagerTest, AZoneInUseIsNotTakenBack) {
  struct Case {
    uint64_t begin, bytes, age;
  };
  for (const Case& each : {Case{kChunk, 5 * kChunk, 0}, Case{kChunk, kChunk, 5}, Case{0, 2 * kChunk, 0}}) {
    for (int i = 0; i < 8; ++i) history_.Append(1);
    Follow({{8 * kChunkUnits, 1, 0}});
    ASSERT_TRUE(MapNext(8 * kChunkUnits));
    const AddressRange zone = pages_.zone();
    follower_.Stop();
    pages_.RetireZone({}, {});
    DynamicBlock block;
    block.bytes = each.bytes;
    block.ordinal = history_.Count() - each.age;
    const DeviceAddress address = zone.begin - kChunk + each.begin;
    blocks_.Add(address, block);
    EXPECT_FALSE(pages_.RetakeZone(*script_, history_.Count()));
    EXPECT_TRUE(pages_.TakeZone(*script_));
    EXPECT_FALSE(pages_.RetakeZone(*script_, history_.Count())) << "another one was taken since";
    EXPECT_TRUE(blocks_.Remove(address, &block));
    pages_.RetireZone({}, {});
  }
}

TEST_F(PageManagerTest, GrowsByWhatIsAskedForAndGivesItBack) {
  DeviceAddress address = 0;
  ASSERT_EQ(Grow(3 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  EXPECT_TRUE(device_.Accessible(address, 3 * kChunk));
  EXPECT_EQ(device_.Held(), 3 * kChunk);
  pages_.Free(address, 3 * kChunk, false);
  blocks_.RemoveLive(3 * kChunkUnits);
  EngineLock lock(mutex_);
  EXPECT_EQ(pages_.GiveBack(lock, UINT64_MAX), 3 * kChunk);
  EXPECT_EQ(device_.Held(), 0u);
}

// Free pages that work may still use stay where they are while the device has others. Each wait in vain is half as long
// as the one before, and some are left out.
TEST_F(PageManagerTest, UnfinishedWorkIsNotWaitedForWhileThereIsMemory) {
  DeviceAddress address = 0;
  LeaveFreeAndWork(10);
  for (uint64_t i = 1; i <= 3; ++i) {  // larger than what is free: a block of 11 chunks, then one of 12, 13
    const uint32_t units = static_cast<uint32_t>(10 + i) * kChunkUnits;
    ASSERT_EQ(Grow(units, &address), PageManager::GrowStatus::kOk);
    EXPECT_TRUE(device_.Accessible(address, units * kBlockUnit));
    pages_.Free(address, units * kBlockUnit, false);
    blocks_.RemoveLive(units);
  }
  EXPECT_GE(device_.Held(), (11 + 11) * kChunk);
  EXPECT_EQ(device_.synchronizations(), 0u);
  EXPECT_EQ(device_.limits(), std::vector<uint64_t>{1000}) << "the next two are left out";
  EngineLock lock(mutex_);
  for (int i = 0; i < 8; ++i) pages_.ReclaimAddresses(lock);
  EXPECT_EQ(device_.limits(), (std::vector<uint64_t>{1000, 500, 250}));
  hotpack_stats stats{};
  pages_.AddTo(&stats, false);
  EXPECT_EQ(stats.page_waits_unfinished, 3u);
  EXPECT_EQ(device_.unmaps(), 0u);
}

// A device without more memory: the request waits for that work.
TEST_F(PageManagerTest, UnfinishedWorkIsWaitedForWithoutMemory) {
  DeviceAddress address = 0;
  LeaveFreeAndWork(30);
  EXPECT_EQ(Grow(50 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  EXPECT_TRUE(device_.Accessible(address, 50 * kChunk));
  EXPECT_EQ(device_.synchronizations(), 1u);
}

// Pages of a script's place are not created instead: the entry is served elsewhere.
TEST_F(PageManagerTest, AnEntryThatWouldWaitForUnfinishedWorkIsNotServed) {
  DeviceAddress address = 0;
  ASSERT_EQ(Grow(20 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  pages_.Free(address, 20 * kChunk, false);
  blocks_.RemoveLive(20 * kChunkUnits);
  device_.SetBusy(true);
  Follow({{18 * kChunkUnits, 1, 0}});
  EXPECT_FALSE(MapNext(18 * kChunkUnits));
  EXPECT_EQ(device_.Held(), 20 * kChunk);
  EXPECT_EQ(device_.synchronizations(), 0u);
}

TEST_F(PageManagerTest, NothingIsMadeForARequestAboveTheDevice) {
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(65 * kChunkUnits, &address), PageManager::GrowStatus::kOutOfMemory);
  EXPECT_EQ(device_.Held(), 0u);
}

// Chunks that a refused request made in vain are freed.
TEST_F(PageManagerTest, ARefusedRequestLeavesNothingBehind) {
  DeviceAddress first = 0, second = 0;
  ASSERT_EQ(Grow(40 * kChunkUnits, &first), PageManager::GrowStatus::kOk);
  EXPECT_EQ(Grow(30 * kChunkUnits, &second), PageManager::GrowStatus::kOutOfMemory);
  EXPECT_EQ(device_.Held(), 40 * kChunk);
  EXPECT_GT(pages_.capacity_seen(), 0u);
}

TEST_F(PageManagerTest, ADriverThatGoesDownIsNotAskedAgain) {
  device_.SetDown();
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(kChunkUnits, &address), PageManager::GrowStatus::kGone);
}

// Pages of the zone that no block uses serve other requests.
TEST_F(PageManagerTest, IdlePagesOfTheZoneServeOthers) {
  Follow({{50 * kChunkUnits, 1, 0}});
  ASSERT_TRUE(MapNext(50 * kChunkUnits));
  follower_.Release(0);
  blocks_.RemoveLive(50 * kChunkUnits);
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(60 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  EXPECT_TRUE(device_.Accessible(address, 60 * kChunk));
  EXPECT_LE(device_.Held(), 64 * kChunk);
}

// Where that is not enough, the engine is asked to part with its script. Live blocks keep their pages.
TEST_F(PageManagerTest, TheZoneIsAskedForLast) {
  constexpr uint32_t kHalf = kChunkUnits / 2;
  Follow({{kHalf, 2, 0}, {20 * kChunkUnits, 1, kHalf}});
  ASSERT_TRUE(MapNext(kHalf));
  const DeviceAddress live = pages_.zone().begin;
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(63 * kChunkUnits + kHalf, &address), PageManager::GrowStatus::kNeedsZone);
  pages_.RetireZone({{live, kChunk / 2}}, {});
  follower_.Stop();
  EXPECT_EQ(Grow(63 * kChunkUnits + kHalf, &address, /*zone_given=*/true), PageManager::GrowStatus::kOutOfMemory);
  EXPECT_TRUE(device_.Accessible(live, kChunk / 2));
  EXPECT_EQ(Grow(63 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
}

// Nor is the zone asked for where the device cannot hold the request whatever is moved.
TEST_F(PageManagerTest, TheZoneIsNotAskedForInVain) {
  Follow({{30 * kChunkUnits, 2, 0}, {20 * kChunkUnits, 1, 30 * kChunkUnits}});
  ASSERT_TRUE(MapNext(30 * kChunkUnits));
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(40 * kChunkUnits, &address), PageManager::GrowStatus::kOutOfMemory);
  EXPECT_TRUE(device_.Accessible(pages_.zone().begin, 30 * kChunk));
  EXPECT_EQ(Grow(34 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
}

// A large one is refused without a page being created for it.
TEST_F(PageManagerTest, TheDeviceIsAskedBeforeManyPagesAreCreated) {
  FakeDeviceMemory device(1024 * kChunk, kChunk);
  uint64_t created = 0;
  device.SetHook([&created](const char* call) { created += std::string(call) == "CreateChunk"; });
  PageManager pages(&device, &abandoned_, &follower_, &blocks_);
  EngineLock lock(mutex_);
  ASSERT_EQ(pages.Open(lock), MemoryStatus::kOk);
  bool foreign = false;
  DeviceAddress address = 0;
  EngineRequest request;
  request.units = 500 * kChunkUnits;
  ASSERT_EQ(pages.Grow(lock, request, policy_, false, &foreign, &address), PageManager::GrowStatus::kOk);
  blocks_.CountLive(request.units);
  EXPECT_EQ(created, 500u);
  request.units = 600 * kChunkUnits;
  EXPECT_EQ(pages.Grow(lock, request, policy_, false, &foreign, &address), PageManager::GrowStatus::kOutOfMemory);
  EXPECT_EQ(created, 500u);
  request.units = 524 * kChunkUnits;
  EXPECT_EQ(pages.Grow(lock, request, policy_, false, &foreign, &address), PageManager::GrowStatus::kOk);
}

TEST_F(PageManagerTest, EntriesGetTheirPagesWhenTheyAreAskedFor) {
  Follow({{2 * kChunkUnits, 2, 0}, {20 * kChunkUnits, 1, 2 * kChunkUnits}});
  EXPECT_FALSE(pages_.fully_mapped());
  ASSERT_TRUE(MapNext(2 * kChunkUnits));
  EXPECT_TRUE(device_.Accessible(pages_.zone().begin, 2 * kChunk));
  EXPECT_LE(device_.Held(), 4 * kChunk);
  ASSERT_TRUE(MapNext(20 * kChunkUnits));
  EXPECT_TRUE(device_.Accessible(pages_.zone().begin, 22 * kChunk));
  EXPECT_EQ(device_.Held(), 22 * kChunk);
  EngineLock lock(mutex_);
  pages_.Housekeep(lock, policy_);
  EXPECT_TRUE(pages_.fully_mapped());
}

TEST_F(PageManagerTest, AnEntryThatGetsNoPagesIsGivenUp) {
  DeviceAddress address = 0;
  ASSERT_EQ(Grow(62 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  Follow({{4 * kChunkUnits, 1, 0}});
  EXPECT_FALSE(MapNext(4 * kChunkUnits));
  EXPECT_EQ(follower_.LiveAt(follower_.Offset(0)), kNone);
}

// --- places of an envelope -------------------------------------------------------------------------------------------

class EnvelopePlacesTest : public PageManagerTest {
 protected:
  explicit EnvelopePlacesTest(uint64_t chunks = 4) : PageManagerTest(chunks * kChunk) {
    EXPECT_TRUE(pages_.TakeEnvelopeZone(chunks * kChunk, {}));
  }
  // In bytes from the zone's beginning.
  PageManager::PlaceStatus Place(uint64_t offset, uint64_t bytes) {
    EngineLock lock(mutex_);
    blocks_.CountLive(static_cast<uint32_t>(bytes / kBlockUnit));
    const auto status = pages_.PlaceInEnvelope(lock, pages_.zone().begin + offset, bytes, policy_);
    if (status != PageManager::PlaceStatus::kPlaced) blocks_.RemoveLive(bytes / kBlockUnit);
    return status;
  }
  void Free(uint64_t offset, uint64_t bytes) {
    pages_.Free(pages_.zone().begin + offset, bytes, /*foreign=*/true);
    blocks_.RemoveLive(bytes / kBlockUnit);
  }
};

TEST_F(EnvelopePlacesTest, AreGivenWhereNothingLives) {
  EXPECT_EQ(Place(kChunk, kChunk), PageManager::PlaceStatus::kPlaced);
  EXPECT_TRUE(device_.Accessible(pages_.zone().begin + kChunk, kChunk));
  EXPECT_EQ(Place(kChunk / 2, kChunk), PageManager::PlaceStatus::kInUse);
  EXPECT_EQ(Place(2 * kChunk - 512, 1024), PageManager::PlaceStatus::kInUse);
  EXPECT_EQ(Place(pages_.zone().bytes - 512, 1024), PageManager::PlaceStatus::kInUse) << "it ends outside";
  EXPECT_EQ(Place(0, kChunk), PageManager::PlaceStatus::kPlaced);
  Free(kChunk, kChunk);
  EXPECT_EQ(Place(kChunk / 2 * 3, kChunk), PageManager::PlaceStatus::kPlaced);
  EXPECT_EQ(pages_.arena().held(), 3 * kChunk) << "only what is used has pages";
}

TEST_F(EnvelopePlacesTest, TakePagesFromWhereNothingLives) {
  ASSERT_EQ(Place(0, 4 * kChunk), PageManager::PlaceStatus::kPlaced);
  Free(0, 4 * kChunk);
  ASSERT_EQ(Place(0, 1024), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(Place(2 * kChunk, 1024), PageManager::PlaceStatus::kPlaced);
  DeviceAddress address = 0;
  EXPECT_EQ(Grow(2 * kChunkUnits, &address), PageManager::GrowStatus::kOk) << "the device has no other pages";
  EXPECT_FALSE(pages_.InZone({address, kChunk}));
  EXPECT_EQ(Place(kChunk, kChunk), PageManager::PlaceStatus::kNoPages);
  EXPECT_EQ(Place(1024, 1024), PageManager::PlaceStatus::kPlaced);
}

TEST_F(EnvelopePlacesTest, GiveTheirGapsOnAFullDevice) {
  constexpr uint64_t kHalf = kChunk / 2;
  DeviceAddress address = 0;
  ASSERT_EQ(Grow(kChunkUnits, &address), PageManager::GrowStatus::kOk);
  ASSERT_EQ(Place(0, kHalf), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(Place(kHalf, 2 * kChunk), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(Place(kHalf + 2 * kChunk, kHalf), PageManager::PlaceStatus::kPlaced);
  Free(kHalf, 2 * kChunk);
  ASSERT_EQ(Grow(2 * kChunkUnits, &address), PageManager::GrowStatus::kOk) << "two of the chunks are in use in part";
  EXPECT_EQ(address, pages_.zone().begin + kHalf);
  EXPECT_EQ(Place(kChunk, 512), PageManager::PlaceStatus::kInUse);
}

class EnvelopeGapsTest : public EnvelopePlacesTest {
 protected:
  EnvelopeGapsTest() : EnvelopePlacesTest(16) {}
};

// Beyond what is live, a block lies where it needs the fewest new pages: here the gap has most of them.
TEST_F(EnvelopeGapsTest, TakeABlockThatWouldNeedMorePagesElsewhere) {
  ASSERT_EQ(Place(8 * kChunk, 3 * kChunk), PageManager::PlaceStatus::kPlaced);
  Free(8 * kChunk, 3 * kChunk);
  for (const uint64_t chunk : {0, 4, 5, 6}) ASSERT_EQ(Place(chunk * kChunk, 512), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(Place(3 * kChunk - 512, 512), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(pages_.arena().held(), 5 * kChunk);
  DeviceAddress address = 0;
  ASSERT_EQ(Grow(2 * kChunkUnits, &address), PageManager::GrowStatus::kOk);
  EXPECT_EQ(address, pages_.zone().begin + 512);
  EXPECT_EQ(pages_.arena().held(), 6 * kChunk) << "elsewhere it would need two";
  EXPECT_EQ(Place(kChunk, 512), PageManager::PlaceStatus::kInUse);
}

TEST_F(EnvelopeGapsTest, BlocksLieAsLowAsTheOneBelow) {
  const DeviceAddress zone = pages_.zone().begin;
  const auto lowest_in_zone = [&](DeviceAddress lowest, DeviceAddress planned, uint64_t bytes) {
    return pages_.LowestAbove(blocks_.zone().Below(planned)->end, lowest, planned, bytes);
  };
  EXPECT_EQ(lowest_in_zone(zone, zone + kChunk, 512), zone);
  ASSERT_EQ(Place(0, 1024), PageManager::PlaceStatus::kPlaced);
  EXPECT_EQ(lowest_in_zone(zone, zone + kChunk, 512), zone + 1024) << "a block lives there";
  EXPECT_EQ(lowest_in_zone(zone + 2048, zone + kChunk, 512), zone + 2048);
  EXPECT_EQ(lowest_in_zone(zone, zone + 512, 512), zone + 512) << "never above its own place";
}

TEST_F(EnvelopePlacesTest, BecomeOrdinaryMemoryAroundTheirBlocks) {
  ASSERT_EQ(Place(0, 2 * kChunk), PageManager::PlaceStatus::kPlaced);
  ASSERT_EQ(Place(2 * kChunk, 2 * kChunk), PageManager::PlaceStatus::kPlaced);
  const DeviceAddress begin = pages_.zone().begin;
  Free(0, 2 * kChunk);
  pages_.RetireEnvelopeZone();
  DeviceAddress address = 0;
  ASSERT_TRUE(pages_.TryAllocate(2 * kChunk, &address));
  EXPECT_EQ(address, begin);
  EXPECT_FALSE(pages_.TryAllocate(kChunk, &address)) << "a block lives there";
  pages_.Free(begin + 2 * kChunk, 2 * kChunk, /*foreign=*/false);
  EXPECT_TRUE(pages_.TryAllocate(2 * kChunk, &address));
  EXPECT_TRUE(pages_.arena().Consistent());
}

}  // namespace
}  // namespace hotpack
