// Figures whose events the engine's callers see, and not the engine: the cost of order between streams.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/include/hotpack.h"

namespace hotpack {

// Thread-safe, lock-free: callers have already released the engine's lock.
class CallerFigures {
 public:
  void Add(uint64_t hotpack_stats::*figure, uint64_t count) {
    std::atomic_ref(counts_.*figure).fetch_add(count, std::memory_order_relaxed);
  }
  void AddTo(hotpack_stats* stats) {
#define HOTPACK_STAT(name) stats->name += std::atomic_ref(counts_.name).load(std::memory_order_relaxed);
#include "runtime/stats_table.inc"
#undef HOTPACK_STAT
  }

 private:
  hotpack_stats counts_{};
};

}  // namespace hotpack
