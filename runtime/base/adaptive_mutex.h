// A small mutex that takes few instructions when it is not contended.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotpack {

// Meets the standard's Lockable requirements. Not recursive, not fair.
//
// Designed for a lock that is held for tens of nanoseconds and taken again at once by the same thread. Handing it to
// another core costs more than the work under it, because the data must move to that core, too. Therefore:
// 1. Waiters back off exponentially, further under repeated contention, so that the holder keeps its cache lines. Then
//    they sleep.
// 2. One sleeper is woken at a time. Until it has run, unlock makes no system call.
class AdaptiveMutex {
 public:
  void lock() {
    uint32_t expected = 0;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        [[unlikely]] {
      LockSlow();
    }
  }
  bool try_lock() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    return (state & kHeld) == 0 &&
           state_.compare_exchange_strong(state, state | kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.fetch_sub(kHeld, std::memory_order_release) != kHeld) [[unlikely]]
      UnlockSlow();
  }

 private:
  // The state: whether it is held, whether a woken sleeper has yet to check it, and the number of sleepers.
  static constexpr uint32_t kHeld = 1, kWoken = 2, kSleeper = 4;
  [[gnu::cold, gnu::noinline]] void LockSlow();
  [[gnu::cold, gnu::noinline]] void UnlockSlow();
  uint32_t FirstLook();
  std::atomic<uint32_t> state_{0};
  std::atomic<uint32_t> pending_wakeups_{0};  // sleepers that were signalled and have not woken yet
  std::atomic<uint32_t> contention_{0};       // waits that each came soon after the previous one
  std::atomic<int64_t> waited_at_{0};         // when the last wait began, ns
};

}  // namespace hotpack
