#include "runtime/memory/release_stamps.h"

#include <iterator>

namespace hotpack {

void ReleaseStamps::Take(uint64_t begin, uint64_t end, ReuseAfter* after) noexcept {
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second.end > begin) --it;
  while (it != ranges_.end() && it->first < end) {
    const uint64_t range_begin = it->first;
    const Range range = it->second;
    if (range.after.all_tick > settled_) after->Add(kAllStreams, range.after.all_tick);
    for (uint32_t i = 0; i < range.after.count; ++i) {
      const ReuseAfter::Point& point = range.after.points[i];
      if (point.tick > settled_) after->Add(point.stream, point.tick, point.pooled_block);
    }
    if (range_begin < begin) {
      it->second.end = begin;
      ++it;
    } else {
      it = ranges_.erase(it);
    }
    if (range.end > end) {
      try {
        it = std::next(ranges_.emplace_hint(it, end, range));
      } catch (...) {
        everywhere_ = std::max(everywhere_, range.after.LatestTick());
      }
    }
  }
  if (everywhere_ > settled_) after->Add(kAllStreams, everywhere_);
}

void ReleaseStamps::Put(uint64_t begin, uint64_t end, const ReuseAfter& after) noexcept {
  ReuseAfter before;
  Take(begin, end, &before);  // usually nothing; never two at an address
  if (ranges_.size() >= next_sweep_) {
    std::erase_if(ranges_, [this](const auto& entry) { return entry.second.after.LatestTick() <= settled_; });
    next_sweep_ = 2 * ranges_.size() + 1024;
  }
  latest_ = std::max(latest_, after.LatestTick());
  try {
    ranges_.emplace(begin, Range{end, after});
  } catch (...) {
    everywhere_ = std::max(everywhere_, after.LatestTick());
  }
}

void ReleaseStamps::Settle(uint64_t tick) noexcept {
  settled_ = std::max(settled_, tick);
  if (latest_ <= settled_) ranges_.clear();
  if (everywhere_ <= settled_) everywhere_ = 0;
}

}  // namespace hotpack
