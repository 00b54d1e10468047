// Samples how long a request takes: one in kEvery, median of the last kSamples.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hotpack {

class RequestTimer {
 public:
  static constexpr uint64_t kEvery = 128;
  static constexpr uint32_t kSamples = 256;

  // Whether the next request is to be timed. Any thread, no lock.
  bool Armed() const { return armed_.load(std::memory_order_relaxed); }
  void Arm() { armed_.store(true, std::memory_order_relaxed); }

  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // Under the engine's lock.
  void Add(int64_t nanoseconds) {
    samples_[count_++ % kSamples] = static_cast<uint32_t>(std::clamp<int64_t>(nanoseconds, 0, UINT32_MAX));
    armed_.store(false, std::memory_order_relaxed);
  }
  uint64_t Median() const {  // nanoseconds; 0: no sample. No heap allocation
    auto n = static_cast<uint32_t>(std::min<uint64_t>(count_, kSamples));
    if (n == 0) return 0;
    std::array<uint32_t, kSamples> sorted = samples_;
    std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.begin() + n);
    return sorted[n / 2];
  }

 private:
  std::atomic<bool> armed_{false};
  uint64_t count_ = 0;
  std::array<uint32_t, kSamples> samples_{};
};

}  // namespace hotpack
