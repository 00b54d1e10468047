// A recording under hotpack and under its peers, in figures: what `hotpack compare` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "tools/peers/peers.h"

namespace hotpack {

struct Comparison {
  uint64_t requests = 0;
  uint64_t live_peak = 0;    // bytes, each block rounded up to 512: no allocator reserves less
  uint64_t live_steady = 0;  // ... during the last iteration
  // The last iteration; period 0: there is none. What stands in the plan, and what lies beside it.
  uint64_t period = 0;
  bool marked = false;
  uint64_t not_planned = 0;       // bytes: the most live during it of blocks that are not planned
  uint64_t plan_height = 0;       // bytes
  uint64_t plan_lower_bound = 0;  // bytes
  PeerResult hotpack;             // the engine, played (tools/engine_replay.h)
  std::vector<PeerResult> peers;
};

// `peers`: some of PeerNames(). capacity: bytes, 0: no limit. The plan gets 50 ms. O(events · log(blocks)) a peer.
Comparison Compare(const Trace& trace, const std::vector<std::string>& peers, uint64_t capacity);

}  // namespace hotpack
