#include "runtime/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace hotpack {
namespace {

void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  static_assert(sizeof(*word) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void Lock::LockSlow() {
  for (int spin = 0; spin < 100; ++spin) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) Futex(&state_, FUTEX_WAIT, kWaitedFor);
}

void Lock::WakeOne() { Futex(&state_, FUTEX_WAKE, 1); }

}  // namespace hotpack
