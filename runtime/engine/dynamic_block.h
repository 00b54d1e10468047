// A block that is not served by script.
#pragma once

#include <cstdint>

#include "runtime/engine/engine_request.h"

namespace hotpack {

// It may lie in the dynamic zone, a retired zone, a fragment, the followed script's zone, a place of an envelope, or
// managed memory.
struct DynamicBlock {
  uint64_t bytes = 0;               // of addresses, a multiple of 512
  uint32_t units = 0;               // asked for
  uint32_t entry = kNone;           // the script's entry that it stands for; kNone: none
  uint64_t ordinal = kUnmonitored;  // its request
  uint64_t follow_epoch = 0;        // when it was placed: `entry` belongs to the script followed then
  uint64_t trace_id = 0;            // unique in the engine
  uint32_t envelope_entry = kNone;  // the envelope's entry whose place it has; kNone: none
  // It lies, at least partly, where the followed script or envelope has places.
  bool foreign = false;

  // Returns whether it has lived for more than `requests` requests. `count`: requests so far.
  bool LivesLongerThan(uint64_t requests, uint64_t count) const {
    return ordinal == kUnmonitored || count - ordinal > requests;
  }
};

}  // namespace hotpack
