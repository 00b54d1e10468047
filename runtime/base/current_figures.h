// The figures of an arena that are no peaks and no counts of requests: what it holds at the moment. For readers outside
// of the process (`hotpack top`).
#pragma once

#include <cstdint>

namespace hotpack {

struct CurrentFigures {
  uint64_t held = 0;  // bytes of physical memory; in a plain arena its size
  // Bytes in live blocks, each rounded up to 512; no more than `held`, except where the driver holds them (recordings).
  uint64_t live = 0;
  // Calls of the driver for memory, so far: create, map, set access, unmap, release, and requests passed through.
  uint64_t driver_calls = 0;
};

}  // namespace hotpack
