// Converts a recording with launches to a graph for planners. Each launch of one iteration becomes an operator, each
// block that a launch names a storage.
//
// A recording knows which blocks a launch names. It does not know which of them the launch reads or writes, its
// internal state (random numbers, counters), or what it reaches by pointers in device memory. So the graph uses rules
// that are always safe:
//
//   a fresh block                   its first naming launch makes it; earlier contents belong to no one
//   any other naming                reads and changes the block in place
//   every launch                    runs once only, and in its place: nothing is recomputed
//   a block that no launch names    stays while it lives, as workspace of each launch meanwhile: its users are unknown
//   a launch of a CUDA graph        reads and changes every live block: its contents name nothing
//   blocks from before              are given; blocks that outlive the iteration are kept
//
// Plans for it copy to the host and back (`hotpack plan --swap`) and recompute nothing.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/trace_file.h"
#include "remat/core/graph.h"

namespace hotpack {

struct TraceGraphOptions {
  double bytes_per_ns = 1000;  // for launches without times: the cost is the named bytes divided by this
};

// Takes the last marked iteration, else the last detected one, else the whole recording. Takes launches of all streams,
// in the order of submission. Errors are InvalidArgument with one line, "NAME: reason": no launches, none in the
// iteration, or none that names a block. O(events + launches + named blocks · log). Thread-safe.
absl::StatusOr<remat::Graph> GraphFromTrace(const TraceFile& file, std::string_view name,
                                            const TraceGraphOptions& options = {});

}  // namespace hotpack
