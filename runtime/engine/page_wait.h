// How long to wait for work that may still use idle pages, before they move or are given back. The work may depend on
// what the program submits next: a receive posted before its send, a persistent kernel. So the wait has a limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/include/hotpack.h"
#include "runtime/memory/page_mover.h"

namespace hotpack {

// Each wait in vain halves the limit, and lets the next 2, 4, ... 64 waits be left out. A wait that ends undoes both.
// Guarded by the engine's lock. O(1).
class PageWait {
 public:
  // `limit_us`: microseconds; UINT64_MAX: no limit.
  explicit PageWait(uint64_t limit_us) : limit_us_(limit_us), now_us_(limit_us) {}

  // Returns work whose waits have the limit.
  PageWork BoundedWork() const {
    PageWork work;
    work.max_wait = now_us_;
    return work;
  }
  // Call before and after Arena::Execute. The first marks the work as unfinished if this wait is left out.
  void Begin(PageWork* work) {
    waits_ = work->max_wait != UINT64_MAX && (!work->take.empty() || !work->take_zone.empty());
    work->unfinished = waits_ && skips_ > 0;
    if (!work->unfinished) return;
    --skips_;
    waits_ = false;
  }
  void End(const PageWork& work) {
    if (!waits_) return;
    if (!work.unfinished) {
      skips_ = last_skips_ = 0;
      now_us_ = limit_us_;
      return;
    }
    ++unfinished_;
    skips_ = last_skips_ = std::min(kMaxSkips, 2 * std::max<uint64_t>(1, last_skips_));
    now_us_ /= 2;
  }
  void AddTo(hotpack_stats* stats) const { stats->page_waits_unfinished = unfinished_; }

 private:
  static constexpr uint64_t kMaxSkips = 64;
  const uint64_t limit_us_;
  uint64_t now_us_;
  uint64_t skips_ = 0, last_skips_ = 0;  // waits to leave out: still, and after the last wait in vain
  uint64_t unfinished_ = 0;              // waits in vain
  bool waits_ = false;                   // the work begun last waits
};

}  // namespace hotpack
