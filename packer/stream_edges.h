// Edges between streams that a placement makes, and fewer of them at the same height.
//
// A block may use addresses that a block of another stream used last. Its stream then waits for the other one, which
// the program did not ask for. Work that overlapped before (a prefetch, an all-gather) may not overlap any more.
//
//   offset ▲  ┌────┐  ┌────┐                            ┌────┐  ┌────┐
//          │  │ s1 ├─►│ s2 │   s1: another stream       │ s1 ├─►│ s1 │   the same height, no edge
//          │  ├────┤  ├────┤   s2 waits for s1,         ├────┤  ├────┤
//          │  │ s2 ├─►│ s1 │   and s1 for s2            │ s2 ├─►│ s2 │
//          └──┴────┴──┴────┴──► clock                ───┴────┴──┴────┴──► clock
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "packer/stop.h"
#include "packer/stream_edge_rule.h"
#include "packer/types.h"

namespace hotpack {

// The stream of each block: a small ordinal.
using BlockStreams = std::vector<uint16_t>;
// The stream of a block that no work uses: it makes no edge.
inline constexpr uint16_t kAnyStream = UINT16_MAX;

// Returns whether blocks of two different streams are there. O(n). Thread-safe.
bool HasSeveralStreams(const BlockStreams& streams);

// Counts the waits between streams that `placement` makes on a cycle: for each block, the other streams among the
// blocks that used some of its addresses last. `placement` is valid, and `streams` has one for each block. A block has
// one residency, or a carried block's two; no two begin at the same tick. O(n²) at worst. Thread-safe.
int64_t CountStreamEdges(const Instance& instance, const Placement& placement, const BlockStreams& streams);

// Returns a placement with as few stream edges as it finds, at most as many as `start` has, and not higher than
// `height`. Keeps pinned blocks.
// 1. The blocks of all streams but the largest go to the top, the others below and between them (Pack), if they fit.
// 2. Blocks with edges then move, one by one, to the free place that makes the fewest.
// `start` is valid and not higher than `height`. `instance` and `streams`: as above. `time_limit_ns`, `cancel` and
// `clock`: as in PackOptions. One round of 2. takes O(edges × free places × n) at worst. Thread-safe.
Placement AvoidStreamEdges(const Instance& instance, const Placement& start, const BlockStreams& streams, Bytes height,
                           int64_t time_limit_ns, const std::atomic<bool>* cancel, WorkClock* clock);

// The stream edges of a placement, before and after some are avoided.
struct StreamEdges {
  int64_t before = 0, after = 0;
};

// Changes `placement` by AvoidStreamEdges, without more height. Parameters, complexity and thread safety: as there.
StreamEdges AvoidStreamEdgesInPlace(const Instance& instance, const BlockStreams& streams, int64_t time_limit_ns,
                                    const std::atomic<bool>* cancel, WorkClock* clock, Placement* placement);

}  // namespace hotpack
