// Chen et al. 2016, Algorithm 1: backpropagation with data dropping in a linear chain.
//
//   forward     v ─ 1 ─ 2 ─ 3 ─|─ 4 ─ 5 ─ 6 ─|─ 7 ─ 8 ─ g      temp[k]: the input of segment k
//   backward    from the last segment to the first: all its layers run forward again, with each layer's input in
//               localtemp, then backward
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Returns the schedule of Algorithm 1, which passes Verify(). `graph` must pass Check(). O(size of the graph).
// Thread-safe. `ends`: by operator, whether a segment ends there. The last operator of the forward pass always ends
// one. As published all layers of a segment run again, even the last one, whose result is not used. So the forward pass
// runs exactly twice. Returns InvalidArgument with one line if the forward pass is no chain: an operator reads another
// result than its predecessor's, or cannot run again in its segment.
absl::StatusOr<Schedule> ScheduleByAlgorithm1(const Graph& graph, const Values& values, const std::vector<bool>& ends);

}  // namespace hotpack::remat
