// A step's requests served by script, over and over: what serving_bench and recorder_bench both time.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/serving_job.h"

namespace hotpack::bench {

// Plays steps of `job` for as long as the benchmark goes on; an iteration is an allocation and its release. An error if
// a request fails or is not served by script.
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
