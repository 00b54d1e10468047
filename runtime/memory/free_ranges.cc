#include "runtime/memory/free_ranges.h"

#include <iterator>

namespace hotpack {

void FreeRanges::Erase(Ranges::iterator it) {
  by_bytes_.erase({it->second, it->first});
  by_begin_.erase(it);
}

// Changes the range to [begin, begin + bytes), which must keep its order among the others. Where its size keeps its
// order, too, no node changes. (The sets' elements are no const objects: only their iterators make them const.)
void FreeRanges::Change(Ranges::iterator it, uint64_t begin, uint64_t bytes) {
  const Size changed{bytes, begin};
  const Sizes::iterator size = by_bytes_.find({it->second, it->first});
  const Sizes::iterator next = std::next(size);
  const bool in_order =
      (size == by_bytes_.begin() || *std::prev(size) < changed) && (next == by_bytes_.end() || changed < *next);
  if (in_order) {
    const_cast<Size&>(*size) = changed;
  } else {
    by_bytes_.erase(size);
    by_bytes_.insert(changed);
  }
  const_cast<Range&>(*it) = {begin, bytes};
}

void FreeRanges::Add(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  total_ += bytes;
  auto next = by_begin_.lower_bound(begin);
  const bool joins_next = next != by_begin_.end() && next->first == begin + bytes;
  auto before = next != by_begin_.begin() ? std::prev(next) : by_begin_.end();
  const bool joins_before = before != by_begin_.end() && before->first + before->second == begin;
  if (joins_before) {
    Change(before, before->first, before->second + bytes + (joins_next ? next->second : 0));
    if (joins_next) Erase(next);
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
    if (end == range_end) return;
    by_begin_.emplace_hint(std::next(it), end, range_end - end);
    by_bytes_.emplace(range_end - end, end);
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

FreeRanges::Ranges::const_iterator FreeRanges::Containing(uint64_t address) const {
  auto it = by_begin_.upper_bound(address);
  if (it == by_begin_.begin()) return by_begin_.end();
  --it;
  return address < it->first + it->second ? it : by_begin_.end();
}

}  // namespace hotpack
