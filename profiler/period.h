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

// matches[p] = how many of the last requests equal the ones p before, for 1 ≤ p < n (Z-function of the reversed
// sequence). O(n).
std::vector<uint32_t> MatchLengths(const std::vector<uint32_t>& units);

// The longest period of `tail` that
//   - occurs at least twice at its end (run ≥ length) and is no multiple of a shorter one,
//   - covers at least a third of what is known, or occurs at least 16 times,
//   - is balanced: about as many bytes were released in its last occurrences as were asked for (within a tenth), and
//     hardly any (a hundredth) of blocks from before it began to repeat. Layers and time steps of a forward pass repeat
//     too, but keep what they allocate; those of a backward pass release what others have kept.
// O(n) time and memory.
Period FindPeriod(const HistoryTail& tail);

}  // namespace hotpack
