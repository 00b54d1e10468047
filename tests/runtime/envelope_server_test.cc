// The envelope's part in the engine: when it learns, and what it follows. Without a device.
#include "runtime/engine/envelope_server.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "runtime/engine/engine_stats.h"
#include "tests/runtime/envelope_steps.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

class EnvelopeServerTest : public testing::Test {
 protected:
  // An iteration of a hundred requests ends, of which `planned` were served by plan. Returns whether it is learnt from.
  bool End(uint64_t planned, bool planning = false) {
    for (uint64_t i = 0; i < 100; ++i) {
      if (i < planned) {
        stats_.NotePlanned();
      } else {
        stats_.NoteDynamic();
      }
    }
    stats_.NoteMark();
    return server_.NoteMark(stats_.planned() + stats_.dynamic(), planning);
  }
  static std::shared_ptr<const EnvelopeScript> AnyScript() {
    auto places = std::make_shared<EnvelopePlaces>();
    places->zone_units = 1;
    auto script = std::make_shared<EnvelopeScript>();
    script->places = std::move(places);
    return script;
  }

  EnvelopeServerTest() { stats_.NotePlan(); }

  FakeDeviceMemory device_{uint64_t{1} << 30, 64 << 10};
  std::atomic<bool> abandoned_{false};
  NodePool nodes_;
  DynamicBlocks blocks_{&nodes_};
  Follower follower_;
  PageManager pages_{&device_, &abandoned_, &follower_, &blocks_};
  EngineStats stats_{nullptr};
  EnvelopeServer server_{&pages_, &blocks_, &stats_, true};
};

TEST_F(EnvelopeServerTest, LearnsOnceScriptsServeTooLittle) {
  EXPECT_FALSE(End(0));
  EXPECT_FALSE(End(0));
  EXPECT_FALSE(End(100));
  EXPECT_FALSE(End(94)) << "of both iterations together it is little";
  EXPECT_FALSE(End(100));
  EXPECT_FALSE(server_.learning());
  EXPECT_TRUE(End(80));
  EXPECT_TRUE(server_.learning());
  EXPECT_TRUE(End(100)) << "until an envelope is followed";
  PlanJob job;
  server_.TakeWork(&job);
  EXPECT_EQ(job.kind, PlanJob::Kind::kEnvelope);
  EXPECT_EQ(job.marks, (std::vector<uint64_t>{100, 200, 300, 400, 500, 600, 700}));
  End(0);
  server_.TakeWork(&job);
  EXPECT_EQ(job.marks, (std::vector<uint64_t>{700, 800})) << "iterations follow each other";
}

// Seven of eight iterations are served well, but the eighth has most requests: the next one like it is to be served.
TEST_F(EnvelopeServerTest, LearnsWhereFewIterationsHaveMostRequests) {
  const auto evaluate = [&] {
    for (int k = 0; k < 900; ++k) stats_.NoteDynamic();
    return End(0);
  };
  End(0);
  End(0);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(End(100));
  EXPECT_TRUE(evaluate());
  EXPECT_TRUE(server_.learning());
}

// A job that repeats, whose plan takes long: it must not be taken for one that differs.
TEST_F(EnvelopeServerTest, WaitsForScriptsThatArePlanned) {
  stats_.TakePlanBack();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(End(0)) << "there is no plan yet";
  stats_.NotePlan();
  EXPECT_FALSE(End(0)) << "it came in the middle of the iteration";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(End(0, /*planning=*/true)) << "a better one is planned";
  EXPECT_FALSE(End(0));
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(End(100)) << "what was served before it does not count";
  EXPECT_TRUE(End(0));
}

TEST_F(EnvelopeServerTest, KeepsTheLastIterationsForABusyPlanner) {
  for (int i = 0; i < 30; ++i) End(0);
  PlanJob job;
  server_.TakeWork(&job);
  ASSERT_EQ(job.marks.size(), 9u);
  EXPECT_EQ(job.marks.back(), 3000u);
}

TEST_F(EnvelopeServerTest, WhatIsGivenUpStaysGivenUp) {
  for (int i = 0; i < 5; ++i) End(0);
  server_.SetPending(AnyScript());
  EXPECT_TRUE(server_.change_due());
  server_.GiveUp();
  EXPECT_FALSE(server_.change_due());
  EXPECT_FALSE(server_.learning());
  server_.SetPending(AnyScript());  // the planner was still busy with it
  EXPECT_FALSE(server_.change_due());
  EXPECT_FALSE(End(0));
}

// The arena is not open, so it has no addresses.
TEST_F(EnvelopeServerTest, IsGivenUpIfItGetsNoZone) {
  for (int i = 0; i < 5; ++i) End(0);
  for (int i = 0; i < 3; ++i) {
    server_.SetPending(AnyScript());
    server_.Change();
    EXPECT_FALSE(server_.active());
    EXPECT_TRUE(server_.learning());
  }
  server_.SetPending(AnyScript());
  server_.Change();
  EXPECT_FALSE(server_.learning());
}

TEST_F(EnvelopeServerTest, SwitchedOffItLearnsNothing) {
  EnvelopeServer off(&pages_, &blocks_, &stats_, false);
  for (int i = 0; i < 10; ++i) {
    End(0);
    EXPECT_FALSE(off.NoteMark(stats_.planned() + stats_.dynamic(), false));
  }
  EXPECT_FALSE(off.learning());
}

// An envelope of three entries, a, b and c, of 4, 5 and 6 chunks, whose places lie on each other.
class EnvelopePlacesTest : public EnvelopeServerTest {
 protected:
  static constexpr uint64_t kChunk = 64 << 10;
  static constexpr uint32_t kUnits = kChunk / kBlockUnit;

  // `outlasts`: c is live at the end of its iteration. `twice`: a has a second place, above that of c.
  void Follow(bool outlasts, bool twice = false) {
    EngineLock lock(mutex_);
    ASSERT_EQ(pages_.Open(lock), MemoryStatus::kOk);
    Envelope envelope;
    hotpack_test::EnvelopeJob job;
    for (int i = 0; i < (outlasts ? 2 : 1); ++i) {
      std::vector<uint64_t> live;
      for (const uint32_t chunks : {4, 5, 6}) live.push_back(job.Request(chunks * kUnits));
      for (const uint64_t block : {live[0], live[1]}) job.Release(block);
      if (!outlasts) job.Release(live[2]);
      job.End(&envelope);
      if (outlasts) job.Release(live[2]);
    }
    ASSERT_EQ(envelope.entries().size(), 3u);
    auto places = std::make_shared<EnvelopePlaces>();
    places->by_entry = {{4 * kUnits, {0, kNone}}, {5 * kUnits, {4 * kUnits, kNone}}, {6 * kUnits, {9 * kUnits, kNone}}};
    places->zone_units = places->load_units = 15 * kUnits;
    if (twice) {
      places->by_entry[0].offsets[1] = 15 * kUnits;
      places->zone_units += 4 * kUnits;
    }
    std::vector<uint32_t> index;
    envelope.ToInstance(&index);
    places->FindSupports(index, envelope.Conflicts(index));
    Follow(envelope, places);
  }
  // Entries that are live together, whose places lie on each other in the order of their requests. Entry k is requested
  // with 80 + k and 20 + k chunks.
  void FollowStack(uint32_t entries) {
    EngineLock lock(mutex_);
    ASSERT_EQ(pages_.Open(lock), MemoryStatus::kOk);
    Envelope envelope;
    hotpack_test::EnvelopeJob job;
    for (const uint32_t chunks : {80, 20}) {
      std::vector<uint64_t> live;
      for (uint32_t k = 0; k < entries; ++k) live.push_back(job.Request((chunks + k) * kUnits));
      for (const uint64_t block : live) job.Release(block);
      job.End(&envelope);
    }
    ASSERT_EQ(envelope.entries().size(), entries);
    auto places = std::make_shared<EnvelopePlaces>();
    for (uint32_t k = 0; k < entries; ++k) {
      const auto at = static_cast<uint32_t>(places->zone_units);
      places->by_entry.push_back({(80 + k) * kUnits, {at, kNone}});
      places->zone_units += (80 + k) * kUnits;
    }
    std::vector<uint32_t> index;
    envelope.ToInstance(&index);
    places->FindSupports(index, envelope.Conflicts(index));
    Follow(envelope, places);
  }
  void Follow(const Envelope& envelope, const std::shared_ptr<const EnvelopePlaces>& places) {
    make_script_ = [envelope, places](bool placed_again) {
      return MakeEnvelopeScript(envelope, placed_again ? std::make_shared<EnvelopePlaces>(*places) : places);
    };
    FollowAgain();
    ASSERT_TRUE(server_.active());
  }
  // A later script. `placed_again`: its placement is another one, though with the same places.
  void FollowAgain(bool placed_again = false) {
    server_.SetPending(make_script_(placed_again));
    server_.Change();
  }
  // Returns the chunk of the zone at which the request is served; -1: it has no place.
  int Request(uint32_t chunks) {
    EngineLock lock(mutex_);
    EngineRequest request;
    request.units = chunks * kUnits;
    request.bytes = request.units * kBlockUnit;
    request.ordinal = ordinal_++;
    DeviceAddress address = 0;
    blocks_.AddPending(request.units);
    const uint32_t entry = server_.Serve(lock, request, {}, &address);
    blocks_.RemovePending(request.units);
    if (entry == kNone) return -1;
    DynamicBlock block;
    block.bytes = request.bytes;
    block.units = request.units;
    block.ordinal = request.ordinal;
    block.envelope_entry = entry;
    block.foreign = true;
    blocks_.Add(address, block);
    blocks_.CountLive(request.units);
    last_ = address;
    return static_cast<int>((address - pages_.zone().begin) / kChunk);
  }
  // Lets all places have pages at once.
  void KeepAllPages() {
    blocks_.CountLive(15 * kUnits);
    blocks_.RemoveLive(15 * kUnits);
  }
  // A step with the releases that it was learnt with.
  void PlayAsLearnt() {
    std::vector<DeviceAddress> live;
    for (const uint32_t chunks : {4, 5, 6}) {
      Request(chunks);
      live.push_back(last_);
    }
    for (const DeviceAddress block : live) Release(block);
  }
  // As Request, by the short way; -1: that does not serve it.
  int RequestShort(uint32_t chunks) {
    DeviceAddress address = 0;
    while (history_.Count() < ordinal_) history_.Append(1);
    if (!server_.TryServe(chunks * kUnits, ordinal_, &address)) return -1;
    history_.Append(chunks * kUnits);
    ++ordinal_;
    blocks_.CountLive(chunks * kUnits);
    last_ = address;
    return static_cast<int>((address - pages_.zone().begin) / kChunk);
  }
  bool ReleaseShort(DeviceAddress address) {
    uint32_t units = 0;
    if (!server_.TryRelease(address, &history_, &units)) return false;
    blocks_.RemoveLive(units);
    return true;
  }
  void Release(DeviceAddress address) {
    DynamicBlock block;
    ASSERT_TRUE(blocks_.Remove(address, &block));
    blocks_.RemoveLive(block.units);
    pages_.Free(address, block.bytes, block.foreign);
    server_.NoteRelease(static_cast<uint32_t>(ordinal_ - block.ordinal), block.envelope_entry, address);
  }
  void Step(int a, int b, int c) {
    EXPECT_EQ(Request(4), a);
    const DeviceAddress first = last_;
    EXPECT_EQ(Request(5), b);
    Release(first);
    Release(last_);
    EXPECT_EQ(Request(6), c);
  }

  AdaptiveMutex mutex_;
  History history_{1024};
  uint64_t ordinal_ = 0;
  DeviceAddress last_ = 0;
  std::function<std::shared_ptr<const EnvelopeScript>(bool)> make_script_;
};

// What lies below comes before it, and not again while it lives.
TEST_F(EnvelopePlacesTest, ABlockLiesWhereEarlierOnesWereReleased) {
  Follow(/*outlasts=*/false);
  Step(0, 4, 0);
  Release(last_);
  Step(0, 4, 0);
  Release(last_);
}

TEST_F(EnvelopePlacesTest, ABlockThatOutlastsItsIterationLiesAtItsPlace) {
  Follow(/*outlasts=*/true);
  Step(0, 4, 9);
  Release(last_);
}

// A loop goes back: a and b come again while c lives.
TEST_F(EnvelopePlacesTest, WhatWasInTheWayIsNotLoweredAgain) {
  Follow(/*outlasts=*/false);
  Step(0, 4, 0);
  const DeviceAddress lowered = last_;
  EXPECT_EQ(Request(4), -1);
  Release(lowered);
  Step(0, 4, 9);
  const DeviceAddress kept = last_;
  EXPECT_EQ(Request(4), 0);
  Release(last_);
  Release(kept);
  FollowAgain(/*placed_again=*/true);
  Step(0, 4, 0);  // another placement keeps apart what met
  Release(last_);
}

// A place lists eight of the places below it.
TEST_F(EnvelopePlacesTest, InAHighStackEachBlockLiesOnTheOneBelow) {
  constexpr int kEntries = 3 * EnvelopePlaces::kSupports;
  FollowStack(kEntries);
  int end = 0;
  std::vector<DeviceAddress> live;
  for (int k = 0; k < kEntries; ++k) {
    EXPECT_EQ(Request(20 + k), end) << k;
    end += 20 + k;
    live.push_back(last_);
  }
  for (const DeviceAddress block : live) Release(block);
}

// So what lies at a second place is not taken for what lies at the first one.
TEST_F(EnvelopePlacesTest, BlocksKeepTheirPlacesInALaterScript) {
  Follow(/*outlasts=*/false, /*twice=*/true);
  Step(0, 4, 0);
  const DeviceAddress lowered = last_;
  EXPECT_EQ(Request(4), 6) << "at the second place, above it";
  const DeviceAddress second = last_;
  Release(lowered);
  FollowAgain();
  EXPECT_EQ(Request(5), 0) << "the first place is free";
  Release(last_);
  Release(second);
  Step(0, 4, 0);
  Release(last_);
}

TEST_F(EnvelopePlacesTest, TheShortWayLeadsToTheSamePlaces) {
  Follow(/*outlasts=*/true);
  KeepAllPages();
  EXPECT_EQ(RequestShort(4), -1) << "there are no pages yet";
  PlayAsLearnt();
  std::vector<DeviceAddress> live;
  EXPECT_EQ(RequestShort(4), 0);
  live.push_back(last_);
  EXPECT_EQ(RequestShort(40), -1) << "it is not expected";
  EXPECT_EQ(RequestShort(5), 4);
  live.push_back(last_);
  ASSERT_NE(blocks_.Find(last_), nullptr);
  EXPECT_EQ(blocks_.Find(last_)->bytes, 5 * kChunk);
  EXPECT_EQ(RequestShort(6), 9);
  live.push_back(last_);
  EXPECT_FALSE(ReleaseShort(last_ + kBlockUnit));
  for (const DeviceAddress block : live) EXPECT_TRUE(ReleaseShort(block));
  EXPECT_FALSE(ReleaseShort(last_)) << "twice";
  EXPECT_EQ(blocks_.size(), 0u);
  EXPECT_EQ(RequestShort(4), 0);
}

TEST_F(EnvelopePlacesTest, TheShortWayIsClosedToPlacesWhosePagesWereTaken) {
  Follow(/*outlasts=*/true);
  KeepAllPages();
  PlayAsLearnt();
  EXPECT_EQ(RequestShort(4), 0);
  {
    EngineLock lock(mutex_);
    EXPECT_GT(pages_.GiveBack(lock, UINT64_MAX), 0u);
  }
  EXPECT_EQ(RequestShort(5), -1);
  EXPECT_EQ(Request(5), 4) << "it maps pages again";
}

}  // namespace
}  // namespace hotpack
