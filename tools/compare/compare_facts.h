// A recording under hotpack and under its peers, in figures: what `hotpack compare` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "tools/compare/peers.h"

namespace hotpack {

// All sides by one measure: the most held in the whole run. What is held while one iteration is played is in the
// results too.
struct Comparison {
  uint64_t requests = 0;
  uint64_t live_peak = 0;    // bytes, each block rounded up to 512: no allocator reserves less
  uint64_t live_steady = 0;  // ... during the iteration with the highest live load
  // That iteration; period 0: there is none. What stands in its plan, and what is live in addition.
  uint64_t period = 0;
  bool marked = false;
  uint64_t not_planned = 0;        // bytes: the most live during it of blocks that are not planned
  uint64_t plan_height = 0;        // bytes
  uint64_t plan_lower_bound = 0;   // bytes
  PeerResult hotpack;              // the engine, played (tools/compare/engine_replay.h)
  uint64_t held_while_served = 0;  // bytes: by the engine since its steady iteration began; 0: it had none
  std::vector<PeerResult> peers;
};

// `peers`: some of PeerNames(). capacity: bytes, 0: no limit. Plans get logical time, so the same recording has the
// same result on every machine. O(events · log(blocks)) a peer.
Comparison Compare(const Trace& trace, const std::vector<std::string>& peers, uint64_t capacity);

}  // namespace hotpack
