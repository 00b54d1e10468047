// What work on reused memory must come after: the releases of the blocks that lay there before.
//
// A release has a tick (from 1, of one counter per process) and was made on a stream, in one of three ways:
//   ordered   the block's last uses come before that point of the stream (cuMemFreeAsync)
//   pooled    the block returns to its stream's pool (PyTorch, CuPy): work of any stream that was submitted before the
//             release may use it. The stream itself needs no order; any other stream waits for all of that work
//   any       the uses may be on any stream (cuMemFree): kAllStreams
// preload/streams/stream_order.h assigns ticks and stream numbers, and establishes the order. The engine stores the
// releases by address.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hotpack {

inline constexpr uint32_t kAllStreams = UINT32_MAX;

// Returns a number, never 0, that identifies a block released to its stream's pool. Two blocks may share a number.
inline uint32_t PooledBlock(uint64_t address) { return static_cast<uint32_t>(address >> 9) | 1; }

// A set of releases in bounded space: the latest of each stream. Too many streams are merged into "all streams". Plain
// data, not thread-safe.
struct ReuseAfter {
  static constexpr uint32_t kStreams = 3;
  struct Point {
    uint64_t tick;
    uint32_t stream;
    uint32_t pooled_block;  // not 0: a pooled release of the block with this number (PooledBlock)
  };

  uint64_t all_tick = 0;  // releases of any stream up to this tick; 0: none
  uint32_t count = 0;
  Point points[kStreams];

  bool empty() const { return all_tick == 0 && count == 0; }

  void Add(uint32_t stream, uint64_t tick, uint32_t pooled_block = 0) {
    if (tick <= all_tick) return;
    if (stream == kAllStreams) {
      all_tick = tick;
      DropCovered();
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (points[i].stream != stream) continue;
      // Both kinds on one stream: the pooled release demands more of other streams. Neither demands anything of this
      // stream that the memory's owner does not order already.
      if (pooled_block != 0 && (points[i].pooled_block == 0 || tick > points[i].tick))
        points[i].pooled_block = pooled_block;
      points[i].tick = std::max(points[i].tick, tick);
      return;
    }
    if (count < kStreams) {
      points[count++] = {tick, stream, pooled_block};
      return;
    }
    all_tick = tick;
    for (const Point& point : points) all_tick = std::max(all_tick, point.tick);
    count = 0;
  }

  void Merge(const ReuseAfter& other) {
    Add(kAllStreams, other.all_tick);
    for (uint32_t i = 0; i < other.count; ++i)
      Add(other.points[i].stream, other.points[i].tick, other.points[i].pooled_block);
  }

  uint64_t LatestTick() const {
    uint64_t latest = all_tick;
    for (uint32_t i = 0; i < count; ++i) latest = std::max(latest, points[i].tick);
    return latest;
  }

 private:
  void DropCovered() {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (points[i].tick > all_tick) points[kept++] = points[i];
    }
    count = kept;
  }
};

}  // namespace hotpack
