#include "runtime/base/adaptive_mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/request_timer.h"

namespace hotpack {
namespace {

// Checks of the lock before sleeping are spaced 1, 2, 4, ... pauses apart. Together they take tens of microseconds,
// about the cost of a sleep and a wake-up. Under repeated contention the first checks are skipped: as many as waits
// came within kSoon of the previous one. Only one later check remains.
constexpr uint32_t kLooks = 10;
constexpr uint32_t kHottest = 10;
constexpr int64_t kSoon = 400'000;  // ns: a few times 2^kHottest pauses

void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  static_assert(sizeof(*word) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void Pause(uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

// Takes one of `calls`, or sleeps until there is one.
void SleepUntilCalled(std::atomic<uint32_t>* calls) {
  while (true) {
    uint32_t number = calls->load(std::memory_order_relaxed);
    if (number == 0) {
      Futex(calls, FUTEX_WAIT, 0);
    } else if (calls->compare_exchange_weak(number, number - 1)) {
      return;
    }
  }
}

}  // namespace

// Returns the check that a wait begins with: 0 if the previous wait was long ago. (Simultaneous waits may lose a count,
// which is harmless.)
uint32_t AdaptiveMutex::FirstLook() {
  const int64_t now = RequestTimer::Now();
  const bool soon = now - waited_at_.load(std::memory_order_relaxed) < kSoon;
  const uint32_t heat = soon ? std::min(contention_.load(std::memory_order_relaxed) + 1, kHottest) : 0;
  waited_at_.store(now, std::memory_order_relaxed);
  contention_.store(heat, std::memory_order_relaxed);
  return heat;
}

void AdaptiveMutex::LockSlow() {
  constexpr uint32_t kNone = UINT32_MAX;
  uint32_t mine = 0;  // kWoken: this thread is the woken one
  uint32_t look = kNone;
  while (true) {
    uint32_t state = state_.load(std::memory_order_relaxed);
    // State changes by other waiters are no reason to wait longer.
    while ((state & kHeld) == 0) {
      if (state_.compare_exchange_weak(state, (state | kHeld) & ~mine, std::memory_order_acquire)) return;
    }
    if (look == kNone) {
      look = FirstLook();
    } else if (look >= kLooks) {
      if (!state_.compare_exchange_weak(state, (state & ~mine) + kSleeper, std::memory_order_relaxed)) continue;
      SleepUntilCalled(&pending_wakeups_);
      mine = kWoken;
      look = kNone;
      continue;
    }
    Pause(1u << look++);
  }
}

// The lock was released, and there is a sleeper or a woken thread.
void AdaptiveMutex::UnlockSlow() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  // If held again: its holder will check. If woken: the woken thread takes the lock, or sleeps again and leaves this to
  // the holder.
  while (state >= kSleeper && (state & (kHeld | kWoken)) == 0) {
    if (!state_.compare_exchange_weak(state, (state - kSleeper) | kWoken, std::memory_order_relaxed)) continue;
    pending_wakeups_.fetch_add(1);
    Futex(&pending_wakeups_, FUTEX_WAKE, 1);
    return;
  }
}

}  // namespace hotpack
