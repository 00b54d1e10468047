#include "runtime/memory/free_ranges.h"

namespace hotpack {

void FreeRanges::Insert(uint64_t begin, uint64_t bytes) {
  by_begin_.emplace(begin, bytes);
  by_bytes_.emplace(bytes, begin);
}

void FreeRanges::Erase(Map::iterator it) {
  by_bytes_.erase({it->second, it->first});
  by_begin_.erase(it);
}

// Changes the range to [begin, begin + bytes), which must keep its order among the others. Reuses its nodes.
void FreeRanges::Change(Map::iterator it, uint64_t begin, uint64_t bytes) {
  auto size = by_bytes_.extract({it->second, it->first});
  size.value() = {bytes, begin};
  by_bytes_.insert(std::move(size));
  if (it->first != begin) {
    const auto next = std::next(it);
    auto place = by_begin_.extract(it);
    place.key() = begin;
    it = by_begin_.insert(next, std::move(place));
  }
  it->second = bytes;
}

void FreeRanges::Add(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  total_ += bytes;
  auto next = by_begin_.lower_bound(begin);
  const bool joins_next = next != by_begin_.end() && next->first == begin + bytes;
  auto before = next != by_begin_.begin() ? std::prev(next) : by_begin_.end();
  const bool joins_before = before != by_begin_.end() && before->first + before->second == begin;
  if (joins_before) {
    const uint64_t joined = before->second + bytes + (joins_next ? next->second : 0);
    if (joins_next) Erase(next);
    Change(before, before->first, joined);
  } else if (joins_next) {
    Change(next, begin, bytes + next->second);
  } else {
    by_begin_.emplace_hint(next, begin, bytes);
    by_bytes_.emplace(bytes, begin);
  }
}

void FreeRanges::Remove(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  auto it = std::prev(by_begin_.upper_bound(begin));
  const uint64_t range_begin = it->first, range_end = it->first + it->second;
  total_ -= bytes;
  const uint64_t end = begin + bytes;
  if (begin > range_begin) {
    Change(it, range_begin, begin - range_begin);
    if (end < range_end) Insert(end, range_end - end);
  } else if (end < range_end) {
    Change(it, end, range_end - end);
  } else {
    Erase(it);
  }
}

bool FreeRanges::BestFit(uint64_t bytes, uint64_t* begin, uint64_t* length) const {
  auto it = by_bytes_.lower_bound({bytes, 0});
  if (it == by_bytes_.end()) return false;
  *length = it->first;
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
