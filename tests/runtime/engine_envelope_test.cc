// Jobs whose iterations differ, served by an envelope: what share gets a planned place, when envelopes are used, when
// they are given up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "runtime/script/envelope.h"
#include "tests/runtime/envelope_runs.h"
#include "tests/runtime/gathered_step.h"
#include "tests/runtime/job.h"

namespace hotpack {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr int kLayers = 12;

// A training step over a sequence of `length`, without the layer `skipped`. Marks its end.
void Step(Job* job, uint64_t length, int skipped = -1) {
  std::vector<DeviceAddress> activations;
  const DeviceAddress words = job->Ask(length * 512);
  for (uint64_t l = 0; l < kLayers; ++l) {
    if (static_cast<int>(l) == skipped) continue;
    activations.push_back(job->Ask(length * (l + 3) * kKiB));
    job->Touch(length * 5 * kKiB);
  }
  while (!activations.empty()) {
    const DeviceAddress gradient = job->Ask(length * 7 * kKiB);
    job->Give(activations.back());
    activations.pop_back();
    job->Give(gradient);
  }
  job->Give(words);
  for (uint64_t l = 0; l < 4; ++l) job->Touch((40 + 8 * l) * kKiB);  // the optimizer
  job->engine().Mark();
}

TEST(EngineEnvelope, ServesStepsOfAnyLength) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  std::vector<DeviceAddress> weights;
  for (int l = 0; l < kLayers; ++l) weights.push_back(job.Ask(Job::kMiB / 4));
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const uint64_t length = 20 + random() % 30;
    const int skipped = random() % 3 == 0 ? static_cast<int>(random() % kLayers) : -1;
    job.Play([&] { Step(&job, length, skipped); });
  }
  job.Report("steps of any length");
  EXPECT_GE(Planned(job, 5), 950u) << job.History();
  EXPECT_GE(Planned(job, 40), 980u) << job.History();
  const hotpack_stats stats = job.engine().Stats();
  EXPECT_LE(static_cast<double>(stats.plans), 1 + std::log2(kSteps));
  EXPECT_GE(stats.steady_iteration, 0);
  EXPECT_GE(stats.envelope_entries, 40u) << "the requests of a step";
  EXPECT_LE(stats.envelope_entries, 80u);
  EXPECT_GT(stats.envelope_bytes, stats.envelope_entries * 2 * sizeof(EnvelopeEntry))
      << "the script's and the planner's";
  EXPECT_LT(stats.envelope_bytes, uint64_t{1} << 20);
  EXPECT_GT(stats.envelope_jumps, stats.requests / 4) << "hardly a length comes again";
  EXPECT_LT(stats.envelope_jumps, stats.requests);
  const EngineUsage usage = job.engine().Usage();
  EXPECT_TRUE(usage.followed);
  EXPECT_EQ(usage.plan, stats.plan_height);
  EXPECT_EQ(usage.outside_plan, weights.size() * Job::kMiB / 4) << "only the weights are live";
  job.GiveAll();
}

// Requests of the last half of the steps whose addresses were last used on another stream, in a job of which each layer
// is gathered on a stream of its own. Each such request waits for the other stream's work.
uint64_t WaitsForAnotherStream(bool avoid, hotpack_stats* stats) {
  EngineOptions options = WithEnvelopes();
  options.stream_edges.avoid = avoid;
  Job job(4096 * Job::kMiB, options);
  Engine& engine = job.engine();
  std::map<DeviceAddress, uint32_t> last;  // by 512 bytes: the stream
  uint64_t waits = 0;
  bool counts = false;
  const auto ask = [&](uint64_t bytes, uint32_t stream) {
    DeviceAddress address = 0;
    EXPECT_EQ(engine.Allocate(bytes, stream | kStreamOrdered, &address), EngineStatus::kOk);
    bool waited = false;
    for (DeviceAddress at = address; at < address + bytes; at += 512) {
      const auto [found, first] = last.emplace(at, stream);
      waited |= !first && std::exchange(found->second, stream) != stream;
    }
    waits += waited && counts ? 1 : 0;
    return address;
  };
  std::mt19937_64 random(1);
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps; ++step) {
    counts = step >= kSteps / 2;
    const uint64_t length = 20 + random() % 30;
    PlayGatheredStep(&engine, kLayers, ask, [length](uint64_t layer) {
      return LayerBytes{(200 + layer % 3 * 8) * kKiB, length * 8 * kKiB, length * 6 * kKiB};
    });
  }
  *stats = engine.Stats();
  return waits;
}

// A validation that the program keeps out of every iteration is no reason to plan again.
TEST(EngineEnvelope, RequestsOfInterruptionsAreNotMissed) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  for (int i = 1; i <= 60; ++i) {
    job.Play([&] {
      if (i % 10 == 0) {
        job.engine().Interrupt();
        for (int k = 0; k < 1000; ++k) job.Touch((100 + k) * kKiB);
        job.engine().Resume();
      }
      Step(&job, 30);
    });
  }
  const hotpack_stats stats = job.engine().Stats();
  EXPECT_EQ(stats.plans, 1u);
  EXPECT_EQ(stats.envelope_entries, 0u);
  EXPECT_GE(stats.planned, 55u * 41);
}

TEST(EngineEnvelope, KeepsStreamsApart) {
  hotpack_stats together, apart;
  const uint64_t before = WaitsForAnotherStream(false, &together), after = WaitsForAnotherStream(true, &apart);
  EXPECT_GT(together.envelope_entries, 0u);
  EXPECT_GT(before, 50u);
  EXPECT_LE(after * 10, before) << after;
  EXPECT_EQ(together.plan_stream_edges + together.plan_stream_edges_avoided, 0u) << "not known";
  EXPECT_GT(apart.plan_stream_edges_avoided, 0u);
  EXPECT_LE(apart.reserved_peak, together.reserved_peak + (4 << 20));
}

TEST(EngineEnvelope, CanBeSwitchedOff) {
  EXPECT_TRUE(EngineOptions().envelopes);
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, LogicalTime(false));
  for (int i = 0; i < 40; ++i) {
    const uint64_t length = 20 + random() % 1000;
    job.Play([&] { Step(&job, length); });
  }
  EXPECT_LE(Planned(job, 5), 100u) << job.History();
}

// Without envelopes, too: what comes again is planned as before.
TEST(EngineEnvelope, AnIterationThatComesAgainIsPlannedHoweverManyDidNot) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, LogicalTime(false));
  for (int i = 0; i < 40; ++i) {
    const uint64_t length = 20 + random() % 1000;
    job.Play([&] { Step(&job, length); });
  }
  for (int i = 0; i < 6; ++i) job.Play([&] { Step(&job, 33); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
}

TEST(EngineEnvelope, AJobThatRepeatsHasAScript) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  for (int i = 0; i < 20; ++i) job.Play([&] { Step(&job, 25); });
  EXPECT_EQ(Planned(job, 5), 1000u) << job.History();
  EXPECT_EQ(job.engine().Stats().plans, 1u);
  EXPECT_EQ(job.engine().Stats().envelope_entries, 0u);
}

// Lengths differ, then stay the same for `rest` steps, then differ again.
hotpack_stats PlayWithARest(Job* job, int before, int rest, int after) {
  std::mt19937_64 random(3);
  for (int i = 0; i < before; ++i) job->Play([&] { Step(job, 20 + random() % 30); });
  EXPECT_GT(job->engine().Stats().envelope_entries, 0u);
  for (int i = 0; i < rest; ++i) job->Play([&] { Step(job, 41); });
  const hotpack_stats rested = job->engine().Stats();
  for (int i = 0; i < after; ++i) job->Play([&] { Step(job, 20 + random() % 30); });
  return rested;
}

TEST(EngineEnvelope, AJobThatComesToRestHasAScript) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const DeviceAddress weights = job.Ask(Job::kMiB);
  const uint64_t before = 24, rest = 60;
  const hotpack_stats stats = PlayWithARest(&job, before, rest, 0);
  job.Report("a job that comes to rest");
  EXPECT_EQ(stats.envelope_entries, 0u);
  EXPECT_EQ(stats.variants, 1u);
  EXPECT_GE(Planned(job, before + 1), 950u) << job.History();  // also while one takes over from the other
  EXPECT_EQ(Planned(job, before + rest - 10), 1000u) << job.History();
  EXPECT_LE(stats.plan_height, uint64_t{41} * (3 + 14) / 2 * 12 * kKiB + 41 * 19 * kKiB) << "the step's own peak";
  job.Give(weights);
  job.GiveAll();
}

TEST(EngineEnvelope, AJobThatRestsForAWhileKeepsItsEnvelope) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const hotpack_stats stats = PlayWithARest(&job, 24, 12, 0);
  EXPECT_GT(stats.envelope_entries, 0u) << "an evaluation may come every tenth step";
  job.GiveAll();
}

TEST(EngineEnvelope, ComesBackWhenStepsDifferAgain) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const hotpack_stats rested = PlayWithARest(&job, 24, 50, 40);
  EXPECT_EQ(rested.envelope_entries, 0u);
  const hotpack_stats stats = job.engine().Stats();
  EXPECT_GT(stats.envelope_entries, 0u);
  EXPECT_GE(Planned(job, 24 + 50 + 5), 950u) << job.History();
  // The next rest has to be longer.
  for (int i = 0; i < 40; ++i) job.Play([&] { Step(&job, 44); });
  EXPECT_GT(job.engine().Stats().envelope_entries, 0u);
  for (int i = 0; i < 60; ++i) job.Play([&] { Step(&job, 44); });
  EXPECT_EQ(job.engine().Stats().envelope_entries, 0u);
  job.GiveAll();
}

// A job that has differed after a dozen steps is not at rest after 29: a script would serve what it samples badly, and
// be planned again each time.
TEST(EngineEnvelope, AJobThatDiffersNowAndThenKeepsItsEnvelope) {
  std::mt19937_64 random(3);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  for (int i = 0; i < 24; ++i) job.Play([&] { Step(&job, 20 + random() % 30); });
  for (int i = 0; i < 400; ++i) job.Play([&] { i == 12 || i % 30 == 29 ? Step(&job, 30, 4) : Step(&job, 41); });
  const hotpack_stats stats = job.engine().Stats();
  EXPECT_GT(stats.envelope_entries, 0u);
  EXPECT_LE(stats.plans, 9u);
  EXPECT_GE(Planned(job, 60), 998u) << job.History();
  job.GiveAll();
}

// Samples before its step, as the script does not have it.
void StepWithSamples(Job* job) {
  for (uint64_t i = 0; i < 12; ++i) job->Touch((1500 + 3 * i) * kKiB);
  Step(job, 41);
}

// Plays until a script takes over in the next step. Returns the plans so far.
uint64_t PlayUntilARest(Job* job) {
  PlayWithARest(job, 24, 1, 0);
  const uint64_t plans = job->engine().Stats().plans;
  for (int i = 0; i < 60 && job->engine().Stats().plans == plans; ++i) job->Play([&] { Step(job, 41); });
  EXPECT_EQ(job->engine().Stats().plans, plans + 1);
  job->Play([&] { Step(job, 41); });
  EXPECT_EQ(job->engine().Stats().plans, plans + 1) << "not one more where it takes over";
  return plans + 1;
}

// The iteration in which a script takes over says nothing of it.
TEST(EngineEnvelope, AScriptThatTakesOverIsNotJudgedByThat) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  PlayUntilARest(&job);
  for (int i = 0; i < 2; ++i) job.Play([&] { StepWithSamples(&job); });
  for (int i = 0; i < 20; ++i) job.Play([&] { Step(&job, 41); });
  EXPECT_EQ(job.engine().Stats().envelope_entries, 0u);
  EXPECT_EQ(Planned(job, job.shares().size() - 15), 1000u) << job.History();
  job.GiveAll();
}

// ... until the job leaves the script.
TEST(EngineEnvelope, AnEnvelopeThatIsReadyWaitsWithoutFurtherPlans) {
  Job job(4096 * Job::kMiB, WithEnvelopes());
  PlayUntilARest(&job);
  job.Play([&] { StepWithSamples(&job); });
  const uint64_t plans = job.engine().Stats().plans;
  for (int i = 0; i < 20; ++i) job.Play([&] { Step(&job, 41); });
  EXPECT_LE(job.engine().Stats().plans, plans + 2);
  EXPECT_EQ(Planned(job, job.shares().size() - 15), 1000u) << job.History();
  job.GiveAll();
}

// Then the job has scripts again.
TEST(EngineEnvelope, IsGivenUpIfItServesLittle) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const auto anything = [&] {
    std::vector<DeviceAddress> live;
    for (int i = 0; i < 40; ++i) {
      live.push_back(job.Ask((1 + random() % 20000) * 512));
      if (random() % 2 == 0 || live.size() > 20) {
        job.Give(live[random() % live.size()]);
        live.erase(std::find_if(live.begin(), live.end(), [&](DeviceAddress a) { return job.live().count(a) == 0; }));
      }
    }
    for (const DeviceAddress address : live) job.Give(address);
    job.engine().Mark();
  };
  for (int i = 0; i < 60; ++i) job.Play(anything);
  for (int i = 0; i < 10; ++i) job.Play([&] { Step(&job, 25); });
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  EXPECT_EQ(job.engine().Usage().outside_plan, 0u);
}

// A phase without marks, such as generation: what repeats there has a script. With marks, the envelope comes back.
TEST(EngineEnvelope, WaitsWhileTheJobDoesNotMarkItsIterations) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const auto step = [&] { Step(&job, 20 + random() % 30); };
  for (int i = 0; i < 20; ++i) job.Play(step);
  EXPECT_GE(Planned(job, 10), 950u) << job.History();
  const auto unmarked = [&] {
    std::vector<DeviceAddress> live;
    for (uint64_t l = 0; l < 30; ++l) live.push_back(job.Ask((10 + 7 * l) * kKiB));
    job.Give(&live);
  };
  for (int i = 0; i < 60; ++i) job.Play(unmarked);
  EXPECT_TRUE(job.shares().back().Full()) << job.History();
  for (int i = 0; i < 12; ++i) job.Play(step);
  EXPECT_GE(Planned(job, job.shares().size() - 6), 950u) << job.History();
}

// Lengths that differ by much are no sign that the job has stopped marking its iterations.
TEST(EngineEnvelope, AShortIterationBeforeALongOneIsNoWait) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const uint64_t layers = i % 4 == 2 ? 5 : i % 4 == 3 ? 300 + random() % 20 : 150 + random() % 100;
    job.Play([&] {
      std::vector<DeviceAddress> live;
      for (uint64_t l = 0; l < layers; ++l) live.push_back(job.Ask((8 + l % 5) * kKiB));
      while (!live.empty()) {
        job.Give(live.back());
        live.pop_back();
        job.Touch(20 * kKiB);
      }
      job.engine().Mark();
    });
  }
  EXPECT_LE(static_cast<double>(job.engine().Stats().plans), 1 + std::log2(kSteps)) << job.History();
  EXPECT_GE(Planned(job, 5), 900u) << job.History();
}

// A router divides the same number of tokens among experts, each time in another way. The places have room for the
// most that each gets. Their blocks are smaller, and about as large as a chunk: each could use two in part.
TEST(EngineEnvelope, BlocksSmallerThanTheirPlacesLieCloseTogether) {
  const auto play = [](bool envelopes) {
    std::mt19937_64 random(1);
    Job job(4096 * Job::kMiB, LogicalTime(envelopes));
    uint64_t held = 0;
    for (int i = 0; i < 60; ++i) {
      job.engine().ResetPeak();
      job.Play([&] {
        constexpr uint64_t kExperts = 8, kTokens = 1600;
        std::vector<DeviceAddress> blocks;
        for (int layer = 0; layer < 6; ++layer) {
          uint64_t left = kTokens;
          for (uint64_t e = 0; e < kExperts; ++e) {
            const uint64_t mean = left / (kExperts - e);
            const uint64_t tokens = e + 1 == kExperts ? left : mean / 4 + random() % (mean * 3 / 2);
            left -= tokens;
            blocks.push_back(job.Ask(tokens * 512));
          }
        }
        while (!blocks.empty()) {
          job.Give(blocks.back());
          blocks.pop_back();
        }
        job.engine().Mark();
      });
      if (i >= 40) held = std::max(held, job.engine().Usage().held_peak);
    }
    std::printf("held %.2f MiB, planned %zu of 1000\n", static_cast<double>(held) / Job::kMiB,
                static_cast<size_t>(Planned(job, 40)));
    return held;
  };
  const uint64_t without = play(false);
  EXPECT_LE(play(true), without + without / 3) << "two fifths more, if each lay at its own place";
}

// Places take no memory from a device that best fit has enough of.
TEST(EngineEnvelope, FitsWhereBestFitDoes) {
  const auto fits = [](uint64_t device_bytes, bool envelopes) {
    std::mt19937_64 random(1);
    Job job(device_bytes, LogicalTime(envelopes));
    for (int l = 0; l < kLayers; ++l) job.Ask(Job::kMiB / 8);
    bool all = true;
    for (int i = 0; i < 40; ++i) {
      std::vector<DeviceAddress> live;
      const uint64_t length = 20 + random() % 30;
      for (uint64_t l = 0; l < kLayers; ++l) {
        live.push_back(job.TryAsk(length * (l + 3) * kKiB));
        all = all && live.back() != 0;
      }
      while (!live.empty()) {
        job.Give(live.back());
        live.pop_back();
      }
      job.engine().Mark();
    }
    return all;
  };
  const auto smallest = [&](bool envelopes) {
    uint64_t bytes = 4 * Job::kMiB;
    while (!fits(bytes, envelopes)) bytes += 128 * kKiB;
    return bytes;
  };
  const uint64_t without = smallest(false);
  const uint64_t with = smallest(true);
  std::printf("smallest device: %.3f MiB with envelopes, %.3f without\n", static_cast<double>(with) / Job::kMiB,
              static_cast<double>(without) / Job::kMiB);
  EXPECT_LE(with, without + without / 16);
}

// It plays the same with and without.
TEST(EngineEnvelope, IsNotForAPlainArena) {
  const auto planned = [](bool envelopes, bool plain) {
    std::mt19937_64 random(1);
    FakeDeviceMemory device(uint64_t{64} << 20, 64 << 10);
    if (plain) device.SetFixed();
    Engine engine(&device, LogicalTime(envelopes));
    for (int i = 0; i < 30; ++i) {
      for (int k = 0; k < 20; ++k) {
        DeviceAddress address = 0;
        EXPECT_EQ(engine.Allocate(1 + random() % 100'000, 0, &address), EngineStatus::kOk);
        engine.Release(address, 0);
      }
      engine.Mark();
    }
    return engine.Stats().planned;
  };
  EXPECT_EQ(planned(true, /*plain=*/true), planned(false, true));
  EXPECT_GT(planned(true, /*plain=*/false), planned(false, false));
}

// The rest of the chunks that weights keep belongs to the places, too.
TEST(EngineEnvelope, UsesTheMemoryBesideWhatStays) {
  std::mt19937_64 random(1);
  Job job(4096 * Job::kMiB, WithEnvelopes());
  std::vector<DeviceAddress> between;
  for (int l = 0; l < 40; ++l) {
    job.Ask(20 * kKiB);  // stays
    between.push_back(job.Ask(600 * kKiB));
  }
  job.Give(&between);
  for (int i = 0; i < 30; ++i) {
    const uint64_t length = 40 + random() % 8;
    job.Play([&] { Step(&job, length, static_cast<int>(random() % kLayers)); });
  }
  const hotpack_stats stats = job.engine().Stats();
  EXPECT_GE(Planned(job, 20), 980u) << job.History();
  EXPECT_LE(job.engine().Usage().held, stats.live_peak + stats.live_peak / 8) << "the chunks of the weights are used";
  EXPECT_GE(stats.plan_height, stats.plan_lower_bound) << "both are of zone and fragments";
}

}  // namespace
}  // namespace hotpack
