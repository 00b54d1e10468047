// A PyTorch memory snapshot (what torch.cuda.memory._dump_snapshot writes) → a recording. docs/snapshots.md says what
// becomes of what.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/event.h"
#include "profiler/notes.h"
#include "tools/formats/pickle_reader.h"

namespace hotpack {

struct ImportedSnapshot {
  Trace trace;
  Notes notes;            // stacks
  uint64_t began_ns = 0;  // of the first entry, since 1970; 0 if it has no time
  int device = 0;
  uint64_t allocations = 0;       // entries "alloc"
  uint64_t live_before = 0;       // blocks that were allocated before the history begins
  uint64_t missed_releases = 0;   // blocks that were allocated over, so that their release is missing in the history
  uint64_t failed = 0;            // entries "oom"
  std::vector<uint64_t> entries;  // of each device's history
};

// Reads a snapshot and takes one device's history from it: that of `device`, else the longest. Errors are one line:
// "NAME: byte N: reason" where the pickle is not one that pickle_reader.h reads, "NAME: reason" where it holds
// something else, or no history. O(bytes); memory up to `memory_limit` and 48 bytes an event.
absl::StatusOr<ImportedSnapshot> ReadSnapshot(ByteSource source, std::string_view name, std::optional<int> device,
                                              uint64_t memory_limit = kPickleMemoryLimit);

}  // namespace hotpack
