// The generator of all draws: small, the same on every machine, one word of state.
#pragma once

#include <cstdint>
#include <vector>

namespace property {

// splitmix64 (Steele, Lea, Flood 2014). Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [0, n), n ≥ 1.
  uint64_t Below(uint64_t n) { return Next() % n; }
  int Int(int n) { return static_cast<int>(Below(static_cast<uint64_t>(n))); }
  // True in `permille` of a thousand draws.
  bool Chance(int permille) { return Int(1000) < permille; }
  // Returns bytes in [1, 2^log2], each order of magnitude with the same chance.
  uint64_t Bytes(int log2) { return 1 + (Next() >> (64 - 1 - Int(log2))); }
  template <typename T>
  const T& Of(const std::vector<T>& all) {
    return all[Below(all.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace property
