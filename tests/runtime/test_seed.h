// The seed of property tests: random and printed, or given by HOTPACK_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace hotpack {

inline uint64_t TestSeed() {
  const char* text = std::getenv("HOTPACK_TEST_SEED");
  uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("HOTPACK_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace hotpack
