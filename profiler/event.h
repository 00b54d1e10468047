// One event of a run: the recorder's unit. Trace files hold events, and iteration detection reads them.
#pragma once

#include <cstdint>
#include <vector>

namespace hotpack {

enum class EventKind : uint8_t {
  kAllocate = 1,   // a request was served
  kRelease = 2,    // its block was released
  kMark = 3,       // the program marks the beginning of an iteration (hotpack_step)
  kInterrupt = 4,  // monitoring stops: clock and λ stand still
  kResume = 5,     // monitoring continues
  kExpect = 7,     // marks will come: no iteration has begun yet (hotpack_expect_steps)
};

// The clock (Sekiyama 2018, §4.1: y) of an event is its ordinal among the allocations and releases before it, from 1.
struct Event {
  EventKind kind = EventKind::kAllocate;
  uint8_t flags = 0;     // kEventAsync etc.
  uint16_t thread = 0;   // small ordinal of the calling thread, from 0
  uint32_t stream = 0;   // small ordinal of the stream named by the request, 0: the default stream or none named
  uint64_t id = 0;       // kAllocate, kRelease: the block's id, unique in the run
  uint64_t bytes = 0;    // kAllocate, kRelease: the requested size, not rounded
  uint64_t time_ns = 0;  // since the start of the recording; 0: unknown
};

inline constexpr uint8_t kEventAsync = 1;  // through cuMemAllocAsync / cuMemFreeAsync

// A whole recording in memory.
struct Trace {
  std::vector<Event> events;
};

}  // namespace hotpack
