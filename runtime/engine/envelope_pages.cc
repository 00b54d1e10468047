// PageManager: the zone of the followed envelope, taken and retired, and pages for its places.
#include <utility>
#include <vector>

#include "runtime/engine/page_manager.h"
#include "runtime/engine/page_scope.h"

namespace hotpack {

bool PageManager::TakeEnvelopeZone(uint64_t bytes, const std::vector<Fragment>& fragments) {
  if (!fragments_.HavePages(fragments) || !TakeAddresses(bytes)) return false;
  envelope_.Open(zone_, {base_, arena_.bytes()});
  ready_.Open(zone_, arena_.chunk());
  envelope_iterations_ = 0;
  TakeFragments(fragments);
  EndWait();
  arena_.NewEpoch();
  return true;
}

void PageManager::RetireEnvelopeZone() {
  if (!envelope_.open()) return;
  const std::vector<AddressRange> in_zone = envelope_.Live(true), outside = envelope_.Live(false);
  envelope_.Close();
  blocks_->CloseZone();
  RetireZone(in_zone, outside);
}

PageManager::PlaceArea PageManager::AreaOf(DeviceAddress planned) const {
  const AddressRange place{planned, kBlockUnit};
  if (InZone(place)) return {zone_.begin + zone_.bytes, true};
  const AddressRange fragment = fragments_.Around(place);
  return {fragment.begin + fragment.bytes, false};
}

bool PageManager::BecomesReady(const AddressRange& range) {
  if (!HasPages(range)) return false;
  ready_.Set(range, true);
  return true;
}

PageManager::PlaceStatus PageManager::PlaceInEnvelope(EngineLock& lock, DeviceAddress address, uint64_t bytes,
                                                      const GrowthPolicy& policy, ZoneBlock* below) {
  const AddressRange place{address, bytes};
  if (address % arena_.AlignmentOf(bytes) != 0 || !IsPlanned(place)) return PlaceStatus::kInUse;
  if (!envelope_.Claim(address, bytes, below)) return PlaceStatus::kInUse;
  // While pages change, those of the zone may be on their way to another place.
  if (HasPages(place) && !(page_work_ && InZone(place))) return PlaceStatus::kPlaced;
  ++mapping_entries_;
  bool ok = false;
  {
    PageScope scope(this, lock);
    PageWork work = wait_.BoundedWork();
    const uint64_t create_up_to = CreateUpTo(policy);
    ok = HasPages(place) || (InZone(place) && !arena_.BeginMap(address, bytes, zone_, create_up_to, &work));
    if (!ok && InZone(place)) {
      const uint64_t shortfall = arena_.Shortfall(work, create_up_to);
      const std::vector<AddressRange> empty = EmptyInZone(shortfall);
      if (Chunks(empty) < shortfall) {  // best fit may find room without new pages
        arena_.CancelGrowth(&work);
      } else {
        TakeFromZone(empty, &work);
        ok = scope.Run(&work);
      }
    }
  }
  --mapping_entries_;
  if (ok) return PlaceStatus::kPlaced;
  envelope_.Release(address);
  return PlaceStatus::kNoPages;
}

// A block without a place may lie between the places in use, where at most `most_missing` chunks have no pages. It
// displaces a later request, if it still lives by then.
bool PageManager::PlaceInGap(PageScope& scope, uint64_t bytes, uint64_t most_missing, uint64_t create_up_to,
                             DeviceAddress* address) {
  if (!envelope_.open() || mapping_entries_ != 0) return false;
  const uint64_t alignment = arena_.AlignmentOf(bytes);
  ZoneGap gap = envelope_.FindGap(arena_, zone_, bytes, alignment);
  for (const AddressRange& range : fragments_.ranges()) gap = envelope_.FindGap(arena_, range, bytes, alignment, gap);
  if (gap.place == 0 || gap.missing > most_missing || !envelope_.Claim(gap.place, bytes)) return false;
  *address = gap.place;
  if (gap.missing == 0 || MapPlace(scope, {gap.place, bytes}, zone_, create_up_to)) return true;
  envelope_.Release(gap.place);
  return false;
}

void PageManager::EndEnvelopeIteration(EngineLock& lock) {
  ++envelope_iterations_;
  if ((envelope_iterations_ & (envelope_iterations_ - 1)) != 0) return;
  PageScope scope(this, lock);
  if (!envelope_.open()) return;
  PageWork trim = wait_.BoundedWork();
  if (arena_.BeginTrim(&trim)) scope.Run(&trim);
  arena_.NewEpoch();
}

}  // namespace hotpack
