// Random numbers that are the same on every platform for a seed (the standard library's distributions are not).
#pragma once

#include <cstdint>

namespace hotpack {

// SplitMix64: one 64-bit state that moves by a constant, finished by a mixing function. Good enough to perturb keys.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // In [0, limit), limit ≥ 1.
  int64_t Below(int64_t limit) { return static_cast<int64_t>(Unit() * static_cast<double>(limit)); }

 private:
  uint64_t state_;
};

}  // namespace hotpack
