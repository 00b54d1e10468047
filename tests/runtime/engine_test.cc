// The engine at its edges: bad input, no memory, a device that fails, other threads in the middle of it, the end.
#include "runtime/engine/engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <thread>

#include "profiler/history.h"
#include "tests/runtime/gathered_step.h"
#include "tests/runtime/job.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = Job::kMiB;

TEST(Engine, BadRequestsAndReleases) {
  Job job;
  DeviceAddress address = 0;
  Engine& engine = job.engine();
  EXPECT_FALSE(engine.Owns(0));
  EXPECT_EQ(engine.Release(1 << 20, 0), EngineStatus::kNotOurs);  // before the first request
  EXPECT_EQ(engine.Allocate(0, 0, &address), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Allocate(UINT64_MAX, 0, &address), EngineStatus::kOutOfMemory);
  EXPECT_EQ(engine.Allocate(kMaxRequestBytes, 0, &address), EngineStatus::kOutOfMemory);
  EXPECT_EQ(engine.Stats().requests, 0u);
  DeviceAddress block = job.Ask(1000);
  EXPECT_EQ(engine.Release(block + 512, 0), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Release(block + 1, 0), EngineStatus::kInvalidValue);
  EXPECT_EQ(engine.Release(0x1000, 0), EngineStatus::kNotOurs);
  job.Give(block);
  EXPECT_EQ(engine.Release(block, 0), EngineStatus::kInvalidValue);  // a double free
}

TEST(Engine, BadReleasesWhileServing) {
  Job job;
  Net net(&job);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  ASSERT_TRUE(job.shares().back().Full());
  std::vector<DeviceAddress> live;
  for (auto [address, bytes] : job.live()) live.push_back(address);
  ASSERT_FALSE(live.empty());
  for (DeviceAddress address : live) {
    EXPECT_EQ(job.engine().Release(address + 1, 0), EngineStatus::kInvalidValue);
    job.Give(address);
    EXPECT_EQ(job.engine().Release(address, 0), EngineStatus::kInvalidValue);
  }
  EXPECT_EQ(job.engine().Release(0x1000, 0), EngineStatus::kNotOurs);
}

TEST(Engine, FindBlock) {
  Job job;
  Net net(&job);
  DeviceAddress weights = job.Ask(100000);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  DeviceAddress base = 0;
  uint64_t bytes = 0;
  ASSERT_GT(job.live().size(), 10u);
  for (auto [address, size] : job.live()) {
    for (uint64_t at : {uint64_t{0}, size - 1}) {
      ASSERT_TRUE(job.engine().FindBlock(address + at, &base, &bytes));
      EXPECT_EQ(base, address);
      EXPECT_EQ(bytes, (size + 511) / 512 * 512);
    }
  }
  job.Give(weights);
  EXPECT_FALSE(job.engine().FindBlock(weights, &base, &bytes));
  EXPECT_FALSE(job.engine().FindBlock(0x1000, &base, &bytes));
  for (uint64_t wrap = 1; wrap < 5; ++wrap) {  // offsets are counted in 32 bits
    for (auto [address, size] : job.live()) EXPECT_FALSE(job.engine().FindBlock(address + (wrap << 41), &base, &bytes));
  }
}

// Probes that fail in each iteration are in no plan. They count for no peak.
TEST(Engine, RequestsThatFailInEachIterationDoNotKeepItFromBeingPlanned) {
  Job job(64 * kMiB);
  Net net(&job);
  Net::Change probes;
  probes.at = [&job](int layer) {
    const uint64_t bytes = layer == 3 ? 256 * kMiB : layer == 12 ? 100 * kMiB : 0;
    if (layer == 3 || layer == 12) {
      EXPECT_EQ(job.TryAsk(bytes), 0u);
    }
  };
  for (int i = 0; i < 12; ++i) job.Play([&] { net.Step(probes); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  EXPECT_EQ(job.engine().Stats().plans, 1u);
  EXPECT_LT(job.engine().Stats().live_peak, 64 * kMiB);
}

// What failed before and succeeds now is monitored again, and planned.
TEST(Engine, RequestsThatFailNoLongerArePlanned) {
  Job job(256 * kMiB);
  Net net(&job);
  DeviceAddress large = job.Ask(128 * kMiB);
  Net::Change change;
  change.at = [&job](int layer) {
    if (layer != 3) return;
    if (const DeviceAddress block = job.TryAsk(130 * kMiB)) job.Give(block);
  };
  for (int i = 0; i < 8; ++i) job.Play([&] { net.Step(change); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  const uint64_t requests = job.shares().back().requests;
  job.Give(large);
  for (int i = 0; i < 12; ++i) job.Play([&] { net.Step(change); });
  EXPECT_EQ(job.shares().back().requests, requests + 1);
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

// A prefetch: each layer's weights are gathered on a second stream while the layer before computes.
TEST(Engine, PlansKeepStreamsApart) {
  for (const bool avoid : {false, true}) {
    EngineOptions options;
    options.stream_edges.avoid = avoid;
    Job job(4096 * kMiB, options);
    Engine& engine = job.engine();
    auto ask = [&](uint64_t bytes, uint32_t stream) {
      DeviceAddress address = 0;
      EXPECT_EQ(engine.Allocate(bytes, stream | kStreamOrdered, &address), EngineStatus::kOk);
      return address;
    };
    for (int step = 0; step < 12; ++step) {
      PlayGatheredStep(&engine, 20, ask, [](uint64_t layer) {
        return LayerBytes{kMiB + layer % 3 * 4096, kMiB + layer % 2 * 8192, kMiB};
      });
    }
    const hotpack_stats stats = engine.Stats();
    EXPECT_GT(stats.planned_steady, 0u);
    if (avoid) {
      EXPECT_EQ(stats.plan_stream_edges, 0u);
      EXPECT_GT(stats.plan_stream_edges_avoided, 10u);
    } else {
      EXPECT_GT(stats.plan_stream_edges, 10u);
      EXPECT_EQ(stats.plan_stream_edges_avoided, 0u);
    }
  }
}

TEST(Engine, OutOfMemoryIsCleanAndPasses) {
  Job job(64 * kMiB);
  std::vector<DeviceAddress> blocks;
  EngineStatus status = EngineStatus::kOk;
  while (DeviceAddress address = job.TryAsk(5 * kMiB, &status)) blocks.push_back(address);
  EXPECT_EQ(status, EngineStatus::kOutOfMemory);
  EXPECT_EQ(blocks.size(), 12u);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_EQ(stats.requests, 12u);
  EXPECT_EQ(stats.live_peak, 60 * kMiB);      // what failed was never live
  EXPECT_EQ(job.device().Held(), 60 * kMiB);  // and nothing is kept of the attempt
  DeviceAddress small = job.Ask(kMiB);        // there is still room for this
  job.Give(&blocks);
  job.Give(small);
  DeviceAddress large = job.Ask(60 * kMiB);
  job.Give(large);
  EXPECT_EQ(job.TryAsk(65 * kMiB, &status), 0u);  // more than there is
  EXPECT_EQ(status, EngineStatus::kOutOfMemory);
  job.Ask(60 * kMiB);
}

TEST(Engine, ARequestLargerThanTheDeviceCostsNothing) {
  Job job(64 * kMiB);
  job.Give(job.Ask(kMiB));
  uint64_t calls = job.device().Calls();
  EngineStatus status = EngineStatus::kOk;
  EXPECT_EQ(job.TryAsk(100 * kMiB, &status), 0u);
  EXPECT_EQ(status, EngineStatus::kOutOfMemory);
  EXPECT_EQ(job.device().Calls(), calls);
  EXPECT_EQ(job.engine().Stats().live_peak, kMiB);
}

// Free pages between blocks move before a job of some GiB holds a 64th more than was ever live.
TEST(Engine, ALargeBlockTakesThePagesOfScatteredOnes) {
  constexpr uint64_t kChunk = 64 << 10, kBlocks = 640, kEvery = 32;
  Job job(4096 * kMiB);
  std::vector<DeviceAddress> blocks;
  for (uint64_t i = 0; i < kBlocks; ++i) blocks.push_back(job.Ask(4 * kMiB));
  for (uint64_t i = kEvery; i < kBlocks; i += kEvery) job.Give(blocks[i]);
  const DeviceAddress large = job.Ask(128 * kMiB);
  EXPECT_TRUE(job.device().Accessible(large, 128 * kMiB));
  uint64_t live = 0;
  for (const auto& [address, bytes] : job.live()) live += bytes;
  EXPECT_LE(job.device().Held(), live + live / 64 + 2 * kChunk);
}

TEST(Engine, TheScriptGivesUpItsPagesWhenNothingElseIsLeft) {
  Job job(32 * kMiB);
  Net net(&job, 20, 4);  // about 21 MiB
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  ASSERT_TRUE(job.shares().back().Full()) << job.History();
  net.ZeroGrad();
  DeviceAddress large = job.Ask(24 * kMiB);
  EngineStatus status = EngineStatus::kOk;
  EXPECT_EQ(job.TryAsk(24 * kMiB, &status), 0u);
  EXPECT_EQ(status, EngineStatus::kOutOfMemory);
  job.Give(large);
  for (int i = 0; i < 4; ++i) job.Play([&] { net.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

TEST(Engine, FreesAfterEverything) {
  Job job;
  Net net(&job);
  std::vector<DeviceAddress> weights;
  for (int i = 0; i < 20; ++i) weights.push_back(job.Ask(10000 * (i + 1)));
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  job.GiveAll();
  uint64_t base = 0, bytes = 0;
  for (DeviceAddress address : weights) EXPECT_FALSE(job.engine().FindBlock(address, &base, &bytes));
}

TEST(Engine, DestroyedWithLiveBlocks) {
  Job job;
  Net net(&job);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  uint64_t calls = job.device().Calls();
  job.Destroy();
  EXPECT_EQ(job.device().Calls(), calls);  // the driver may be gone
}

TEST(Engine, DestroyedWhilePlanning) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 10; ++round) {
    Job job(4096 * kMiB);
    std::vector<uint64_t> sizes;
    for (int i = 0; i < 3000; ++i) sizes.push_back(512 + random() % 100000);
    for (int iteration = 0; iteration < 2; ++iteration) {
      std::vector<DeviceAddress> live;
      for (uint64_t bytes : sizes) {
        live.push_back(job.Ask(bytes));
        if (live.size() > 40) {
          std::swap(live[bytes % live.size()], live.back());
          job.Give(live.back());
          live.pop_back();
        }
      }
      job.Give(&live);
    }
    for (uint64_t k = 0; k < sizes.size() / 2; ++k) job.Touch(sizes[k]);
    job.Destroy();
  }
}

TEST(Engine, ADeviceWithoutVirtualMemoryIsPassedThrough) {
  Job job;
  job.device().FailEvery(1);
  EngineStatus status = EngineStatus::kOk;
  EXPECT_EQ(job.TryAsk(kMiB, &status), 0u);
  EXPECT_EQ(status, EngineStatus::kPassThrough);
  job.device().FailEvery(0);
  EXPECT_EQ(job.TryAsk(kMiB, &status), 0u);  // once and for all
  EXPECT_EQ(status, EngineStatus::kPassThrough);
  job.engine().NotePassedThrough();
  hotpack_stats stats = job.engine().Stats();
  EXPECT_EQ(stats.passed_through, 1u);
  EXPECT_EQ(stats.requests, 0u);
}

TEST(Engine, TheDriverGoesDown) {
  Job job;
  DeviceAddress block = job.Ask(kMiB);
  job.device().SetDown();
  EngineStatus status = EngineStatus::kOk;
  EXPECT_EQ(job.TryAsk(kMiB, &status), 0u);
  EXPECT_EQ(status, EngineStatus::kPassThrough);
  job.Give(block);  // frees after that succeed
}

TEST(Engine, NothingIsUnmappedWhileAStreamCaptures) {
  Job job(256 * kMiB);
  Net net(&job, 20, 4), other(&job, 33, 4);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  uint64_t unmaps = job.device().unmaps();
  job.device().SetCapturing(true);
  for (int i = 0; i < 3; ++i) job.Play([&] { other.Step(); });
  DeviceAddress large = job.Ask(20 * kMiB);
  EXPECT_EQ(job.device().unmaps(), unmaps);
  job.device().SetCapturing(false);
  job.Give(large);
  for (int i = 0; i < 12; ++i) job.Play([&] { other.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

// A plan that becomes ready in a capture would need new pages next to the ones in use, because none may move.
TEST(Engine, APlanWaitsForTheEndOfACapture) {
  Job job(256 * kMiB);
  Net net(&job, 20, 4);
  job.device().SetCapturing(true);
  for (int i = 0; i < 8; ++i) job.Play([&] { net.Step(); });
  const hotpack_stats before = job.engine().Stats();
  EXPECT_EQ(before.planned, 0u);
  EXPECT_EQ(before.no_plan_reason, HOTPACK_NO_PLAN_CAPTURE);
  EXPECT_LE(before.reserved_peak, before.live_peak + before.live_peak / 4) << "best fit goes on in the same pages";
  job.device().SetCapturing(false);
  for (int i = 0; i < 4; ++i) job.Play([&] { net.Step(); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  EXPECT_LE(job.engine().Stats().reserved_peak, before.live_peak + before.live_peak / 4);
}

// Random jobs while every k-th driver call fails: an answer is either right or an error.
TEST(Engine, EveryKthDriverCallFails) {
  for (uint64_t k : {2, 3, 4, 5, 7, 10, 13, 17, 23, 31, 40}) {
    SCOPED_TRACE("every call number " + std::to_string(k));
    Job job(256 * kMiB);
    job.Give(job.Ask(512));  // the arena is there
    job.device().FailEvery(k);
    std::vector<uint64_t> sizes;
    std::mt19937_64 random(k);
    for (int i = 0; i < 60; ++i) sizes.push_back(512 + random() % 900000);
    for (int iteration = 0; iteration < 10; ++iteration) {
      std::vector<DeviceAddress> live;
      for (uint64_t bytes : sizes) {
        EngineStatus status = EngineStatus::kOk;
        if (DeviceAddress address = job.TryAsk(bytes + (iteration == 7 ? bytes / 3 : 0), &status))
          live.push_back(address);
        ASSERT_NE(status, EngineStatus::kInvalidValue);
        if (live.size() > 20) {
          std::swap(live[bytes % live.size()], live.back());
          job.Give(live.back());
          live.pop_back();
        }
      }
      job.Give(&live);
      job.engine().WaitPlan(-1);
    }
    hotpack_stats stats = job.engine().Stats();
    EXPECT_EQ(stats.requests, stats.planned + stats.dynamic + stats.displaced);
    EXPECT_LE(stats.dynamic, stats.requests);
    job.device().FailEvery(0);
    if (job.device().stuck() == 0) {
      for (int i = 0; i < 10; ++i) {
        job.Play([&] {
          for (uint64_t bytes : sizes) job.Touch(bytes);
        });
      }
      EXPECT_TRUE(job.shares().back().Full()) << job.History();
    }
  }
}

TEST(Engine, AbandonAfterFork) {
  Job job;
  Net net(&job);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  ASSERT_GT(job.engine().Stats().planned, 0u);
  DeviceAddress live = job.live().begin()->first;
  pid_t child = fork();
  if (child == 0) {
    job.engine().AbandonAfterFork();
    DeviceAddress address = 0;
    uint64_t bytes = 0;
    int wrong = 0;
    wrong += job.engine().Allocate(512, 0, &address) != EngineStatus::kPassThrough;
    wrong += job.engine().Release(live, 0) != EngineStatus::kOk;
    wrong += job.engine().Release(0x1000, 0) != EngineStatus::kNotOurs;
    wrong += job.engine().FindBlock(live, &address, &bytes);
    job.engine().Mark();
    job.engine().Interrupt();
    job.engine().Resume();
    job.engine().NotePassedThrough();
    wrong += !job.engine().WaitPlan(-1);
    wrong += job.engine().Stats().planned == 0;
    job.Destroy();
    _exit(wrong);
  }
  int status = 0;
  for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; ++waited) {
    if (waited == 200) kill(child, SIGKILL);
    usleep(20000);
  }
  ASSERT_TRUE(WIFEXITED(status)) << "it hangs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  job.Play([&] { net.Step(); });  // the parent continues
  EXPECT_TRUE(job.shares().back().Full());
}

// --- what other threads may do while one is in the driver ------------------------------------------------------------

// No lock is held across a driver call except the one that serialises them: all other calls continue.
TEST(EngineInterleaving, OthersAreServedDuringDriverCalls) {
  Job job;
  Net net(&job);
  int calls = 0;
  bool inside = false;
  job.device().SetHook([&](const char*) {
    if (inside) return;
    inside = true;
    ++calls;
    job.engine().Stats();
    job.engine().Interrupt();
    job.engine().Resume();
    DeviceAddress base = 0;
    uint64_t bytes = 0;
    job.engine().FindBlock(1 << 20, &base, &bytes);
    inside = false;
  });
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  EXPECT_GT(calls, 10);
}

// The script is given up for a large request; while pages move, another thread asks for what would have come next. It
// must not be served from the script that is no longer.
TEST(EngineInterleaving, NothingIsServedFromAScriptThatWasGivenUp) {
  Job job(96 * kMiB);
  Net net(&job, 20, 4);
  for (int i = 0; i < 6; ++i) job.Play([&] { net.Step(); });
  ASSERT_TRUE(job.shares().back().Full()) << job.History();
  std::vector<std::pair<DeviceAddress, uint64_t>> others;
  std::mutex mutex;
  std::vector<std::thread> threads;
  // The first requests of the next step, which the script expects.
  std::vector<uint64_t> next = {net.Size(1, 500), net.Size(0, 100), net.Size(0, 777), net.Size(1, 100)};
  uint64_t planned = job.engine().Stats().planned;
  int failed = 0;
  bool inside = false;
  job.device().SetHook([&](const char* call) {
    if (inside) return;
    // The first two attempts, with the script in place, fail: the third gives it up.
    failed += std::string(call) == "CreateChunk" && failed < 3;
    job.device().FailEvery(failed < 3 ? 1 : 0);
    if (failed < 3) return;
    if (threads.size() == next.size()) return;
    inside = true;
    uint64_t size = next[threads.size()];
    uint64_t before = job.engine().Stats().requests;
    threads.emplace_back([&, size] {
      DeviceAddress address = 0;  // served at once by a script; without one it may have to wait for this call to end
      if (job.engine().Allocate(size, 0, &address) != EngineStatus::kOk) return;
      std::lock_guard lock(mutex);
      others.push_back({address, size});
    });
    for (int i = 0; i < 20 && job.engine().Stats().requests == before; ++i) usleep(1000);
    inside = false;
  });
  DeviceAddress large = job.TryAsk(40 * kMiB);
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  job.device().SetHook(nullptr);
  EXPECT_EQ(failed, 3);
  EXPECT_NE(large, 0u);
  EXPECT_EQ(others.size(), next.size());
  EXPECT_EQ(job.engine().Stats().planned, planned);
  for (auto [begin, size] : others) {
    EXPECT_TRUE(job.device().Accessible(begin, size));
    for (auto [address, bytes] : job.live()) {
      EXPECT_TRUE(begin + size <= address || address + bytes <= begin) << "two live blocks at " << begin;
    }
    EXPECT_EQ(job.engine().Release(begin, 0), EngineStatus::kOk);
  }
}

}  // namespace
}  // namespace hotpack
