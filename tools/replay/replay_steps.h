// A recording as a program to play: cut into steps at its marks, every release named by its request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

// Names a block: the step that requests it, and its ordinal among the requests of that step.
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

// Step 0 comes before the first mark (may be empty), step i after the i-th. Marks themselves are not events of a step.
struct RecordedSteps {
  std::vector<std::vector<PlayedEvent>> steps;
  std::vector<uint32_t> requests;  // by step
  // The step to repeat: the last one with requests between two marks, provided that the step before requested the same
  // sizes. Nothing otherwise.
  std::optional<uint32_t> steady;
  // How many steps back a release of the steady step may reach: as many as have the same sizes.
  uint32_t reach = 0;
};

// O(events).
RecordedSteps CutIntoSteps(const Trace& trace);

}  // namespace hotpack
