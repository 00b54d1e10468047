// What work on memory that is handed out again must come after: the releases of the blocks that lay there before.
//
// A release has a tick (of one counter a process, from 1) and was made on a stream: the block's last uses come before that
// point of the stream. kAllStreams: they may be on any stream. Who gives out ticks and streams' numbers makes the order
// (preload/stream_order.h); the engine only remembers, address by address.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hotpack {

inline constexpr uint32_t kAllStreams = UINT32_MAX;

// A set of releases, in bounded space: of each stream the latest. When there are too many streams, all of them.
// Plain data, not thread-safe.
struct ReuseAfter {
  static constexpr uint32_t kStreams = 3;
  struct Point {
    uint64_t tick;
    uint32_t stream;
  };

  uint64_t all_tick = 0;  // releases of any stream up to this tick; 0: none
  uint32_t count = 0;
  Point points[kStreams];

  bool empty() const { return all_tick == 0 && count == 0; }

  void Add(uint32_t stream, uint64_t tick) {
    if (tick <= all_tick) return;
    if (stream == kAllStreams) {
      all_tick = tick;
      DropCovered();
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (points[i].stream != stream) continue;
      points[i].tick = std::max(points[i].tick, tick);
      return;
    }
    if (count < kStreams) {
      points[count++] = {tick, stream};
      return;
    }
    all_tick = tick;
    for (const Point& point : points) all_tick = std::max(all_tick, point.tick);
    count = 0;
  }

  void Merge(const ReuseAfter& other) {
    Add(kAllStreams, other.all_tick);
    for (uint32_t i = 0; i < other.count; ++i) Add(other.points[i].stream, other.points[i].tick);
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
