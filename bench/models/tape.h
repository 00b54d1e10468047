// Writes down the allocations and releases of a program as it runs: a recording, or its packing instance.
#pragma once

#include <cstdint>

#include "packer/types.h"
#include "profiler/event.h"

namespace hotpack::bench {

// Not thread-safe. Blocks are numbered from 0 in the order of their requests.
class Tape {
 public:
  uint64_t Allocate(Bytes bytes);  // ≥ 1; the requested size, not rounded
  void Release(uint64_t block);    // a live block
  void Mark();                     // an iteration begins here

  // Allocates a block and releases it at once.
  void Use(Bytes bytes) { Release(Allocate(bytes)); }

  const Trace& trace() const { return trace_; }

  // Returns all blocks, each of which must be released. Sizes are rounded up to 512 bytes, the unit of Chainer's memory
  // pool. The clock begins at 1 and advances by one at each allocation and each release (Sekiyama 2018, §4.1).
  // O(events).
  Instance ToInstance() const;

 private:
  Trace trace_;
  uint64_t blocks_ = 0;
};

}  // namespace hotpack::bench
