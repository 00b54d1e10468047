// Figures of a recording under hotpack and under other allocators, as `hotpack compare` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "tools/compare/peers.h"

namespace hotpack {

// Events of a recording up to which the smallest devices are searched without being asked for: some seconds.
inline constexpr size_t kSmallestDeviceEvents = 200'000;

// All sides have one measure: the most held in the whole run. The results also have the most held during one iteration.
struct Comparison {
  uint64_t requests = 0;
  uint64_t live_peak = 0;    // bytes, each block rounded up to 512: a lower bound for any allocator
  uint64_t live_steady = 0;  // ... during the iteration with the highest live load
  // That iteration; period 0: there is none. Its plan, and the live bytes outside the plan.
  uint64_t period = 0;
  bool marked = false;
  uint64_t not_planned = 0;        // bytes: the most live during it of unplanned blocks
  uint64_t plan_height = 0;        // bytes
  uint64_t plan_lower_bound = 0;   // bytes
  PeerResult hotpack;              // the engine, played (tools/compare/engine_replay.h)
  uint64_t held_while_served = 0;  // bytes held by the engine since its steady iteration; 0: it had none
  std::vector<PeerResult> peers;
};

// Simulates `peers`, some of PeerNames(). capacity: bytes, 0: no limit. `smallest`: also searches the smallest device
// of each row, whatever the capacity. Plans get logical time, so the result is the same on every machine. O(events ·
// log(blocks)) per peer, and with `smallest` that for each size tried. The rows are divided among threads, one a core.
Comparison Compare(const Trace& trace, const std::vector<std::string>& peers, uint64_t capacity, bool smallest = false);

}  // namespace hotpack
