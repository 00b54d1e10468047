// Jobs whose iterations are loops of any number of turns, served by an envelope.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/runtime/envelope_runs.h"
#include "tests/runtime/job.h"

namespace hotpack {
namespace {

constexpr uint64_t kKiB = 1 << 10;

// A step of a recurrent cell: each turn keeps blocks until the backward pass, which goes through the turns in reverse.
void RecurrentStep(Job* job, int turns) {
  std::vector<DeviceAddress> kept;
  for (int t = 0; t < turns; ++t) {
    for (const uint64_t kib : {32, 32, 128}) kept.push_back(job->Ask(kib * kKiB));
    job->Touch(256 * kKiB);
    for (const uint64_t kib : {128, 32}) kept.push_back(job->Ask(kib * kKiB));
    job->Touch(64 * kKiB);
  }
  while (!kept.empty()) {
    const DeviceAddress gradient = job->Ask(128 * kKiB), carried = job->Ask(32 * kKiB);
    for (int k = 0; k < 5; ++k) {
      if (k % 2 == 0) job->Touch(32 * kKiB);
      job->Give(kept.back());
      kept.pop_back();
    }
    job->Give(gradient);
    job->Give(carried);
  }
  job->engine().Mark();
}

TEST(EngineEnvelope, ServesLoopsOfAnyNumberOfTurns) {
  uint64_t planned = 0, unmaps = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    std::mt19937_64 random(seed);
    Job job(4096 * Job::kMiB, WithEnvelopes());
    for (int i = 0; i < 60; ++i) job.Play([&] { RecurrentStep(&job, 10 + static_cast<int>(random() % 30)); });
    job.Report("loops of any number of turns");
    EXPECT_GE(Planned(job, 5), 950u) << job.History();
    EXPECT_GE(Planned(job, 40), 980u) << job.History();
    planned += Planned(job, 5);
    unmaps += job.device().unmaps();
    job.GiveAll();
  }
  EXPECT_GE(planned / 6, 975u) << "on average";
  EXPECT_LE(unmaps, 6u * 130) << "what finds its place in use takes one that has its pages";
}

}  // namespace
}  // namespace hotpack
