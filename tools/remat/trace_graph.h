// A recording with launches as a graph for planners: each launch of one iteration an operator, each block that one
// names a storage.
//
// What a recording knows is which blocks a launch names. It does not know which of them it reads and which it writes,
// what it draws or counts by itself, and what it reaches by pointers in device memory. So the graph says what is right
// in any case:
//
//   a fresh block       the first launch that names it makes it: what was there before is nobody's
//   any other naming    reads and changes the block in place
//   every launch        runs once only, and in its place: nothing is ever computed again
//   a block that no launch names   stays while it lives, as workspace of each launch meanwhile: what uses it is not known
//   a launch of a CUDA graph       reads and changes every block that lives: what is inside names nothing
//   blocks from before  are given; blocks that outlive the iteration are kept
//
// Plans for it copy to the host and back (`hotpack plan --swap`) and compute nothing again.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/trace_file.h"
#include "remat/core/graph.h"

namespace hotpack {

struct TraceGraphOptions {
  double bytes_per_ns = 1000;  // of a launch without times: its cost is the bytes of what it names over this
};

// The last marked iteration, else the last one that is found to repeat, else the whole recording. Launches of all
// streams, in the order of their submission. Errors, InvalidArgument with one line, "NAME: reason": no launches, none
// in the iteration, or none that names a block. O(events + launches + what they name · log). Thread-safe.
absl::StatusOr<remat::Graph> GraphFromTrace(const TraceFile& file, std::string_view name,
                                            const TraceGraphOptions& options = {});

}  // namespace hotpack
