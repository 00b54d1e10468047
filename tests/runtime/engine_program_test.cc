// Whole programs on an engine: each gets planned, and stays so.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/runtime/job.h"
#include "tests/runtime/play.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = Job::kMiB;

TEST(Program, TrainingStep) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  ExpectPlanned(
      &job, [&] { net.Step(); }, 20);
  job.Report("training step");
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.steady_iteration, 6);
  EXPECT_EQ(stats.planned_steady, stats.requests_steady);
  EXPECT_EQ(stats.driver_memory_calls_steady, 0u);
  EXPECT_EQ(stats.divergences, 0u);
  EXPECT_EQ(stats.reoptimizations, 0u);
  EXPECT_LE(stats.reserved_steady, stats.live_peak * 102 / 100 + 4 * kMiB);
}

// One piece of memory that holds the observed blocks and the plan together only after free memory was trimmed.
TEST(Program, FixedArena) {
  Job job(96 * kMiB);
  job.device().SetFixed();
  std::vector<DeviceAddress> weights;
  for (int l = 0; l < 6; ++l) weights.push_back(job.Ask(kMiB));
  auto iteration = [&] {
    std::vector<DeviceAddress> layers;
    for (int l = 0; l < 12; ++l) layers.push_back(job.Ask((4 << 20) + (l << 12)));
    job.Give(&layers);
  };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 10);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_EQ(stats.reserved_peak, 96 * kMiB);  // all of it is held, and said to be
  EXPECT_EQ(stats.reserved_steady, 96 * kMiB);
  job.Give(&weights);
}

TEST(Program, FixedArenaThatIsTooSmallForThePlanServesAllTheSame) {
  Job job(56 * kMiB);
  job.device().SetFixed();
  std::vector<DeviceAddress> spread;
  auto iteration = [&] {
    std::vector<DeviceAddress> layers;
    for (int l = 0; l < 12; ++l) {
      layers.push_back(job.Ask(4 * kMiB - (l << 12)));
      if (spread.size() < 12) spread.push_back(job.Ask(80 << 10));  // weights in between: the rest is in pieces
    }
    job.Give(&layers);
  };
  for (int i = 0; i < 20; ++i) job.Play(iteration);
  DeviceAddress large = job.TryAsk(57 * kMiB);
  EXPECT_EQ(large, 0u);
  job.Give(&spread);
}

TEST(Program, AssignmentInALoop) {
  Job job;
  DeviceAddress x = 0, out = 0;
  auto iteration = [&] {
    DeviceAddress loaded = job.Ask(3 * kMiB);  // x = x.cuda()
    job.Give(x);
    x = loaded;
    std::vector<DeviceAddress> hidden;
    for (int l = 0; l < 10; ++l) hidden.push_back(job.Ask((200 + 10 * l) << 10));
    DeviceAddress result = job.Ask(kMiB);
    job.Give(&hidden);
    job.Give(out);  // out = model(x)
    out = result;
  };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 30);
  job.Report("x = x.cuda(); out = model(x)");
}

// `between`: the optimizer makes a request after the micro-batches, so that the whole step differs from them.
void Accumulate(Job* job, std::vector<DeviceAddress>* gradients, int batches, bool between) {
  for (int b = 0; b < batches; ++b) {
    std::vector<DeviceAddress> activations;
    for (int l = 0; l < 6; ++l) activations.push_back(job->Ask((300 + 50 * l) << 10));
    if (b == 0 && !between) job->Give(gradients);
    for (int l = 5; l >= 0; --l) {
      DeviceAddress gradient = job->Ask((100 + 20 * l) << 10);
      job->Give(activations[l]);
      if (b == 0) {
        gradients->push_back(gradient);
      } else {
        job->Give(gradient);
      }
    }
  }
  if (!between) return;
  job->Touch(kMiB);
  job->Give(gradients);
}

TEST(Program, EightMicroBatchesAndAnOptimizerStep) {
  Job job;
  std::vector<DeviceAddress> gradients;
  auto iteration = [&] { Accumulate(&job, &gradients, 8, true); };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 20);
  job.Report("8 micro-batches, optimizer");
}

TEST(Program, EightMicroBatchesAlone) {
  Job job;
  std::vector<DeviceAddress> gradients;
  auto iteration = [&] { Accumulate(&job, &gradients, 8, false); };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 20);
  job.Report("8 micro-batches alone");
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.plan_height, stats.live_peak * 110 / 100);
}

// Gradients that stay for four micro-batches, where requests repeat with each: the plan of one micro-batch, which would
// serve them badly for ever, gives way.
TEST(Program, FourMicroBatchesOfManyLayers) {
  Job job;
  std::vector<DeviceAddress> gradients;
  auto micro_batch = [&](bool first) {
    std::vector<DeviceAddress> activations;
    for (int l = 0; l < 40; ++l) activations.push_back(job.Ask((300 + 10 * l) << 10));
    if (first) job.Give(&gradients);
    for (int l = 39; l >= 0; --l) {
      DeviceAddress gradient = job.Ask((100 + l) << 10);
      job.Give(activations[l]);
      first ? gradients.push_back(gradient) : job.Give(gradient);
    }
  };
  auto iteration = [&] {
    for (int b = 0; b < 4; ++b) micro_batch(b == 0);
  };
  PlayUntilPlanned(&job, iteration, 12);
  ExpectPlanned(&job, iteration, 10);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.steady_iteration, 16);  // in micro-batches: the fourth step
  EXPECT_LE(stats.reserved_peak, stats.live_peak * 120 / 100);
  job.Report("4 micro-batches, many layers");
}

// Iterations of many lengths: a plan of one of them must not make the others cost memory of their own.
TEST(Program, VaryingLengthsStayNearTheLivePeak) {
  Job job;
  std::mt19937 random(7);
  std::vector<DeviceAddress> weights;
  for (int l = 0; l < 20; ++l) weights.push_back(job.Ask(kMiB / 2));
  auto iteration = [&](int length) {
    std::vector<DeviceAddress> states;
    for (int t = 0; t < length; ++t) {
      for (int l = 0; l < 4; ++l) states.push_back(job.Ask((40 + 24 * l) << 10));
      job.Touch(200 << 10);
    }
    DeviceAddress logits = job.Ask(static_cast<uint64_t>(length) << 17);
    for (int t = length - 1; t >= 0; --t) {
      DeviceAddress gradient = job.Ask(160 << 10);
      for (int l = 3; l >= 0; --l) job.Give(states[4 * t + l]);
      job.Give(gradient);
    }
    job.Give(logits);
  };
  for (int i = 0; i < 150; ++i) job.Play([&] { iteration(std::min(50, 1 + static_cast<int>(random() % 99))); });
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.reserved_peak, stats.live_peak * 110 / 100 + (256 << 10));
  EXPECT_GT(stats.planned * 2, stats.requests);
  job.Report("varying lengths");
  job.Give(&weights);
}

TEST(Program, NinetySixEqualLayers) {
  Job job;
  auto iteration = [&] {
    DeviceAddress x = job.Ask(2 * kMiB), out = job.Ask(400 << 10);
    for (int l = 0; l < 96; ++l) {
      DeviceAddress a = job.Ask(700 << 10), b = job.Ask(300 << 10);
      job.Give(a);
      DeviceAddress next = job.Ask(400 << 10);
      job.Give(b);
      job.Give(out);
      out = next;
    }
    job.Give(out);
    job.Give(x);
  };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 20);
  job.Report("96 equal layers");
}

TEST(Program, WeightsAndOptimizerState) {
  Job job;
  Net net(&job, 20, 8);
  std::vector<DeviceAddress> weights, state;
  for (int i = 0; i < 60; ++i) weights.push_back(job.Ask((5 << 10) + i * 90'000));
  int step = 0;
  auto iteration = [&] {
    net.Step();
    if (step++ == 0) {
      for (int i = 0; i < 120; ++i) state.push_back(job.Ask((5 << 10) + i / 2 * 90'000));
    }
  };
  PlayUntilPlanned(&job, iteration);
  ExpectPlanned(&job, iteration, 10);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(stats.reserved_steady, stats.live_peak * 102 / 100 + 4 * kMiB);
  EXPECT_LE(stats.reserved_peak, stats.live_peak * 120 / 100 + 4 * kMiB);
  job.Report("weights and optimizer state");
}

// The plan relies on the rest of the weights' chunks. The weights, and the chunks with them, are freed before it is
// followed.
TEST(Program, WhatAPlanCountsOnMayGoBeforeItIsTakenUp) {
  Job job(4096 * kMiB, {}, 2 * kMiB);
  Net net(&job, 20, 8);
  std::vector<DeviceAddress> weights, between;
  for (int i = 0; i < 40; ++i) {  // scattered: nearly half of each chunk is left over
    weights.push_back(job.Ask(1100 << 10));
    between.push_back(job.Ask(948 << 10));
  }
  job.Give(&between);
  job.Play([&] { net.Step(); });
  job.Play([&] { net.Step(); });
  job.Play([&] {
    Net::Change change;
    change.at = [&](int layer) {
      if (layer == 5) job.engine().WaitPlan(-1);
    };
    net.Step(change);
  });
  ASSERT_EQ(job.engine().Stats().steady_iteration, -1);
  job.Give(&weights);
  DeviceAddress large = job.Ask(100 * kMiB);  // takes their pages
  PlayUntilPlanned(
      &job, [&] { net.Step(); }, 12);
  ExpectPlanned(
      &job, [&] { net.Step(); }, 10);
  job.Give(large);
  ExpectPlanned(
      &job, [&] { net.Step(); }, 10);
}

TEST(Program, OneMarkedIterationIsEnough) {
  Job job;
  Net net(&job);
  for (int i = 0; i < 10; ++i) {
    Job::Share share = job.Play([&] {
      job.engine().Mark();
      net.Step();
    });
    // The first is watched; the plan is made at the second mark, in the background, and taken up within the third at
    // the latest. The gradients' lives are seen when they end, in the next iteration.
    if (i >= 2) {
      EXPECT_GT(share.planned, 0u) << job.History();
    }
    if (i >= 5) {
      EXPECT_TRUE(share.Full()) << job.History();
    }
  }
  EXPECT_LE(job.engine().Stats().steady_iteration, 3);
  job.Report("marks");
}

// A loop within the first iteration, whose blocks live longer each time.
void PlayLoop(Job* job, int times) {
  std::vector<DeviceAddress> kept;
  for (int time = 0; time < times; ++time) {
    job->Play([&] {
      for (int l = 0; l < 40; ++l) {
        const DeviceAddress address = job->Ask((1 + l % 7) << 16);
        if (l % 20 == 0) {
          kept.push_back(address);
        } else {
          job->Give(address);
        }
      }
      while (kept.size() > static_cast<size_t>(time / 4)) {
        job->Give(kept.front());
        kept.erase(kept.begin());
      }
    });
  }
  job->Give(&kept);
}

TEST(Program, LoopsOfTheFirstIterationAreNotPlannedIfMarksAreExpected) {
  Job unmarked, expecting;
  expecting.engine().ExpectMarks();
  for (Job* job : {&unmarked, &expecting}) PlayLoop(job, 40);
  EXPECT_GE(unmarked.engine().Stats().plans, 2u);
  EXPECT_EQ(expecting.engine().Stats().plans, 0u);
  // Iterations are planned as ever.
  Net net(&expecting);
  for (int i = 0; i < 10; ++i) {
    expecting.engine().Mark();
    expecting.Play([&] { net.Step(); });
  }
  EXPECT_TRUE(expecting.Play([&] { expecting.engine().Mark(), net.Step(); }).Full()) << expecting.History();
}

TEST(Program, LoopsOfMarkedIterationsAreNotPlannedAgain) {
  Job job;
  PlayLoop(&job, 8);
  ASSERT_GE(job.engine().Stats().plans, 1u);
  const uint64_t before = job.engine().Stats().plans;
  job.engine().Mark();
  PlayLoop(&job, 40);
  EXPECT_EQ(job.engine().Stats().plans, before);
}

TEST(Program, MarksThatDoNotComeAreNotWaitedForForEver) {
  Job job;
  job.engine().ExpectMarks();
  PlayLoop(&job, (1 << 16) / 40 - 10);
  EXPECT_EQ(job.engine().Stats().plans, 0u);
  PlayLoop(&job, 400);
  EXPECT_GE(job.engine().Stats().plans, 1u);
}

TEST(Program, InterruptAndResume) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  std::vector<DeviceAddress> early, late;
  for (int i = 0; i < 12; ++i) {
    Net::Change change;
    change.at = [&](int layer) {
      if (layer != i) return;
      job.engine().Interrupt();
      job.engine().Interrupt();
      for (int k = 0; k < 20; ++k) late.push_back(job.Ask((70 + 13 * k) << 10));
      job.Give(&early);  // of a monitored moment, released in between
      job.engine().Resume();
      early.push_back(job.Ask(99 << 10));  // still interrupted
      job.engine().Resume();
    };
    hotpack_stats before = job.engine().Stats();
    net.Step(change);
    hotpack_stats after = job.engine().Stats();
    EXPECT_EQ(after.requests - before.requests - (after.planned - before.planned), 21u) << i;  // those in between
    EXPECT_EQ(after.divergences, 0u);
    job.Give(&late);  // of unmonitored blocks, after
  }
  ExpectPlanned(
      &job, [&] { net.Step(); }, 3);
}

TEST(Program, MonitoredBlocksAreReleasedWhileInterrupted) {
  Job job;
  Net net(&job);
  PlayUntilPlanned(&job, [&] { net.Step(); });
  ExpectPlanned(
      &job, [&] { net.Step(); }, 2);
  job.engine().Interrupt();
  net.ZeroGrad();  // planned blocks
  std::vector<DeviceAddress> other;
  for (int k = 0; k < 50; ++k) other.push_back(job.Ask((70 + 13 * k) << 10));
  job.engine().Resume();
  ExpectPlanned(
      &job, [&] { net.Step(); }, 5);
  job.Give(&other);
  ExpectPlanned(
      &job, [&] { net.Step(); }, 5);
}

// Never twice the same: no plan, and no more memory than best fit needs.
TEST(Program, NeverHot) {
  std::mt19937_64 random(TestSeed());
  EngineOptions options;
  options.window = 4096;
  Job job(4096 * kMiB, options);
  std::vector<DeviceAddress> live;
  for (int i = 0; i < 20000; ++i) {
    live.push_back(job.Ask(1 + random() % (512 << 10)));
    if (live.size() > 100) {
      std::swap(live[random() % live.size()], live.back());
      job.Give(live.back());
      live.pop_back();
    }
  }
  job.engine().WaitPlan(-1);
  hotpack_stats stats = job.engine().Stats();
  EXPECT_EQ(stats.planned, 0u);
  EXPECT_EQ(stats.steady_iteration, -1);
  EXPECT_EQ(stats.dynamic, stats.requests);
  EXPECT_LE(stats.reserved_peak, stats.live_peak * 13 / 10 + 8 * kMiB);
  job.Give(&live);
  EXPECT_EQ(job.device().Held(), stats.reserved_peak);
}

}  // namespace
}  // namespace hotpack
