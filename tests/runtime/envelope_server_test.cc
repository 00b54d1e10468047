// The envelope's part in the engine: when it learns, and what it follows. Without a device.
#include "runtime/engine/envelope_server.h"

#include <gtest/gtest.h>

#include "runtime/engine/engine_stats.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

class EnvelopeServerTest : public testing::Test {
 protected:
  // An iteration of a hundred requests ends, of which `planned` were served by plan. Returns whether it is learnt from.
  bool End(uint64_t planned) {
    for (uint64_t i = 0; i < 100; ++i) {
      if (i < planned) {
        stats_.NotePlanned();
      } else {
        stats_.NoteDynamic();
      }
    }
    stats_.NoteMark();
    return server_.NoteMark(stats_.planned() + stats_.dynamic());
  }
  static std::shared_ptr<const EnvelopeScript> AnyScript() {
    auto places = std::make_shared<EnvelopePlaces>();
    places->zone_units = 1;
    auto script = std::make_shared<EnvelopeScript>();
    script->places = std::move(places);
    return script;
  }

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
  EXPECT_FALSE(End(94)) << "once may be chance";
  EXPECT_FALSE(End(100));
  EXPECT_FALSE(End(80));
  EXPECT_FALSE(server_.learning());
  EXPECT_TRUE(End(80));
  EXPECT_TRUE(server_.learning());
  EXPECT_TRUE(End(100)) << "until an envelope is followed";
  PlanJob job;
  server_.TakeWork(&job);
  EXPECT_EQ(job.kind, PlanJob::Kind::kEnvelope);
  EXPECT_EQ(job.marks, (std::vector<uint64_t>{100, 200, 300, 400, 500, 600, 700, 800}));
  End(0);
  server_.TakeWork(&job);
  EXPECT_EQ(job.marks, (std::vector<uint64_t>{800, 900})) << "iterations follow each other";
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
    EXPECT_FALSE(off.NoteMark(stats_.planned() + stats_.dynamic()));
  }
  EXPECT_FALSE(off.learning());
}

}  // namespace
}  // namespace hotpack
