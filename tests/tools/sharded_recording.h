// A recording of a job with two streams, whose plan by size alone makes waits between them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profiler/event.h"

namespace hotpack_test {

// Equal marked steps of a sharded model. Each layer gathers its weights on stream 1, one layer ahead of the
// computation, which has activations and a temporary block on stream 0. `flags`: of each request (kEventAsync: it named
// its stream).
inline hotpack::Trace ShardedSteps(int steps, int layers, uint8_t flags) {
  using namespace hotpack;
  Trace trace;
  uint64_t next_id = 0;
  std::vector<std::pair<uint64_t, uint64_t>> gathered, kept;  // ids, bytes
  const auto allocate = [&](uint64_t bytes, uint32_t stream) {
    trace.events.push_back({EventKind::kAllocate, flags, 0, stream, next_id, bytes, 0});
    return std::pair(next_id++, bytes);
  };
  const auto release = [&](std::pair<uint64_t, uint64_t> block, uint32_t stream) {
    trace.events.push_back({EventKind::kRelease, flags, 0, stream, block.first, block.second, 0});
  };
  for (int step = 0; step < steps; ++step) {
    trace.events.push_back({EventKind::kMark});
    gathered.push_back(allocate(40960, 1));
    for (int layer = 0; layer < layers; ++layer) {
      if (layer + 1 < layers) gathered.push_back(allocate(40960, 1));
      kept.push_back(allocate(25600, 0));
      release(allocate(40960, 0), 0);
      release(gathered.front(), 1);
      gathered.erase(gathered.begin());
    }
    for (; !kept.empty(); kept.pop_back()) release(kept.back(), 0);
  }
  return trace;
}

}  // namespace hotpack_test
