// Chen et al. 2016, Algorithm 1: backpropagation with data dropping in a linear chain.
//
//   forward     v ─ 1 ─ 2 ─ 3 ─|─ 4 ─ 5 ─ 6 ─|─ 7 ─ 8 ─ g      temp[k]: what goes into segment k
//   backward    from the last segment to the first: all its layers forward again, what goes into each one in localtemp, then backward
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// `ends`: by operator, where a segment ends; the forward pass's last operator ends one, whatever is said. As published
// a segment's layers all run again, the last one too, whose result nothing needs: twice the forward pass, exactly.
// InvalidArgument with one line if the forward pass is no chain: if an operator reads another result than that of the
// one before it, or cannot run again in its segment. The schedule passes Verify(). `graph` must pass Check(). O(size of
// the graph). Thread-safe.
absl::StatusOr<Schedule> ScheduleByAlgorithm1(const Graph& graph, const Values& values, const std::vector<bool>& ends);

}  // namespace hotpack::remat
