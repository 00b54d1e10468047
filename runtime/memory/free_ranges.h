// Free address ranges with best fit and coalescing.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <utility>

#include "runtime/base/btree.h"

namespace hotpack {

// Disjoint, maximal ranges [begin, begin + bytes). Not thread-safe. Each operation is O(log ranges). Nodes come from
// `memory`, so that a steady state makes no heap allocation. B-trees: among 400,000 ranges a search in a binary tree
// reads about three times as many cache lines.
class FreeRanges {
 public:
  using Range = std::pair<uint64_t, uint64_t>;  // (begin, bytes)
  struct ByBegin {
    using is_transparent = void;
    bool operator()(const Range& a, const Range& b) const { return a.first < b.first; }
    bool operator()(const Range& a, uint64_t begin) const { return a.first < begin; }
    bool operator()(uint64_t begin, const Range& b) const { return begin < b.first; }
  };
  using Ranges = absl::btree_set<Range, ByBegin, std::pmr::polymorphic_allocator<Range>>;

  explicit FreeRanges(std::pmr::memory_resource* memory) : by_begin_(memory), by_bytes_(memory) {}

  // Adds a range that overlaps no other; joins it with its neighbours.
  void Add(uint64_t begin, uint64_t bytes);
  // Removes [begin, begin + bytes), which must lie within one range.
  void Remove(uint64_t begin, uint64_t bytes);
  // Finds the smallest range that holds `bytes`, the lowest if several do. Returns false if there is none. Does not
  // remove it.
  bool BestFit(uint64_t bytes, uint64_t* begin) const {
    uint64_t length = 0;
    return BestFit(bytes, begin, &length);
  }
  // The same. *length: the size of the range.
  bool BestFit(uint64_t bytes, uint64_t* begin, uint64_t* length) const;
  // Returns the range that contains `address`; ranges().end() if none does.
  Ranges::const_iterator Containing(uint64_t address) const;

  const Ranges& ranges() const { return by_begin_; }
  uint64_t total() const { return total_; }

 private:
  using Size = std::pair<uint64_t, uint64_t>;  // (bytes, begin)
  struct BySize {                              // without branches: an order of pairs that is hard to predict
    bool operator()(const Size& a, const Size& b) const { return Wide(a) < Wide(b); }
    static unsigned __int128 Wide(const Size& size) {
      return static_cast<unsigned __int128>(size.first) << 64 | size.second;
    }
  };

  using Sizes = absl::btree_set<Size, BySize, std::pmr::polymorphic_allocator<Size>>;

  void Erase(Ranges::iterator it);
  void Change(Ranges::iterator it, uint64_t begin, uint64_t bytes);

  Ranges by_begin_;
  Sizes by_bytes_;
  uint64_t total_ = 0;
};

}  // namespace hotpack
