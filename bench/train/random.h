// Random numbers for generated tasks, the same on every machine. <random>'s distributions differ between libraries.
#pragma once

#include <cstdint>

namespace hotpack::train {

// splitmix64 (Steele, Lea, Flood 2014). Not thread-safe.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int Below(int bound) { return static_cast<int>(Next() % static_cast<uint64_t>(bound)); }  // 0 .. bound − 1; bound ≥ 1
  float Float() { return static_cast<float>(Next() >> 40) * (1.0f / 16777216.0f); }         // [0, 1), 24 bits
  double Double() { return static_cast<double>(Next() >> 11) * 0x1p-53; }                   // [0, 1), 53 bits

 private:
  uint64_t state_;
};

}  // namespace hotpack::train
