// The last events of a stream or a context, each with the releases that it stands for.
//
//   oldest ── 7 ── 9 ── 12 ── 15 ── newest      ticks; a request that must come after release 8 waits for event 9
//     └── recorded again next. If it is complete by then, the releases up to 7 need no event any more: `done`
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "runtime/memory/cuda_driver.h"

namespace hotpack {

// Returns true if all that was submitted before the event was recorded is finished. Also during a capture.
inline bool IsFinished(const CudaDriver& driver, CUevent event) {
  const RelaxedCaptureMode relaxed(driver);
  return driver.EventQuery != nullptr && driver.EventQuery(event) == CUDA_SUCCESS;
}

// Plain data, all zero at first. Not thread-safe: the owner holds its lock, but not while it calls the driver. Each
// function is O(kEvents).
struct EventRing {
  // About as many releases as a device is behind its host. Then events stand for somewhat more.
  static constexpr uint32_t kEvents = 64;
  static constexpr uint64_t kBusy = ~uint64_t{0};

  CUevent events[kEvents];
  uint64_t ticks[kEvents];      // an event stands for all releases up to its tick. 0: not recorded yet; kBusy: being so
  uint64_t sequences[kEvents];  // the order in which the recordings were begun
  uint64_t next;
  uint64_t done;  // all that came before releases up to this tick is finished

  // Forgets what is recorded. The events stay for later.
  void Clear() {
    std::fill(ticks, ticks + kEvents, 0);
    done = 0;
  }

  // Takes the oldest event that no other thread is recording. *before: its tick, 0 if none. Returns kEvents if there is
  // none. Commit ends it.
  uint32_t Begin(uint64_t* before) {
    for (uint32_t tries = 0; tries < kEvents; ++tries) {
      const uint64_t sequence = next++;
      const auto k = static_cast<uint32_t>(sequence % kEvents);
      if (ticks[k] == kBusy) continue;
      *before = ticks[k];
      ticks[k] = kBusy;
      sequences[k] = sequence;
      return k;
    }
    return kEvents;
  }
  // `tick`: 0 if nothing was recorded. `finished`: releases up to this tick were found finished; 0: none.
  void Commit(uint32_t k, CUevent event, uint64_t tick, uint64_t finished) {
    events[k] = event;
    ticks[k] = tick;
    done = std::max(done, finished);
  }

  // Returns the earliest event that stands for at least the releases up to `tick`, kEvents if there is none.
  uint32_t After(uint64_t tick) const {
    uint32_t best = kEvents;
    for (uint32_t k = 0; k < kEvents; ++k) {
      if (ticks[k] == kBusy || ticks[k] < tick || ticks[k] == 0) continue;
      if (best == kEvents || ticks[k] < ticks[best]) best = k;
    }
    return best;
  }
  // Returns the event whose recording was begun last, kEvents if there is none. It may be being recorded.
  uint32_t Latest() const {
    uint32_t last = kEvents;
    for (uint32_t k = 0; k < kEvents; ++k) {
      if (ticks[k] != 0 && (last == kEvents || sequences[k] > sequences[last])) last = k;
    }
    return last;
  }
};

}  // namespace hotpack
