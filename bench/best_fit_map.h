// Best fit with coalescing in ordered maps: the textbook allocator to which serving by script is compared.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace hotpack::bench {

// Allocates addresses of [0, capacity). Every operation takes O(log blocks). Not thread-safe.
class BestFitMap {
 public:
  explicit BestFitMap(uint64_t capacity) { AddHole(0, capacity); }

  // Allocates `bytes` (> 0) in the smallest hole that holds them, the lowest of equal ones. Returns the start, or
  // kFull.
  uint64_t Allocate(uint64_t bytes) {
    const auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) return kFull;
    const auto [fragment_bytes, start] = *found;
    by_size_.erase(found);
    by_start_.erase(start);
    if (fragment_bytes > bytes) AddHole(start + bytes, fragment_bytes - bytes);
    live_.emplace(start, bytes);
    return start;
  }

  // Releases the block that starts at `start`. Returns false if there is none.
  bool Release(uint64_t start) {
    const auto block = live_.find(start);
    if (block == live_.end()) return false;
    uint64_t begin = start, end = start + block->second;
    live_.erase(block);
    auto after = by_start_.lower_bound(begin);
    if (after != by_start_.end() && after->first == end) {
      end += after->second;
      after = RemoveHole(after);
    }
    if (after != by_start_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        begin = before->first;
        RemoveHole(before);
      }
    }
    AddHole(begin, end - begin);
    return true;
  }

  size_t HoleCount() const { return by_start_.size(); }

  static constexpr uint64_t kFull = ~uint64_t{0};

 private:
  using Holes = std::map<uint64_t, uint64_t>;

  void AddHole(uint64_t start, uint64_t bytes) {
    by_start_.emplace(start, bytes);
    by_size_.emplace(bytes, start);
  }
  Holes::iterator RemoveHole(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return by_start_.erase(hole);
  }

  Holes by_start_;                                   // start → bytes
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (bytes, start)
  std::map<uint64_t, uint64_t> live_;                // start → bytes
};

}  // namespace hotpack::bench
