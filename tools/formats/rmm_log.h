// The event log of RAPIDS' memory manager (rmm::mr::logging_resource_adaptor, RMM_LOG_FILE) → a recording.
//
//   Thread,Time,Action,Pointer,Size,Stream
//   140573,11:25:09.123456,allocate,0x7f8a40000000,1024,0x0
//   140573,11:25:09.123512,free,0x7f8a40000000,1024,0x0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/event.h"
#include "tools/formats/byte_stream.h"

namespace hotpack {

inline constexpr std::string_view kRmmLogHeader = "Thread,Time,Action,Pointer,Size,Stream";

struct ImportedLog {
  Trace trace;
  uint64_t allocations = 0;
  uint64_t live_before = 0;      // released in the log but not allocated: allocated at its beginning
  uint64_t missed_releases = 0;  // the address was allocated again
  uint64_t failed = 0;           // "allocate failure": no events
  bool is_cut = false;           // the last line had no end, and is omitted
};

// Reads a log, with or without its header line. Pointers and streams are hexadecimal ("0x7f...", also "(nil)") or
// decimal. Times are "HH:MM:SS.ffffff" (or with a third colon) and may pass midnight, or seconds with a fraction. Omits
// blocks of no bytes. Errors are one line, "NAME:LINE:COLUMN: reason", or the source's own. O(lines).
absl::StatusOr<ImportedLog> ReadRmmLog(ByteSource source, std::string_view name);

}  // namespace hotpack
