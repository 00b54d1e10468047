// A mutex of a few words: a few instructions when nobody else wants it.
#pragma once

#include <atomic>
#include <cstdint>

namespace hotpack {

// Meets the standard's Lockable requirements. Not recursive, not fair.
//
// Made for a lock that is held for some tens of nanoseconds, and again at once by the same thread: handing it to
// another core costs more (its data has to move there too) than what is done under it. So whoever has to wait looks at
// the lock ever more rarely, and more rarely still where waits have come one after the other, which lets the holder go
// on undisturbed for a while; then it sleeps. One sleeper is woken at a time: while one is on its way, whoever unlocks
// makes no system call.
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
  // The state: whether it is held, whether a sleeper was woken that has not yet looked, and the number of sleepers.
  static constexpr uint32_t kHeld = 1, kWoken = 2, kSleeper = 4;
  [[gnu::cold, gnu::noinline]] void LockSlow();
  [[gnu::cold, gnu::noinline]] void UnlockSlow();
  uint32_t FirstLook();
  std::atomic<uint32_t> state_{0};
  std::atomic<uint32_t> pending_wakeups_{0};  // sleepers that were told to get up and have not done so
  std::atomic<uint32_t> contention_{0};       // waits that each came soon after the one before
  std::atomic<int64_t> waited_at_{0};         // when one last began, ns
};

}  // namespace hotpack
