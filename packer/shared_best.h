// State that the threads of one solve share: the best placement so far, and what is proved about better ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "packer/types.h"

namespace hotpack {

// The best placement found so far, and the solver that found it (a static string).
struct Incumbent {
  Placement placement;
  const char* algorithm = "";
};

// What a solve must find.
struct Goal {
  Bytes target_height = 0;  // heights up to this are equally good
  bool decide = false;      // only asks whether there is a placement of at most this height
};

// Thread-safe. Reads are relaxed atomics, suitable for inner loops: their values may be slightly out of date.
class SharedBest {
 public:
  // `incumbent`: a valid placement. `lower`: no placement is lower.
  SharedBest(Incumbent incumbent, Bytes lower, Goal goal)
      : goal_(goal), incumbent_(std::move(incumbent)), height_(incumbent_.placement.height), lower_(lower) {}

  Bytes height() const { return height_.load(std::memory_order_relaxed); }  // of the best placement
  Bytes lower() const { return lower_.load(std::memory_order_relaxed); }
  // Returns the height at which the solve ends.
  Bytes target() const { return std::max(lower(), goal_.target_height); }
  bool decide() const { return goal_.decide; }
  // Returns whether the solve has ended: the height is low enough, or the goal is proved impossible.
  bool done() const { return height() <= target() || (goal_.decide && lower() > goal_.target_height); }

  // Takes the placement, which must be valid, if it is better. Leaves *placement in an unspecified state.
  void Offer(Placement* placement, const char* algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (placement->height >= incumbent_.placement.height) return;
    std::swap(incumbent_.placement, *placement);
    incumbent_.algorithm = algorithm;
    height_.store(incumbent_.placement.height, std::memory_order_relaxed);
  }

  // Records a proof that no placement is lower than this.
  void RaiseLower(Bytes lower) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lower_.store(std::max(lower, lower_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }

  // Returns the result. No other thread may use this object any more.
  Incumbent Take() { return std::move(incumbent_); }

 private:
  const Goal goal_;
  std::mutex mutex_;
  Incumbent incumbent_;  // guarded by mutex_
  std::atomic<Bytes> height_;
  std::atomic<Bytes> lower_;
};

}  // namespace hotpack
