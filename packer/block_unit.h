// The unit of sizes and offsets of blocks: the driver aligns allocations to it, and PyTorch rounds requests to it.
#pragma once

#include <cstdint>

namespace hotpack {

inline constexpr uint64_t kBlockUnit = 512;  // bytes

// Returns the units that hold `bytes`, which must be below 2^40. O(1).
constexpr uint32_t UnitsOf(uint64_t bytes) { return static_cast<uint32_t>((bytes + kBlockUnit - 1) / kBlockUnit); }

// Rounds `bytes`, at most 2^64 - 512, up to whole units. O(1).
constexpr uint64_t RoundUpToUnit(uint64_t bytes) { return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit; }

}  // namespace hotpack
