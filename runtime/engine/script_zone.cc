// PageManager: the zone and the fragments of the followed script, taken, taken back and retired.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/engine/page_manager.h"

namespace hotpack {

bool PageManager::TakeZone(const Script& script) {
  zone_used_ = zone_mapped_ = 0;
  return TakeAddresses(script.height_bytes);
}

// Takes half as many addresses again as needed, so that a growing plan can stay in place. If addresses are scarce,
// takes only what is needed.
bool PageManager::TakeAddresses(uint64_t bytes) {
  last_zone_ = {};
  const bool wide = !memory_->Fixed() && arena_.TakeZone(bytes + bytes / 2, &zone_);
  return wide || arena_.TakeZone(bytes, &zone_);
}

// Fragments of the script may lie next to blocks that stay in that zone.
bool PageManager::Fits(const Script& script, const AddressRange& zone) {
  return script.height_bytes <= zone.bytes &&
         std::none_of(script.fragments.begin(), script.fragments.end(), [&](const Fragment& fragment) {
           return fragment.address < zone.begin + zone.bytes &&
                  zone.begin < fragment.address + fragment.units * kBlockUnit;
         });
}

bool PageManager::RetakeZone(const Script& script, uint64_t count) {
  // Parts of the script's height. Blocks of the current iteration soon go. Older ones would displace requests for long.
  constexpr uint64_t kUsedShare = 2, kOldShare = 64;
  if (last_zone_.bytes == 0 || !Fits(script, last_zone_)) return false;
  uint64_t used = 0, old = 0;  // a block across an end counts whole, so the zone's free memory and this are too much
  blocks_->ForEachIn(last_zone_.begin, last_zone_.begin + last_zone_.bytes,
                     [&](DeviceAddress, const DynamicBlock& block) {
                       used += block.bytes;
                       if (block.LivesLongerThan(script.size(), count)) old += block.bytes;
                     });
  if (used > script.height_bytes / kUsedShare || old > script.height_bytes / kOldShare) return false;
  if (!arena_.RetakeZone(last_zone_, used)) return false;
  zone_ = std::exchange(last_zone_, AddressRange{});
  zone_used_ = 0;
  zone_mapped_ = arena_.MappedEnd(zone_.begin, zone_.begin + zone_.bytes) - zone_.begin;
  retaken_ = true;
  return true;
}

bool PageManager::TryAllocateInLastZone(const Script& script, uint32_t offset, uint32_t units, DeviceAddress* address) {
  if (last_zone_.bytes == 0 || !Fits(script, last_zone_)) return false;
  const DeviceAddress at = last_zone_.begin + offset * kBlockUnit;
  if (!arena_.TryAllocateAt(at, units * kBlockUnit)) return false;
  *address = at;
  return true;
}

bool PageManager::CanMapNow(const Script& script) const {
  if (memory_->Fixed() || memory_->MayWait()) return true;
  const uint64_t in_zone = (script.height_bytes + arena_.chunk() - 1) / arena_.chunk() * arena_.chunk();
  const AddressRange& zone = zone_.bytes != 0 ? zone_ : last_zone_;
  const bool stays = zone.bytes != 0 && Fits(script, zone);
  const uint64_t missing = stays ? arena_.MissingChunks(zone.begin, zone.begin + in_zone) * arena_.chunk() : in_zone;
  return arena_.held() + missing <= LiveWithMargin(kEntryMargin) + std::min(missing, arena_.pooled());
}

void PageManager::BeginScript() {
  zone_used_ = std::max(zone_used_, follower_->script().height_bytes);
  if (fragments_.ranges().empty()) TakeFragments(follower_->script().fragments);
  if (std::exchange(retaken_, false)) MakeForeign(zone_);
  MarkMappedEntries();
  map_state_ = follower_->UnmappedEntries() == 0 ? MapState::kFull : MapState::kFresh;
  zone_searches_ = 0;
  zone_lowerings_ = 0;
  EndWait();
  arena_.NewEpoch();  // free chunks that the next iteration does not use are given back at its end
}

// Reserves the fragments. Blocks that still lie there are waited for.
void PageManager::TakeFragments(const std::vector<Fragment>& fragments) {
  fragments_.Take(fragments);
  for (const AddressRange& range : fragments_.ranges()) MakeForeign(range);
}

// Blocks that lie there are in the way of the script or envelope until their release.
void PageManager::MakeForeign(const AddressRange& range) {
  std::vector<AddressRange> met;
  blocks_->ForEachIn(range.begin, range.begin + range.bytes, [&](DeviceAddress address, DynamicBlock& block) {
    if (block.foreign) return;
    block.foreign = true;
    met.push_back({address, block.bytes});
  });
  for (const AddressRange& block : met) AddForeign(block);
}

// A block lies where the followed script or envelope has places.
void PageManager::AddForeign(const AddressRange& block) {
  if (envelope_.open()) {
    blocks_->MoveToZone(block.begin);
  } else {
    follower_->AddForeign(OffsetOf(block.begin), OffsetOf(block.begin + block.bytes));
  }
}

void PageManager::RetireZone(const std::vector<AddressRange>& in_zone, const std::vector<AddressRange>& in_fragments) {
  arena_.RetireZone(zone_, in_zone);
  last_zone_ = std::exchange(zone_, AddressRange{});
  fragments_.Free(in_fragments);
  map_state_ = MapState::kPartial;
}

// Frees the parts of `range` that lie neither in the zone nor in a fragment of the script.
void PageManager::FreeOutside(const AddressRange& range) {
  if (!InZone(range)) fragments_.FreeOutside(range);  // blocks never cross the zone's ends
}

}  // namespace hotpack
