// Converts a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) to a recording. docs/snapshots.md describes the
// conversion.
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
  uint64_t live_before = 0;       // blocks allocated before the history begins
  uint64_t missed_releases = 0;   // blocks whose address was allocated again: the history lacks their release
  uint64_t failed = 0;            // entries "oom"
  std::vector<uint64_t> entries;  // of each device's history
};

// Reads a snapshot and returns one device's history: that of `device`, else the longest. Errors are one line: "NAME:
// byte N: reason" for a pickle that pickle_reader.h does not read, "NAME: reason" for other contents or no history.
// O(bytes); memory up to `memory_limit` and 48 bytes an event.
absl::StatusOr<ImportedSnapshot> ReadSnapshot(ByteSource source, std::string_view name, std::optional<int> device,
                                              uint64_t memory_limit = kPickleMemoryLimit);

}  // namespace hotpack
