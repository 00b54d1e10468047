// Jobs whose iterations differ, served by an envelope: what share gets a planned place, when envelopes are used, when
// they are given up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/runtime/job.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr int kLayers = 12;

EngineOptions WithEnvelopes() {
  EngineOptions options;
  options.envelopes = true;
  return options;
}

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

// Per mille of the requests from iteration `from` on.
uint64_t Planned(const Job& job, size_t from) {
  uint64_t requests = 0, planned = 0;
  for (size_t k = from; k < job.shares().size(); ++k) {
    requests += job.shares()[k].requests;
    planned += job.shares()[k].planned;
  }
  return requests == 0 ? 0 : 1000 * planned / requests;
}

TEST(EngineEnvelope, ServesStepsOfAnyLength) {
  std::mt19937_64 random(TestSeed());
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
  const EngineUsage usage = job.engine().Usage();
  EXPECT_TRUE(usage.followed);
  EXPECT_EQ(usage.plan, stats.plan_height);
  EXPECT_EQ(usage.outside_plan, weights.size() * Job::kMiB / 4) << "only the weights are live";
  job.GiveAll();
}

TEST(EngineEnvelope, IsOffUnlessAskedFor) {
  std::mt19937_64 random(TestSeed());
  Job job;
  for (int i = 0; i < 40; ++i) {
    const uint64_t length = 20 + random() % 1000;
    job.Play([&] { Step(&job, length); });
  }
  EXPECT_LE(Planned(job, 5), 100u) << job.History();
  EXPECT_LE(job.engine().Stats().plans, 8u) << "plans of iterations that do not come again";
}

// Without envelopes, too: what comes again is planned as before.
TEST(EngineEnvelope, AnIterationThatComesAgainIsPlannedHoweverManyDidNot) {
  std::mt19937_64 random(TestSeed());
  Job job;
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
}

// Then the job has scripts again.
TEST(EngineEnvelope, IsGivenUpIfItServesLittle) {
  std::mt19937_64 random(TestSeed());
  Job job(4096 * Job::kMiB, WithEnvelopes());
  const auto anything = [&] {
    std::vector<DeviceAddress> live;
    for (int i = 0; i < 40; ++i) {
      live.push_back(job.Ask((1 + random() % 200) * 512));
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

// The rest of the chunks that weights keep belongs to the places, too.
TEST(EngineEnvelope, UsesTheMemoryBesideWhatStays) {
  std::mt19937_64 random(TestSeed());
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
}

}  // namespace
}  // namespace hotpack
