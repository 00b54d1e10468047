// MXNet-memonger, the program that came with Chen et al. 2016: segments of the forward pass, in the program's order.
//
//   forward   ─ o ─ o ─ ● ─ o ─ o ─ ● ─ o ─ o ─ ●     √n segments of √n operators
//                                                     ●  kept
//                                                     o  recomputed for the gradients of its segment
//
// Differences from remat/chen/segments.h, the paper's algorithm:
//  1. Segments have equal numbers of operators instead of bytes.
//  2. They end at any operator instead of at splitting points.
//  3. There is no search over B. The user chooses which layers are recomputed ("we can obtain different data points as
//     changing recomputation layers", Chen 2020, section 5.1). Here they are the first m segments, for each m, of √n
//     segments, and of half and twice as many.
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Returns by operator whether it is recomputed: those in the first `m` of `segments` segments of the forward pass,
// except the last operator of each.
std::vector<bool> MemongerSegments(const Graph& graph, int segments, int m);

// Returns the fastest of these plans whose live peak is at most `budget` bytes, or ResourceExhausted with the least
// live peak of all. O(√operators) simulations. Thread-safe.
absl::StatusOr<Schedule> ScheduleByMemonger(const Graph& graph, const Values& values, Bytes budget,
                                            const Machine& machine = {});

}  // namespace hotpack::remat
