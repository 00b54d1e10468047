// Rules of PyTorch's caching allocator that are the same with and without expandable segments. Sources: PyTorch's
// documentation ("CUDA semantics", memory management and PYTORCH_ALLOC_CONF) and the behaviour of torch.cuda's
// allocator. bench/torch/peers_agree compares that with these simulations (docs/compare.md). Options have their
// defaults: no maximal size of a split, no rounding to parts of powers of two, no garbage collection.
#pragma once

#include <cstdint>

namespace hotpack::pytorch {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kUnit = 512;                // sizes are multiples of it
inline constexpr uint64_t kLargestSmall = kMiB;       // requests up to it belong to the small pool
inline constexpr uint64_t kSmallSegment = 2 * kMiB;   // the small pool grows by this
inline constexpr uint64_t kLargeSegment = 20 * kMiB;  // the large pool grows by this, for requests below kOwnSegment
inline constexpr uint64_t kOwnSegment = 10 * kMiB;    // requests from here on get their own segment ...
inline constexpr uint64_t kOwnUnit = 2 * kMiB;        // ... whose size is a multiple of this

enum Pool : uint32_t { kSmall = 0, kLarge = 1 };

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }
constexpr uint64_t SizeOf(uint64_t bytes) { return bytes < kUnit ? kUnit : RoundUp(bytes, kUnit); }
constexpr Pool PoolOf(uint64_t size) { return size <= kLargestSmall ? kSmall : kLarge; }

}  // namespace hotpack::pytorch
