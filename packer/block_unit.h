// The unit that sizes and offsets of blocks are multiples of: what the driver aligns allocations to, and PyTorch rounds
// requests to.
#pragma once

#include <cstdint>

namespace hotpack {

inline constexpr uint64_t kBlockUnit = 512;  // bytes

// Units that hold `bytes`; `bytes` below 2^40. O(1).
constexpr uint32_t UnitsOf(uint64_t bytes) { return static_cast<uint32_t>((bytes + kBlockUnit - 1) / kBlockUnit); }

// `bytes` rounded up to whole units; at most 2^64 - 512. O(1).
constexpr uint64_t RoundUpToUnit(uint64_t bytes) { return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit; }

}  // namespace hotpack
