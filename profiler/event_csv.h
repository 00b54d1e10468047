// Recordings as text: one event per line, the columns event,id,bytes.
//
//   event,id,bytes
//   mark,step,          an iteration begins here; the label is free ("interrupt" and "resume" stop and continue the
//   alloc,0,9633792     monitoring)
//   free,0,             the size may be repeated, and must then be that of the allocation
//   mark,end,
//
// An id names one live block and may be reused after its release. Threads, streams and times are not stored.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/event.h"

namespace hotpack {

// Decodes an event CSV; lines end with LF or CRLF. The block ids of the result are the ordinals of the allocations,
// from 0. O(events). Errors are one line, "NAME:LINE:COLUMN: reason" (from 1; the column counts bytes):
// - an unknown event, or an invalid number;
// - a size of 0 or above kMaxRecordedBytes;
// - an allocation of a live id, or a release of an id that is not live;
// - a last line without an end (the file was cut);
// - no events.
absl::StatusOr<Trace> ParseEventCsv(std::string_view contents, std::string_view name);

// The reverse of ParseEventCsv. A mark after which no event follows gets the label "end", other marks "step".
std::string FormatEventCsv(const Trace& trace);

}  // namespace hotpack
