// A recording as a program to be played: cut into steps at its marks, every release told by the request it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

// Names a block: the step that asks for it and its ordinal among the requests of that step.
struct RecordedBlock {
  uint32_t step = 0;
  uint32_t request = 0;
};

struct PlayedEvent {
  EventKind kind = EventKind::kAllocate;
  uint32_t stream = 0;
  uint64_t bytes = 0;   // allocations and releases
  RecordedBlock block;  // allocations and releases
};

// Step 0 is what comes before the first mark (perhaps nothing), step i what comes after the i-th. Marks themselves are
// not events of a step.
struct RecordedSteps {
  std::vector<std::vector<PlayedEvent>> steps;
  std::vector<uint32_t> requests;  // by step
  // The step that can be repeated: the last one with requests between two marks, provided that the one before it asked
  // for the same sizes. Nothing otherwise.
  std::optional<uint32_t> steady;
  // How far back a release of the steady step may reach, in steps: as many as have the same sizes as it.
  uint32_t reach = 0;
};

// O(events).
RecordedSteps CutIntoSteps(const Trace& trace);

}  // namespace hotpack
