// Plays a recording as a job that an envelope serves (runtime/script/envelope.h): what share of the requests gets a
// planned place, how high the placements are, how often they are made. No memory is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "runtime/script/envelope_learner.h"

namespace hotpack {

// Of the requests of one iteration.
struct EnvelopeIterationFigures {
  uint64_t requests = 0;
  uint64_t planned = 0;      // served at a planned place
  uint64_t alternative = 0;  // ... of these, at another entry's place
  uint64_t unknown = 0;      // no entry
  uint64_t unplaced = 0;     // the entry has no place
  uint64_t too_large = 0;    // for the place
  uint64_t displaced = 0;    // the place was in use
  uint64_t mistaken = 0;     // the entry is not the one that the merge found
  uint64_t live_units = 0;   // at most

  // Adds the requests; of the live units the larger ones count.
  EnvelopeIterationFigures& operator+=(const EnvelopeIterationFigures& other);
};

struct EnvelopePlan {
  uint64_t iteration = 0;  // after which it was made
  uint64_t height_units = 0, load_units = 0;
  uint64_t moments = 0;
  int64_t pack_ns = 0;
};

struct EnvelopePlay {
  std::vector<EnvelopeIterationFigures> iterations;
  std::vector<EnvelopePlan> plans;
  uint64_t entries = 0;
  uint64_t expected = 0, beam = 0, searches = 0;  // EnvelopeFollower::Figures, summed
  int64_t merge_ns = 0, follow_ns = 0;
};

// Iterations are what lies between marks. A recording without marks is one iteration, and nothing is planned.
EnvelopePlay PlayEnvelope(const Trace& trace, const EnvelopeSettings& settings = {});

}  // namespace hotpack
