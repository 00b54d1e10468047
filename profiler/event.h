// One event of a run: the recorder's unit, what trace files hold and what iteration detection reads.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack {

enum class EventKind : uint8_t {
  kAllocate = 1,   // a request was answered
  kRelease = 2,    // its block was given back
  kMark = 3,       // the program says: an iteration begins here (hotpack_step)
  kInterrupt = 4,  // monitoring stops: clock and λ stand still
  kResume = 5,     // monitoring goes on
};

// The clock (Sekiyama 2018, §4.1: y) of an event is its ordinal among the allocations and releases before it, from 1.
struct Event {
  EventKind kind = EventKind::kAllocate;
  uint8_t flags = 0;     // kEventAsync etc.
  uint16_t thread = 0;   // small ordinal of the calling thread, from 0
  uint32_t stream = 0;   // small ordinal of the stream named by the request, 0: the default stream or none named
  uint64_t id = 0;       // kAllocate, kRelease: the block, unique in the run
  uint64_t bytes = 0;    // kAllocate, kRelease: the size asked for, unrounded
  uint64_t time_ns = 0;  // since the start of the recording; 0 if not known
};

inline constexpr uint8_t kEventAsync = 1;  // through cuMemAllocAsync / cuMemFreeAsync

// A whole recording in memory.
struct Trace {
  std::vector<Event> events;
};

}  // namespace hotpack
