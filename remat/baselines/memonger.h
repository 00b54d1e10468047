// MXNet-memonger, the program that came with Chen et al. 2016: segments of the forward pass, in the program's order.
//
//   forward   ─ o ─ o ─ ● ─ o ─ o ─ ● ─ o ─ o ─ ●     √n segments of √n operators; ● kept, o computed again for its segment's gradients
//
// Against remat/chen/segments.h, which is the paper's algorithm: segments have equal numbers of operators instead of
// bytes, they end at any operator instead of at splitting points, and there is no search over B. Which layers are
// computed again is chosen by hand there ("we can obtain different data points as changing recomputation layers", Chen
// 2020, section 5.1): here the first m of the segments, for each m, of √n, and of half and twice as many.
#pragma once

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// The first m of `segments` segments of the forward pass are computed again, but for the operator at the end of each:
// by operator.
std::vector<bool> MemongerSegments(const Graph& graph, int segments, int m);

// The fastest of these plans whose live peak is at most `budget` bytes. ResourceExhausted with the least live peak of
// all. O(√operators) simulations. Thread-safe.
absl::StatusOr<Schedule> ScheduleByMemonger(const Graph& graph, const Values& values, Bytes budget,
                                            const Machine& machine = {});

}  // namespace hotpack::remat
