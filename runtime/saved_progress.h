// How far an engine is with the plan of an earlier run (engine_saved.cc).
#pragma once

#include <cstdint>

namespace hotpack {

// The plan's opening against what the run asks for.
struct SavedGuide {
  bool holds = false;          // so far the run asks for what the opening says, more or less
  uint64_t at = 0;             // of the opening's requests: which one is next
  uint64_t matched = 0;        // requests of the run that were the opening's
  uint64_t missed = 0;         // ... that were not, since the last that was
  uint64_t missed_in_all = 0;
  uint32_t last_missed = 0;    // what the last of these asked for
  uint64_t give_up_at = 0;     // requests after which the plan is dropped if it has not been taken up
};

// A script of the plan that has just been taken up.
struct SavedTrial {
  int count = 0;               // scripts given up so far
  uint32_t position = 0;       // the entry that it began with, in its first cycle
  uint64_t planned = 0, displaced = 0;  // requests of either kind before it
  uint64_t window_begin = 0, window_planned = 0;  // of its last requests: since when, and planned before
};

}  // namespace hotpack
