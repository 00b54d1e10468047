// A recording → a PyTorch memory snapshot, as torch.cuda._memory_viz and pytorch.org/memory_viz read it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "packer/model_writer.h"
#include "profiler/event.h"

namespace hotpack {

// What is said about an exported snapshot.
struct ExportedSnapshot {
  uint64_t allocations = 0;
  int64_t height = 0;       // of the placement
  int64_t lower_bound = 0;  // of any placement of these blocks
};

// Writes `trace` (a release has its allocation before it) as the history of device 0. Its blocks have the addresses of
// a placement of the whole recording by the published best-fit, as `hotpack pack --algorithm best-fit` makes it where
// no iteration repeats, in one segment that is allocated first and stays: the arena that would serve the recording.
// `began_ns`: since 1970. Errors: the sink's, and a recording too large to be placed; one line. O(events log events).
absl::Status WriteSnapshot(const Trace& trace, uint64_t began_ns, const TextSink& sink, ExportedSnapshot* exported);

}  // namespace hotpack
