// What a program asks for and gives back, written down as it does so: a recording, or the packing instance of one.
#pragma once

#include <cstdint>

#include "packer/types.h"
#include "profiler/event.h"

namespace hotpack::bench {

// Not thread-safe. Blocks are numbered from 0 in the order of their requests.
class Tape {
 public:
  uint64_t Allocate(Bytes bytes);  // at least 1; the size asked for, not rounded
  void Release(uint64_t block);    // a live one
  void Mark();                     // an iteration begins here

  // Asks for a block and gives it back at once.
  void Use(Bytes bytes) { Release(Allocate(bytes)); }

  const Trace& trace() const { return trace_; }

  // All blocks, each of which was released: sizes rounded up to 512 bytes, the unit of Chainer's memory pool, on a
  // clock that begins at 1 and moves by one at each allocation and each release (Sekiyama 2018, §4.1). O(events).
  Instance ToInstance() const;

 private:
  Trace trace_;
  uint64_t blocks_ = 0;
};

}  // namespace hotpack::bench
