// Freeing memory while the job continues.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/runtime/job.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = Job::kMiB;
constexpr uint64_t kChunk = 64 << 10;

uint64_t Live(const Job& job) {
  uint64_t live = 0;
  for (const auto& [address, bytes] : job.live()) live += (bytes + 511) / 512 * 512;
  return live;
}

void ExpectAllAccessible(Job& job) {
  for (const auto& [address, bytes] : job.live()) EXPECT_TRUE(job.device().Accessible(address, bytes));
}

// Serves a net until whole iterations are by script.
void Settle(Job& job, Net& net) {
  for (int i = 0; i < 8; ++i) job.Play([&] { net.Step(); });
  ASSERT_TRUE(job.shares().back().Full()) << job.History();
}

TEST(EngineTrim, GivesBackWhatNoBlockLivesIn) {
  Job job;
  EXPECT_EQ(job.engine().Trim(), 0u);  // before the first request
  EXPECT_EQ(job.engine().Usage().held, 0u);
  const DeviceAddress kept = job.Ask(3 * kMiB);
  job.Touch(50 * kMiB);
  const uint64_t held = job.device().Held();
  const EngineUsage usage = job.engine().Usage();
  EXPECT_EQ(usage.held, held);
  EXPECT_EQ(usage.live, 3 * kMiB);
  EXPECT_EQ(usage.outside_plan, 3 * kMiB);
  EXPECT_TRUE(usage.may_shrink);
  const uint64_t given = job.engine().Trim();
  EXPECT_EQ(given, held - job.device().Held());
  EXPECT_LE(job.device().Held(), 3 * kMiB + kChunk);
  EXPECT_EQ(job.engine().Usage().held, job.device().Held());
  EXPECT_EQ(job.engine().Trim(), 0u);
  ExpectAllAccessible(job);
  job.Touch(50 * kMiB);
  job.Give(kept);
}

TEST(EngineTrim, GivesBackWhatIsWanted) {
  Job job;
  job.Touch(50 * kMiB);
  EXPECT_EQ(job.engine().Trim(0), 0u);
  const uint64_t given = job.engine().Trim(10 * kMiB + 1);
  EXPECT_EQ(given, 10 * kMiB + kChunk);
  EXPECT_GE(job.engine().Trim(), 39 * kMiB);
}

// In the middle of an iteration that is served by script. Its blocks keep their pages. The other pages are freed and
// mapped again on request, and the next iterations are as before.
TEST(EngineTrim, WhileServingByScript) {
  Job job;
  Net net(&job);
  Settle(job, net);
  const uint64_t held = job.device().Held();
  Net::Change change;
  uint64_t given = 0, live = 0;
  change.at = [&](int layer) {
    if (layer != 10) return;
    live = Live(job);
    given = job.engine().Trim();
    EXPECT_LT(job.device().Held(), held);
    ExpectAllAccessible(job);
  };
  const Job::Share share = job.Play([&] { net.Step(change); });
  EXPECT_GT(given, (held - live) / 2);
  EXPECT_TRUE(share.Full()) << share.planned << " of " << share.requests;
  EXPECT_TRUE(job.Play([&] { net.Step(); }).Full());
  EXPECT_LE(job.device().Held(), held);
  const uint64_t calls = job.device().Calls();
  EXPECT_TRUE(job.Play([&] { net.Step(); }).Full());
  EXPECT_EQ(job.device().Calls(), calls) << "the pages are there again: nothing is left to do";
  EXPECT_GE(job.engine().Stats().steady_iteration, 0);
}

TEST(EngineTrim, AtTheEndOfEachIteration) {
  Job job;
  Net net(&job);
  Settle(job, net);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(job.Play([&] { net.Step(); }).Full());
    job.engine().Trim();
    ExpectAllAccessible(job);
    EXPECT_LE(job.device().Held(), job.engine().Usage().live + (job.live().size() + 2) * kChunk);
  }
}

// While a stream is capturing the device cannot be waited for: nothing is unmapped.
TEST(EngineTrim, NotDuringACapture) {
  Job job;
  Net net(&job);
  Settle(job, net);
  job.device().SetCapturing(true);
  const uint64_t unmaps = job.device().unmaps();
  EXPECT_EQ(job.engine().Trim(), 0u);
  EXPECT_EQ(job.device().unmaps(), unmaps);
  EXPECT_TRUE(job.Play([&] { net.Step(); }).Full());
  job.device().SetCapturing(false);
  EXPECT_GT(job.engine().Trim(), 0u);
  EXPECT_TRUE(job.Play([&] { net.Step(); }).Full());
}

TEST(EngineTrim, AFixedArenaHasNothingToGive) {
  FakeDeviceMemory device(64 * kMiB, kChunk);
  device.SetFixed();
  Engine engine(&device, {});
  DeviceAddress address = 0;
  ASSERT_EQ(engine.Allocate(kMiB, 0, &address), EngineStatus::kOk);
  EXPECT_FALSE(engine.Usage().may_shrink);
  EXPECT_EQ(engine.Trim(), 0u);
  EXPECT_EQ(engine.Release(address, 0), EngineStatus::kOk);
}

// Whichever call fails, the engine keeps its promises, and nothing is lost but what could not be unmapped.
TEST(EngineTrim, WithFailingCalls) {
  for (uint64_t every = 1; every <= 40; ++every) {
    Job job;
    Net net(&job);
    Settle(job, net);
    Net::Change change;
    change.at = [&](int layer) {
      if (layer % 5 != 0) return;
      const uint64_t held = job.device().Held();
      const uint64_t given = job.engine().Trim(layer % 10 == 0 ? UINT64_MAX : 3 * kMiB);
      EXPECT_EQ(given, held - job.device().Held());
      ExpectAllAccessible(job);
    };
    // Requests are answered or not: that is another test's matter. Here only what trims do fails.
    for (int i = 0; i < 4; ++i) {
      net.Step(change);
      job.device().FailEvery(every);
      job.engine().Trim();
      job.device().FailEvery(0);
      ExpectAllAccessible(job);
    }
    for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
    EXPECT_TRUE(job.shares().back().Full()) << "every " << every << ": " << job.History();
  }
}

// A monitoring that is interrupted for long: the script's pages serve others, and come back with it.
TEST(EngineTrim, WhenInterruptedForLong) {
  Job job;
  Net net(&job);
  Settle(job, net);
  const uint64_t held = job.device().Held();
  job.engine().Interrupt();
  for (int i = 0; i < 1000; ++i) job.Touch(100000);
  EXPECT_GE(job.device().Held(), held) << "not at once";
  uint64_t synchronizations = job.device().synchronizations();
  for (int i = 0; i < 40000; ++i) job.Touch(100000);
  EXPECT_LT(job.device().Held(), held / 2 + Live(job));
  EXPECT_LE(job.device().synchronizations() - synchronizations, 4u);
  ExpectAllAccessible(job);
  job.engine().Resume();
  for (int i = 0; i < 4; ++i) job.Play([&] { net.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

// Interruptions that recur keep the pages from the second one on, until one is twice as long. Short ones do not add up.
TEST(EngineTrim, WhenInterruptedAgain) {
  Job job;
  Net net(&job);
  Settle(job, net);
  const uint64_t held = job.device().Held();
  const auto interrupt = [&](int requests) {
    job.engine().Interrupt();
    for (int i = 0; i < requests; ++i) job.Touch(100000);
    const uint64_t now = job.device().Held();
    job.engine().Resume();
    for (int i = 0; i < 4; ++i) job.Play([&] { net.Step(); });
    return now;
  };
  for (int i = 0; i < 10; ++i) EXPECT_GE(interrupt(5000), held);
  EXPECT_LT(interrupt(20000), held * 2 / 3);
  for (int i = 0; i < 5; ++i) EXPECT_GE(interrupt(20000 + 1000 * i), held * 9 / 10);
  EXPECT_LT(interrupt(60000), held * 2 / 3);
}

// The same of a script that is parked because the job does something else.
TEST(EngineTrim, WhenParkedForLong) {
  Job job;
  Net net(&job, 20, 8);
  Settle(job, net);
  net.ZeroGrad();
  const uint64_t held = job.device().Held();
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) job.Touch(600 + random() % 3000);
  EXPECT_GE(job.device().Held(), held) << "not at once";
  for (int i = 0; i < 40000; ++i) job.Touch(600 + random() % 3000);
  EXPECT_LT(job.device().Held(), held / 2);
  for (int i = 0; i < 12; ++i) job.Play([&] { net.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

// Every block has a number of its own, however it is served and whatever becomes of its script.
TEST(EngineTrim, BlocksHaveNumbers) {
  Job job;
  Net net(&job);
  std::set<uint64_t> numbers;
  std::map<DeviceAddress, uint64_t> live;
  uint64_t blocks = 0;
  auto look = [&] {
    std::map<DeviceAddress, uint64_t> now;
    for (const auto& [address, bytes] : job.live()) {
      DeviceAddress base = 0;
      uint64_t size = 0, id = 0, inside = 0;
      ASSERT_TRUE(job.engine().FindBlock(address, &base, &size, &id));
      ASSERT_TRUE(job.engine().FindBlock(address + bytes - 1, &base, &size, &inside));
      ASSERT_EQ(id, inside);
      now[address] = id;
    }
    for (const auto& [address, id] : now) {
      if (live.count(address) != 0 && live[address] == id) continue;
      EXPECT_TRUE(numbers.insert(id).second) << "number " << id << " again";
      ++blocks;
    }
    live = now;
  };
  const DeviceAddress kept = job.Ask(100000);
  look();
  const uint64_t number = live[kept];
  for (int i = 0; i < 12; ++i) {
    Net::Change change;
    change.at = [&](int) { look(); };
    if (i % 4 == 3) change.insert_at = 5;
    net.Step(change);
    look();
    if (i == 8) {  // leave the script for long
      job.engine().Interrupt();
      for (int k = 0; k < 100; ++k) job.Give(job.Ask(1000));
      look();
      job.engine().Resume();
    }
    EXPECT_EQ(live[kept], number);
  }
  EXPECT_GT(blocks, 200u);
}

// Trims from another thread while the job is served.
TEST(EngineTrim, FromAnotherThread) {
  Job job;
  Net net(&job);
  Settle(job, net);
  std::atomic<bool> done{false};
  std::atomic<uint64_t> given{0};
  std::thread trimmer([&] {
    while (!done) {
      given += job.engine().Trim();
      job.engine().Usage();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 30 || (given == 0 && i < 100'000); ++i) net.Step();
  done = true;
  trimmer.join();
  EXPECT_GT(given, 0u);
  for (int i = 0; i < 4; ++i) job.Play([&] { net.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

}  // namespace
}  // namespace hotpack
