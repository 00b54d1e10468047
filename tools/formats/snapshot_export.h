// A recording → a PyTorch memory snapshot, as torch.cuda._memory_viz and pytorch.org/memory_viz read it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "packer/model_writer.h"
#include "profiler/event.h"

namespace hotpack {

// Figures of an exported snapshot.
struct ExportedSnapshot {
  uint64_t allocations = 0;
  int64_t height = 0;       // of the placement
  int64_t lower_bound = 0;  // of any placement of these blocks
};

// Writes `trace` (a release has an earlier allocation) as the history of device 0. The blocks' addresses come from a
// placement of the whole recording by the published best-fit, as `hotpack pack --algorithm best-fit` makes it if no
// iteration repeats. They are in one segment, allocated first and never released: the arena that would serve the
// recording. `began_ns`: since 1970. Errors are one line: the sink's, or a recording too large to place.
// O(events log events).
absl::Status WriteSnapshot(const Trace& trace, uint64_t began_ns, const TextSink& sink, ExportedSnapshot* exported);

}  // namespace hotpack
