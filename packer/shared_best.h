// What the threads of one solve share: the best placement so far, and what is proved about better ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "packer/types.h"

namespace hotpack {

// The best placement found so far, and which solver found it (a static string).
struct Incumbent {
  Placement placement;
  const char* algorithm = "";
};

// Thread-safe. The reads are relaxed atomics, good for inner loops: what they say may be a moment old.
class SharedBest {
 public:
  // lower: no placement is lower. capacity: heights below it are not asked for; 0 for as low as can be.
  SharedBest(Incumbent incumbent, Bytes lower, Bytes capacity)
      : capacity_(capacity), incumbent_(std::move(incumbent)), height_(incumbent_.placement.height), lower_(lower) {}

  Bytes height() const { return height_.load(std::memory_order_relaxed); }  // of the best placement
  Bytes lower() const { return lower_.load(std::memory_order_relaxed); }
  Bytes capacity() const { return capacity_; }
  // The height at which the solve has done what was asked.
  Bytes goal() const { return std::max(lower(), capacity_); }
  // It has, or it is proved that it cannot be done.
  bool done() const { return height() <= goal() || (capacity_ > 0 && lower() > capacity_); }

  // Takes the placement, which is valid, if it is better. Leaves something or other in its place.
  void Offer(Placement* placement, const char* algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (placement->height >= incumbent_.placement.height) return;
    std::swap(incumbent_.placement, *placement);
    incumbent_.algorithm = algorithm;
    height_.store(incumbent_.placement.height, std::memory_order_relaxed);
  }

  // It is proved that no placement is lower than this.
  void RaiseLower(Bytes lower) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lower_.store(std::max(lower, lower_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }

  // Only when no other thread uses this any more.
  Incumbent Take() { return std::move(incumbent_); }

 private:
  const Bytes capacity_;
  std::mutex mutex_;
  Incumbent incumbent_;  // guarded by mutex_
  std::atomic<Bytes> height_;
  std::atomic<Bytes> lower_;
};

}  // namespace hotpack
