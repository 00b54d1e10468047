#include "tools/replay/replay_sizes.h"

#include <algorithm>
#include <iterator>

namespace hotpack {

std::vector<uint64_t> TensorSizes(uint64_t total) {
  // The tensors of a layer: two norms, a bias, and their matrices. Every few layers a larger one.
  constexpr uint64_t kKiB = 1024, kMiB = 1024 * 1024;
  constexpr uint64_t kLayer[] = {2 * kKiB, 2 * kKiB, 2359296, 8 * kKiB, 589824, 3072, 36 * kKiB, 4 * kMiB, 16 * kKiB};
  constexpr uint64_t kLarge[] = {64 * kMiB, 9 * kMiB + 512 * kKiB, 31 * kMiB, 16 * kMiB};
  std::vector<uint64_t> sizes;
  size_t large = 0;
  for (size_t i = 0; total > 0; ++i) {
    uint64_t size = kLayer[i % std::size(kLayer)];
    // One large tensor after every two layers, if it is at most half of the rest: the rest stays a mixture.
    if (i % (2 * std::size(kLayer)) == std::size(kLayer)) {
      uint64_t candidate = kLarge[large++ % std::size(kLarge)];
      if (candidate <= total / 2) size = candidate;
    }
    size = std::min(size, total);
    sizes.push_back(size);
    total -= size;
  }
  return sizes;
}

}  // namespace hotpack
