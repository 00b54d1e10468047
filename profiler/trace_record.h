// One record of a trace file (docs/trace_format.md), for everything that writes one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/event.h"
#include "profiler/trace_format.h"

namespace hotpack {

// Encodes events one after the other. A record says only what differs from the events before it, so an event that was
// encoded counts for the next one after Accept() alone: one that did not fit into the file must not. No heap, no system
// calls. Not thread-safe.
class TraceRecordEncoder {
 public:
  // Writes `event` to `out`, which has room for trace_format::kMaxRecordBytes; the bytes written, 1 to that. O(1).
  size_t Encode(const Event& event, unsigned char* out) const;
  void Accept(const Event& event);

 private:
  uint64_t last_id_ = UINT64_MAX;  // of the last allocation
  uint64_t last_time_ = 0;
  uint8_t last_flags_ = 0;
  uint16_t last_thread_ = 0;
  uint32_t last_stream_ = 0;
};

}  // namespace hotpack
