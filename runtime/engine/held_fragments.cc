#include "runtime/engine/held_fragments.h"

#include <algorithm>
#include <iterator>

namespace hotpack {
namespace {

AddressRange RangeOf(const Fragment& fragment) { return {fragment.address, fragment.units * kBlockUnit}; }

bool Within(const AddressRange& range, const AddressRange& whole) {
  return range.begin >= whole.begin && range.begin + range.bytes <= whole.begin + whole.bytes;
}

}  // namespace

bool HeldFragments::HavePages(const std::vector<Fragment>& fragments) const {
  return std::all_of(fragments.begin(), fragments.end(), [&](const Fragment& fragment) {
    return arena_->Mapped(fragment.address, fragment.units * kBlockUnit);
  });
}

// Scripts that take turns use the same fragments, but not each uses all of them.
bool HeldFragments::Include(const std::vector<Fragment>& fragments) const {
  return std::all_of(fragments.begin(), fragments.end(),
                     [&](const Fragment& fragment) { return Contain(RangeOf(fragment)); });
}

void HeldFragments::Take(const std::vector<Fragment>& fragments) {
  for (const Fragment& fragment : fragments) {
    if (arena_->TakeRange(RangeOf(fragment))) ranges_.push_back(RangeOf(fragment));
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

void HeldFragments::Free(const std::vector<AddressRange>& live) {
  for (const AddressRange& fragment : ranges_) {
    DeviceAddress from = fragment.begin, end = fragment.begin + fragment.bytes;
    for (const AddressRange& block : live) {
      if (block.begin + block.bytes <= from || block.begin >= end) continue;
      if (block.begin > from) arena_->Free(from, block.begin - from);
      from = block.begin + block.bytes;
    }
    if (from < end) arena_->Free(from, end - from);
  }
  ranges_.clear();
}

void HeldFragments::FreeOutside(const AddressRange& range) {
  DeviceAddress from = range.begin, end = range.begin + range.bytes;
  for (const AddressRange& fragment : ranges_) {
    if (fragment.begin + fragment.bytes <= from) continue;
    if (fragment.begin >= end) break;
    if (fragment.begin > from) arena_->Free(from, fragment.begin - from);
    from = fragment.begin + fragment.bytes;
  }
  if (from < end) arena_->Free(from, end - from);
}

AddressRange HeldFragments::Around(const AddressRange& range) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), range.begin,
                       [](DeviceAddress begin, const AddressRange& fragment) { return begin < fragment.begin; });
  return after != ranges_.begin() && Within(range, *std::prev(after)) ? *std::prev(after) : AddressRange{};
}

}  // namespace hotpack
