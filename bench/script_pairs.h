// Serves a step's requests by script repeatedly. Shared by serving_bench and recorder_bench.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/serving_job.h"

namespace hotpack::bench {

// Plays steps of `job` until the benchmark ends. One iteration of the benchmark is an allocation and its release.
// Reports an error if a request fails or is not served by script.
inline void PlayByScript(benchmark::State& state, ServingJob& job) {
  if (!job.WarmUp()) {
    state.SkipWithError("the engine does not serve the step by script");
    return;
  }
  while (state.KeepRunningBatch(job.PairsPerStep())) {
    if (!job.PlayStep()) {
      state.SkipWithError("a request failed");
      return;
    }
  }
  if (!job.AllPlanned()) state.SkipWithError("a request was not served by script");
}

}  // namespace hotpack::bench
