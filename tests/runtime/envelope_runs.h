// Runs of jobs on an engine that may follow an envelope: its options, and the share that got a planned place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/runtime/job.h"

namespace hotpack {

// In logical time and with fixed lengths, so that each run is the same.
inline EngineOptions LogicalTime(bool envelopes) {
  EngineOptions options;
  options.logical_time = true;
  options.plan_time_limit_ns = kLogicalPlanLimitNs;
  options.envelopes = envelopes;
  return options;
}
inline EngineOptions WithEnvelopes() { return LogicalTime(true); }

// Per mille of the requests from iteration `from` on.
inline uint64_t Planned(const Job& job, size_t from) {
  uint64_t requests = 0, planned = 0;
  for (size_t k = from; k < job.shares().size(); ++k) {
    requests += job.shares()[k].requests;
    planned += job.shares()[k].planned;
  }
  return requests == 0 ? 0 : 1000 * planned / requests;
}

}  // namespace hotpack
