#include "simgpu/driver/delay.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

constexpr long kMaxMicroseconds = 1'000'000;
constexpr uint32_t kOneIn = 8;

std::atomic<uint32_t> longest_us{0};

// Draws other numbers in each run and thread, because the place of a race is unknown.
uint32_t Draw() {
  static thread_local uint64_t state = 0;
  if (state == 0) {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    state = (static_cast<uint64_t>(now.tv_nsec) ^ reinterpret_cast<uint64_t>(&state)) | 1;
  }
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33);
}

}  // namespace

void ReadDelay() {
  const char* text = getenv("SIMGPU_DELAY");
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > kMaxMicroseconds) {
    fprintf(stderr, "simgpu: SIMGPU_DELAY: '%s' is not a number of microseconds, 0 to %ld\n", text, kMaxMicroseconds);
    _exit(2);
  }
  longest_us.store(static_cast<uint32_t>(value));
}

void Delay() {
  const uint32_t longest = longest_us.load(std::memory_order_relaxed);
  if (longest == 0 || Draw() % kOneIn != 0) return;
  const int saved = errno;
  usleep(Draw() % longest);
  errno = saved;
}

}  // namespace simgpu
