// Samples the duration of requests: one in kEvery, median of the last kSamples.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace hotpack {

class RequestTimer {
 public:
  static constexpr uint64_t kEvery = 128;
  static constexpr uint32_t kSamples = 256;

  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // Needs the engine's lock.
  void Add(int64_t nanoseconds) {
    samples_[count_++ % kSamples] = static_cast<uint32_t>(std::clamp<int64_t>(nanoseconds, 0, UINT32_MAX));
  }
  // Returns nanoseconds; 0: no sample. Updated every 16 samples. No heap allocation.
  uint64_t Median() {
    auto n = static_cast<uint32_t>(std::min<uint64_t>(count_, kSamples));
    if (n == 0 || (count_ < measured_ + 16 && measured_ != 0)) return median_;
    std::array<uint32_t, kSamples> sorted = samples_;
    std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.begin() + n);
    measured_ = count_;
    return median_ = sorted[n / 2];
  }

 private:
  uint64_t count_ = 0;
  uint64_t measured_ = 0;  // count_ when median_ was computed
  uint32_t median_ = 0;
  std::array<uint32_t, kSamples> samples_{};
};

}  // namespace hotpack
