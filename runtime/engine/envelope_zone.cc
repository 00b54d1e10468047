#include "runtime/engine/envelope_zone.h"

#include <iterator>
#include <utility>

namespace hotpack {

void EnvelopeZone::Close() {
  range_ = {};
  live_.clear();
}

bool EnvelopeZone::Claim(DeviceAddress begin, uint64_t bytes) {
  const auto next = live_.lower_bound(begin);
  if (next != live_.end() && next->first < begin + bytes) return false;
  if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second > begin) return false;
  live_.emplace_hint(next, begin, bytes);
  return true;
}

DeviceAddress EnvelopeZone::EndBelow(DeviceAddress address) const {
  const auto next = live_.lower_bound(address);
  return next == live_.begin() ? 0 : std::prev(next)->first + std::prev(next)->second;
}

std::vector<AddressRange> EnvelopeZone::Live(bool in_zone) const {
  std::vector<AddressRange> live;
  for (const auto& [begin, bytes] : live_) {
    if (Contains(begin) == in_zone) live.push_back({begin, bytes});
  }
  return live;
}

ZoneGap EnvelopeZone::FindGap(const Arena& arena, const AddressRange& area, uint64_t bytes, uint64_t alignment,
                              ZoneGap best) const {
  const auto consider = [&](DeviceAddress begin, DeviceAddress end) {
    if (end < begin + bytes) return;
    for (const DeviceAddress at : {(begin + alignment - 1) & ~(alignment - 1), (end - bytes) & ~(alignment - 1)}) {
      if (at < begin || at + bytes > end) continue;
      const uint64_t missing = arena.MissingChunks(at, at + bytes);
      if (std::pair(missing, end - begin) < std::pair(best.missing, best.bytes)) best = {at, missing, end - begin};
    }
  };
  const DeviceAddress area_end = area.begin + area.bytes;
  auto next = live_.lower_bound(area.begin);
  DeviceAddress from = area.begin;
  if (next != live_.begin()) from = std::max(from, std::prev(next)->first + std::prev(next)->second);
  for (; next != live_.end() && next->first < area_end; ++next) {
    consider(from, next->first);
    from = next->first + next->second;
  }
  consider(from, area_end);
  return best;
}

std::vector<AddressRange> EnvelopeZone::EmptyExtents(const Arena& arena, uint64_t chunks) const {
  std::vector<AddressRange> empty;
  auto below = live_.rbegin();
  for (DeviceAddress end = range_.begin + range_.bytes, begin = end; end > range_.begin && chunks > 0; end = begin) {
    const AddressRange extent = arena.ExtentAt(end - 1);
    begin = extent.begin;
    while (below != live_.rend() && below->first >= end) ++below;
    const bool used = below != live_.rend() && below->first + below->second > begin;
    if (used || !arena.Mapped(begin, arena.chunk())) continue;
    if (empty.empty() || empty.back().begin != end) empty.push_back({end, 0});
    empty.back() = {begin, empty.back().bytes + extent.bytes};
    chunks -= std::min(chunks, extent.bytes / arena.chunk());
  }
  return empty;
}

}  // namespace hotpack
