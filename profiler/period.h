// Finds the hot iteration: the longest period that explains the end of a run's request sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/history.h"

namespace hotpack {

struct Period {
  uint64_t length = 0;  // requests; 0: none found
  uint64_t run = 0;     // the last `run` requests equal those `length` earlier; run ≥ length
};

// Computes matches[p] for 1 ≤ p < n: how many of the last requests equal the requests p earlier (Z-function of the
// reversed sequence). O(n).
std::vector<uint32_t> MatchLengths(const std::vector<uint32_t>& units);

// Finds the longest period of `tail` with these properties:
//   - It occurs at least twice at the end (run ≥ length) and is no multiple of a shorter one.
//   - It covers at least a third of the known requests, or occurs at least 16 times.
//   - It is balanced. In its last occurrences, about as many bytes were released as requested (within a tenth). Hardly
//     any (a hundredth) of these belong to blocks from before the repetition. Layers and time steps repeat too, but
//     those of a forward pass keep what they allocate, and those of a backward pass release older blocks.
// O(n) time and memory.
Period FindPeriod(const HistoryTail& tail);

}  // namespace hotpack
