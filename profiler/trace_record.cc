#include "profiler/trace_record.h"

#include <algorithm>
#include <cstring>

#include "packer/block_unit.h"

namespace hotpack {
namespace {

using namespace trace_format;

static_assert(kTraceUnit == kBlockUnit, "a recording keeps what the engine counts");

unsigned char* PutVarint(unsigned char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<unsigned char>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<unsigned char>(value);
  return out;
}

// Returns the code of a name in a record: 0 is none.
uint64_t CodeOf(NameOrdinal name) { return name == kNoName ? 0 : uint64_t{name} + 1; }

}  // namespace

unsigned char* TraceRecordEncoder::PutContext(uint8_t flags, uint16_t thread, uint32_t stream, uint64_t time_ns,
                                              uint8_t* tag, unsigned char* at) const {
  if (flags != last_flags_ || thread != last_thread_ || stream != last_stream_) {
    *tag |= kHasContext;
    *at++ = flags;
    at = PutVarint(at, thread);
    at = PutVarint(at, stream);
  }
  if (time_ns != last_time_) {
    *tag |= kHasTime;
    at = PutVarint(at, ZigZag(time_ns - last_time_));
  }
  return at;
}

size_t TraceRecordEncoder::Encode(const Event& event, unsigned char* out) const {
  uint8_t tag = static_cast<uint8_t>(event.kind);
  unsigned char* at = PutContext(event.flags, event.thread, event.stream, event.time_ns, &tag, out + 1);
  if (event.kind == EventKind::kAllocate) {
    if (event.id == last_id_ + 1) {
      tag |= kNextId;
    } else {
      at = PutVarint(at, ZigZag(event.id - last_id_));
    }
    bool units = event.bytes % kTraceUnit == 0;
    if (units) tag |= kUnits;
    at = PutVarint(at, units ? event.bytes / kTraceUnit : event.bytes);
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

std::string_view CutName(std::string_view name) {
  if (name.size() <= kMaxNameBytes) return name;
  size_t end = kMaxNameBytes;
  while (end > kMaxNameBytes - 4 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80)
    --end;  // inside a character
  return name.substr(0, end);
}

// A note has no flags: those of the previous record stay.
unsigned char* TraceRecordEncoder::BeginNote(uint8_t kind, uint16_t thread, uint32_t stream, uint64_t time_ns,
                                             unsigned char* out) const {
  uint8_t tag = kNote;
  out[1] = kind;
  unsigned char* at = PutContext(last_flags_, thread, stream, time_ns, &tag, out + 2);
  *out = tag;
  return at;
}

size_t TraceRecordEncoder::EncodeName(std::string_view name, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteName, last_thread_, last_stream_, last_time_, out);
  at = PutVarint(at, name.size());
  memcpy(at, name.data(), name.size());
  return static_cast<size_t>(at - out) + name.size();
}

size_t TraceRecordEncoder::Encode(const Launch& launch, const uint64_t* blocks, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteLaunch, launch.thread, launch.stream, launch.time_ns, out);
  at = PutVarint(at, CodeOf(launch.name));
  const uint64_t count = std::min<uint64_t>(launch.blocks, kMaxLaunchBlocks);
  at = PutVarint(at, count);
  for (uint64_t i = 0; i < count; ++i) at = PutVarint(at, ZigZag(last_id_ - blocks[i]));
  return static_cast<size_t>(at - out);
}

size_t TraceRecordEncoder::Encode(const LaunchWork& work, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteWork, last_thread_, last_stream_, last_time_, out);
  at = PutVarint(at, launches_ - work.launch);
  at = PutVarint(at, ZigZag(work.start_ns - last_end_));
  at = PutVarint(at, work.end_ns - work.start_ns);
  at = PutVarint(at, CodeOf(work.name));
  return static_cast<size_t>(at - out);
}

size_t TraceRecordEncoder::Encode(const RangeEdge& edge, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteRange, edge.thread, last_stream_, edge.time_ns, out);
  *at++ = static_cast<uint8_t>(edge.kind);
  if (edge.kind == RangeKind::kStart || edge.kind == RangeKind::kEnd) at = PutVarint(at, edge.id);
  if (edge.kind != RangeKind::kPop && edge.kind != RangeKind::kEnd) at = PutVarint(at, CodeOf(edge.name));
  return static_cast<size_t>(at - out);
}

size_t TraceRecordEncoder::Encode(const BlockStack& stack, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteStack, last_thread_, last_stream_, last_time_, out);
  at = PutVarint(at, ZigZag(last_id_ - stack.id));
  at = PutVarint(at, CodeOf(stack.stack));
  return static_cast<size_t>(at - out);
}

size_t TraceRecordEncoder::Encode(const DriverMemory& memory, unsigned char* out) const {
  unsigned char* at = BeginNote(kNoteMemory, memory.thread, last_stream_, memory.time_ns, out);
  *at++ = memory.released ? 1 : 0;
  at = PutVarint(at, memory.kind);
  at = PutVarint(at, memory.address);
  at = PutVarint(at, memory.bytes);
  at = PutVarint(at, CodeOf(memory.name));
  return static_cast<size_t>(at - out);
}

void TraceRecordEncoder::Accept(const Launch& launch) {
  ++launches_;
  last_time_ = launch.time_ns;
  last_thread_ = launch.thread;
  last_stream_ = launch.stream;
}

void TraceRecordEncoder::Accept(const RangeEdge& edge) {
  last_time_ = edge.time_ns;
  last_thread_ = edge.thread;
}

void TraceRecordEncoder::Accept(const DriverMemory& memory) {
  last_time_ = memory.time_ns;
  last_thread_ = memory.thread;
}

}  // namespace hotpack
