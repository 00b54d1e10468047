// Sizes that the device had no memory for when they were last asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace hotpack {

// A program may probe with a request that fails in each iteration: a workspace, a larger batch. Such a request has no
// block, so no plan may contain it. The last few sizes are kept. Not thread-safe: guarded by the engine's lock.
class FailedRequests {
 public:
  bool Contains(uint32_t units) const { return std::find(sizes_.begin(), sizes_.end(), units) != sizes_.end(); }
  void Add(uint32_t units) {
    if (!Contains(units)) sizes_[next_++ % sizes_.size()] = units;
  }
  void Remove(uint32_t units) { std::replace(sizes_.begin(), sizes_.end(), units, kNoUnits); }
  bool empty() const { return next_ == 0; }

 private:
  static constexpr uint32_t kNoUnits = 0;  // no request has this size
  std::array<uint32_t, 8> sizes_{};
  size_t next_ = 0;
};

}  // namespace hotpack
