// A mutex of one word: a few instructions when nobody else wants it.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotpack {

// Meets the standard's Lockable requirements. Three states: free, held, held and waited for (Drepper, "Futexes are
// tricky", mutex 2). Waiters spin shortly, then sleep in the kernel. Not recursive, not fair.
class Lock {
 public:
  void lock() {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed))
        [[unlikely]] {
      LockSlow();
    }
  }
  bool try_lock() {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) [[unlikely]] WakeOne();
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWaitedFor = 2;
  [[gnu::cold, gnu::noinline]] void LockSlow();
  [[gnu::cold, gnu::noinline]] void WakeOne();
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace hotpack
