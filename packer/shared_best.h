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

// What is asked of a solve.
struct Goal {
  Bytes target_height = 0;  // heights up to this are as good as any
  bool decide = false;      // whether there is a placement of such a height is all that is asked
};

// Thread-safe. The reads are relaxed atomics, good for inner loops: what they say may be a moment old.
class SharedBest {
 public:
  // incumbent: a valid placement. lower: no placement is lower.
  SharedBest(Incumbent incumbent, Bytes lower, Goal goal)
      : goal_(goal), incumbent_(std::move(incumbent)), height_(incumbent_.placement.height), lower_(lower) {}

  Bytes height() const { return height_.load(std::memory_order_relaxed); }  // of the best placement
  Bytes lower() const { return lower_.load(std::memory_order_relaxed); }
  // At this height nothing more is asked.
  Bytes target() const { return std::max(lower(), goal_.target_height); }
  bool decide() const { return goal_.decide; }
  // There is nothing left to do: it is low enough, or proved that what was asked cannot be.
  bool done() const { return height() <= target() || (goal_.decide && lower() > goal_.target_height); }

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
  const Goal goal_;
  std::mutex mutex_;
  Incumbent incumbent_;  // guarded by mutex_
  std::atomic<Bytes> height_;
  std::atomic<Bytes> lower_;
};

}  // namespace hotpack
