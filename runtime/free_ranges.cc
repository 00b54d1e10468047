#include "runtime/free_ranges.h"

namespace hotpack {

void FreeRanges::Insert(uint64_t begin, uint64_t bytes) {
  by_begin_.emplace(begin, bytes);
  by_bytes_.emplace(bytes, begin);
}

void FreeRanges::Erase(Map::iterator it) {
  by_bytes_.erase({it->second, it->first});
  by_begin_.erase(it);
}

void FreeRanges::Add(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  total_ += bytes;
  auto next = by_begin_.lower_bound(begin);
  if (next != by_begin_.end() && next->first == begin + bytes) {
    bytes += next->second;
    auto joined = next++;
    Erase(joined);
  }
  if (next != by_begin_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      Erase(before);
    }
  }
  Insert(begin, bytes);
}

void FreeRanges::Remove(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  auto it = std::prev(by_begin_.upper_bound(begin));
  uint64_t range_begin = it->first, range_end = it->first + it->second;
  Erase(it);
  total_ -= bytes;
  if (begin > range_begin) Insert(range_begin, begin - range_begin);
  if (begin + bytes < range_end) Insert(begin + bytes, range_end - begin - bytes);
}

bool FreeRanges::BestFit(uint64_t bytes, uint64_t* begin) const {
  auto it = by_bytes_.lower_bound({bytes, 0});
  if (it == by_bytes_.end()) return false;
  *begin = it->second;
  return true;
}

FreeRanges::Map::const_iterator FreeRanges::Containing(uint64_t address) const {
  auto it = by_begin_.upper_bound(address);
  if (it == by_begin_.begin()) return by_begin_.end();
  --it;
  return address < it->first + it->second ? it : by_begin_.end();
}

}  // namespace hotpack
