// Encodes one record of a trace file (docs/trace_format.md), for all writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profiler/event.h"
#include "profiler/notes.h"
#include "profiler/trace_format.h"

namespace hotpack {

// The device time of a launch's work, or a name for it: both become known after the launch.
struct LaunchWork {
  uint64_t launch = 0;  // its ordinal in the recording, an index into Notes::launches
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;         // not below start_ns
  NameOrdinal name = kNoName;  // kNoName: the launch's own name
};

// Returns the longest prefix that a record can hold: at most kMaxNameBytes, ending between UTF-8 characters.
std::string_view CutName(std::string_view name);

// Encodes consecutive events. A record contains only what differs from the previous events. Accept() makes an encoded
// event the base for the next one. It must not be called for an event that did not fit into the file. No heap
// allocation, no system calls. Not thread-safe.
class TraceRecordEncoder {
 public:
  // Writes `event` to `out`, which has space for trace_format::kMaxRecordBytes. Returns the bytes written, at least 1.
  // O(1).
  size_t Encode(const Event& event, unsigned char* out) const;
  void Accept(const Event& event);

  // The same for notes.
  // - `out` has space for kMaxNoteBytes.
  // - Launch::position, first_block and the times of its work are not written.
  // - Names get ordinals in the order of encoding. `name`: as CutName() returns it.
  // - At most kMaxLaunchBlocks of a launch's blocks are written.
  // O(bytes written).
  size_t EncodeName(std::string_view name, unsigned char* out) const;
  size_t Encode(const Launch& launch, const uint64_t* blocks, unsigned char* out) const;
  size_t Encode(const LaunchWork& work, unsigned char* out) const;
  size_t Encode(const RangeEdge& edge, unsigned char* out) const;
  size_t Encode(const BlockStack& stack, unsigned char* out) const;
  size_t Encode(const DriverMemory& memory, unsigned char* out) const;
  void Accept(const Launch& launch);
  void Accept(const LaunchWork& work) { last_end_ = work.end_ns; }
  void Accept(const RangeEdge& edge);
  void Accept(const BlockStack&) {}
  void Accept(const DriverMemory& memory);

 private:
  unsigned char* PutContext(uint8_t flags, uint16_t thread, uint32_t stream, uint64_t time_ns, uint8_t* tag,
                            unsigned char* at) const;
  unsigned char* BeginNote(uint8_t kind, uint16_t thread, uint32_t stream, uint64_t time_ns, unsigned char* out) const;

  uint64_t last_id_ = UINT64_MAX;  // of the last allocation
  uint64_t launches_ = 0;
  uint64_t last_end_ = 0;  // of the last LaunchWork
  uint64_t last_time_ = 0;
  uint8_t last_flags_ = 0;
  uint16_t last_thread_ = 0;
  uint32_t last_stream_ = 0;
};

}  // namespace hotpack
