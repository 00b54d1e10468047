// What order between streams has cost so far.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/engine/engine.h"

namespace hotpack {

// Thread-safe, lock-free: callers have already released the engine's lock.
class StreamOrderTotals {
 public:
  // Adds the cost of one request whose memory another stream had used.
  void Add(const StreamOrderCost& cost) {
    requests_.fetch_add(1, std::memory_order_relaxed);
    waits_.fetch_add(cost.waits, std::memory_order_relaxed);
    events_.fetch_add(cost.events, std::memory_order_relaxed);
    host_waits_.fetch_add(cost.host_waits, std::memory_order_relaxed);
    ns_.fetch_add(cost.ns, std::memory_order_relaxed);
  }
  void AddTo(hotpack_stats* stats) const {
    stats->cross_stream += requests_.load(std::memory_order_relaxed);
    stats->cross_stream_waits += waits_.load(std::memory_order_relaxed);
    stats->cross_stream_events += events_.load(std::memory_order_relaxed);
    stats->cross_stream_host_waits += host_waits_.load(std::memory_order_relaxed);
    stats->cross_stream_ns += ns_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> requests_{0}, waits_{0}, events_{0}, host_waits_{0}, ns_{0};
};

}  // namespace hotpack
