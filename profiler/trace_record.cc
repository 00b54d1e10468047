#include "profiler/trace_record.h"

namespace hotpack {
namespace {

using namespace trace_format;

unsigned char* PutVarint(unsigned char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<unsigned char>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<unsigned char>(value);
  return out;
}

}  // namespace

size_t TraceRecordEncoder::Encode(const Event& event, unsigned char* out) const {
  unsigned char* at = out + 1;
  uint8_t tag = static_cast<uint8_t>(event.kind);
  if (event.flags != last_flags_ || event.thread != last_thread_ || event.stream != last_stream_) {
    tag |= kHasContext;
    *at++ = event.flags;
    at = PutVarint(at, event.thread);
    at = PutVarint(at, event.stream);
  }
  if (event.time_ns != last_time_) {
    tag |= kHasTime;
    at = PutVarint(at, ZigZag(event.time_ns - last_time_));
  }
  if (event.kind == EventKind::kAllocate) {
    if (event.id == last_id_ + 1) {
      tag |= kNextId;
    } else {
      at = PutVarint(at, ZigZag(event.id - last_id_));
    }
    bool units = event.bytes % kUnitBytes == 0;
    if (units) tag |= kUnits;
    at = PutVarint(at, units ? event.bytes / kUnitBytes : event.bytes);
  } else if (event.kind == EventKind::kRelease) {
    at = PutVarint(at, ZigZag(last_id_ - event.id));
  }
  *out = tag;
  return static_cast<size_t>(at - out);
}

void TraceRecordEncoder::Accept(const Event& event) {
  if (event.kind == EventKind::kAllocate) last_id_ = event.id;
  last_time_ = event.time_ns;
  last_flags_ = event.flags;
  last_thread_ = event.thread;
  last_stream_ = event.stream;
}

}  // namespace hotpack
