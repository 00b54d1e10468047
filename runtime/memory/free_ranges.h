// Free address ranges with best fit and coalescing.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>

namespace hotpack {

// Disjoint, maximal ranges [begin, begin + bytes). Not thread-safe. Each operation is O(log ranges). Nodes come from
// `memory`, so that a steady state makes no heap allocation.
class FreeRanges {
 public:
  using Map = std::pmr::map<uint64_t, uint64_t>;  // begin → bytes

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
  Map::const_iterator Containing(uint64_t address) const;

  const Map& ranges() const { return by_begin_; }
  uint64_t total() const { return total_; }

 private:
  void Insert(uint64_t begin, uint64_t bytes);
  void Erase(Map::iterator it);
  void Change(Map::iterator it, uint64_t begin, uint64_t bytes);

  Map by_begin_;
  std::pmr::set<std::pair<uint64_t, uint64_t>> by_bytes_;  // (bytes, begin)
  uint64_t total_ = 0;
};

}  // namespace hotpack
