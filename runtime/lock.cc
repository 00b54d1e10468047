#include "runtime/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hotpack {
namespace {

// Looks at the lock before sleeping, with 1, 2, 4, ... pauses between: together some tens of microseconds, about what a
// sleep and a wake-up cost.
constexpr int kLooks = 10;

void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  static_assert(sizeof(*word) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void Pause(int times) {
  for (int i = 0; i < times; ++i) {
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

void Lock::LockSlow() {
  uint32_t mine = 0;  // kWoken: this thread is the one that was woken
  while (true) {
    for (int look = 0; look < kLooks; ++look) {
      uint32_t state = state_.load(std::memory_order_relaxed);
      // What other waiters do to the state meanwhile is no reason to wait longer.
      while ((state & kHeld) == 0) {
        if (state_.compare_exchange_weak(state, (state | kHeld) & ~mine, std::memory_order_acquire)) return;
      }
      Pause(1 << look);
    }
    uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & kHeld) == 0) continue;
    if (!state_.compare_exchange_weak(state, (state & ~mine) + kSleeper, std::memory_order_relaxed)) continue;
    SleepUntilCalled(&calls_);
    mine = kWoken;
  }
}

// The lock has been given up. Somebody sleeps, or was woken.
void Lock::UnlockSlow() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  // Held again: its holder will look. Woken: that one will take it, or sleep again and leave this to the holder.
  while (state >= kSleeper && (state & (kHeld | kWoken)) == 0) {
    if (!state_.compare_exchange_weak(state, (state - kSleeper) | kWoken, std::memory_order_relaxed)) continue;
    calls_.fetch_add(1);
    Futex(&calls_, FUTEX_WAKE, 1);
    return;
  }
}

}  // namespace hotpack
