#include "runtime/engine/envelope_zone.h"

#include <utility>

namespace hotpack {

bool EnvelopeZone::Claim(DeviceAddress begin, uint64_t bytes, ZoneBlock* below) {
  live_->Prepare();
  if (below == nullptr || !ZoneBlocks::IsBelow(below, begin)) below = live_->Below(begin);
  ZoneBlock* const claimed = live_->Claim(below, begin, begin + bytes);
  if (claimed == nullptr) return false;
  claimed->block = {};
  return true;
}

std::vector<AddressRange> EnvelopeZone::Live(bool in_zone) const {
  std::vector<AddressRange> live;
  for (const ZoneBlock* block = live_->lowest(); !live_->IsEnd(block); block = block->above) {
    if (Contains(block->begin) == in_zone) live.push_back({block->begin, block->end - block->begin});
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
  const ZoneBlock* next = live_->Below(area.begin);
  DeviceAddress from = std::max(area.begin, next->end);
  for (next = next->above; !live_->IsEnd(next) && next->begin < area_end; next = next->above) {
    consider(from, next->begin);
    from = next->end;
  }
  consider(from, area_end);
  return best;
}

std::vector<AddressRange> EnvelopeZone::EmptyExtents(const Arena& arena, uint64_t chunks) const {
  std::vector<AddressRange> empty;
  const ZoneBlock* below = live_->highest();
  DeviceAddress end = range_.begin + range_.bytes;
  while (chunks > 0 && (end = arena.MappedEnd(range_.begin, end)) > range_.begin) {
    const AddressRange extent = arena.ExtentAt(end - 1);
    const DeviceAddress begin = extent.begin;
    while (!live_->IsEnd(below) && below->begin >= end) below = below->below;
    const bool used = below->end > begin;
    if (!used) {
      if (empty.empty() || empty.back().begin != end) empty.push_back({end, 0});
      empty.back() = {begin, empty.back().bytes + extent.bytes};
      chunks -= std::min(chunks, extent.bytes / arena.chunk());
    }
    // All extents from that of the block's beginning on are used.
    end = used ? std::min(begin, arena.ExtentAt(std::max(below->begin, range_.begin)).begin) : begin;
  }
  return empty;
}

}  // namespace hotpack
