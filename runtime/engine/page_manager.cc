#include "runtime/engine/page_manager.h"

#include <algorithm>

#include "runtime/engine/page_scope.h"

namespace hotpack {

// --- how much may be held -------------------------------------------------------------------------------------------

// Returns the largest load so far, a fraction of it, and an allowance for partly used chunks: bytes.
uint64_t PageManager::LiveWithMargin(uint64_t divisor) const {
  uint64_t live = std::max(blocks_->live_peak_units(), blocks_->live_units()) * kBlockUnit;
  return live + live / divisor + 2 * arena_.chunk();
}

// Up to this many held bytes, new pages are created rather than moved: moving means waiting for the device. (If several
// scripts take turns, blocks displaced at a change recur again and again.) The margin is a 64th. Below 2 GiB it is up
// to a 32nd: few pages, which are not worth a wait. Free memory in partly used large handles counts as part of it. So
// large handles do not make a job hold more.
uint64_t PageManager::CreateUpTo(const GrowthPolicy& policy) const {
  constexpr uint64_t kSmallMargin = 32u << 20;
  const bool strict = envelope_.open() || (policy.takes_turns && policy.steady);
  const uint64_t live = LiveWithMargin(UINT64_MAX);
  const uint64_t most = strict ? live : std::min(LiveWithMargin(32), live + kSmallMargin);
  const uint64_t up_to = std::max(LiveWithMargin(64), most);
  const uint64_t margin = up_to - live;
  return up_to - std::min(margin, arena_.Stuck());
}

uint64_t PageManager::CreateForEntryUpTo(const GrowthPolicy& policy) const {
  if (policy.takes_turns) return CreateUpTo(policy);
  return LiveWithMargin(policy.diverged ? 32 : kEntryMargin);
}

// Growth for `bytes` may reach beyond the block up to this many held bytes.
uint64_t PageManager::AheadUpTo(uint64_t bytes) const {
  const uint64_t live = std::max(blocks_->live_peak_units(), blocks_->live_units()) * kBlockUnit + bytes;
  return live + live / 256 + 2 * arena_.chunk();
}

void PageManager::NoteReserved() {
  reserved_peak_ = std::max(reserved_peak_, arena_.held());
  held_peak_ = std::max(held_peak_, arena_.held());
  reserved_steady_ = std::max(reserved_steady_, arena_.held());
}

void PageManager::AddTo(hotpack_stats* stats, bool steady) const {
  stats->reserved_peak = reserved_peak_;
  wait_.AddTo(stats);
  if (steady) stats->reserved_steady = reserved_steady_;
  if (memory_->Fixed()) return;
  stats->handles_created = arena_.calls().create;
  stats->handles_mapped = arena_.calls().map;
  stats->access_calls = arena_.calls().set_access;
}

// --- memory for blocks ----------------------------------------------------------------------------------------------

MemoryStatus PageManager::Open(EngineLock& lock) {
  constexpr uint64_t kTimes = 8;  // addresses for the dynamic zone and several planned ones
  PageScope scope(this, lock);
  if (base_ != 0) return MemoryStatus::kOk;
  if (*abandoned_) return MemoryStatus::kDeinitialized;
  MemoryStatus status = scope.Unlocked([&] { return arena_.Open(kTimes); });
  if (status == MemoryStatus::kOk) base_ = arena_.base();
  return status;
}

PageManager::GrowStatus PageManager::Grow(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy,
                                          bool zone_given, bool* foreign, DeviceAddress* address) {
  constexpr uint64_t kAskFrom = 32u << 20;  // missing bytes
  const uint64_t bytes = request.units * kBlockUnit;
  if (bytes > memory_->TotalBytes()) return GrowStatus::kOutOfMemory;  // checked before all possible pages are created
  PageScope scope(this, lock);
  if (arena_.TryAllocate(bytes, address)) return GrowStatus::kOk;  // another thread released memory meanwhile
  bool may_take_own = true;
  // First new pages within reason, then free ones from elsewhere, finally those of the script's zone.
  for (int attempt = zone_given ? 2 : 0; attempt < 3; ++attempt) {
    if (attempt == 2 && !zone_given) {
      if (follower_->active() && mapping_entries_ == 0) return GrowStatus::kNeedsZone;
      if (!PlaceInGap(scope, bytes, UINT64_MAX, /*create_up_to=*/0, address)) break;
      *foreign = true;
      return GrowStatus::kOk;
    }
    PageWork work = attempt == 0 ? wait_.BoundedWork() : PageWork();
    work.new_instead = true;
    uint64_t create_up_to = attempt == 0 ? std::max(CreateUpTo(policy), policy.expected_peak) : 0;
    const uint64_t ahead_up_to = attempt == 0 ? AheadUpTo(bytes) : 0;
    // Without addresses: the zone may provide some.
    if (!arena_.BeginGrowth(bytes, create_up_to, ahead_up_to, &work)) continue;
    // To find out by growing would create all pages that the device has.
    const bool ask = attempt == 0 && arena_.Shortfall(work, arena_.reserved()) * arena_.chunk() >= kAskFrom;
    if (ask && CannotFit(scope, request)) {
      arena_.CancelGrowth(&work);
      return GrowStatus::kOutOfMemory;
    }
    std::vector<AddressRange> empty = EmptyInZone(arena_.Shortfall(work, create_up_to));
    const bool strict = envelope_.open() || (policy.takes_turns && policy.steady);
    const uint64_t most = strict ? CreateUpTo(policy) : LiveWithMargin(16);
    const uint64_t too_many = arena_.Shortfall(work, most);
    // Use the zone rather than hold much more than is live. (Small blocks fill a chunk of their own; spread over the
    // zone, they would keep large blocks out.)
    if (too_many > 0 && !work.small && envelope_.open()) {
      // A gap may need fewer pages than the place where the arena would grow.
      const uint64_t targets = work.TargetBytes() / arena_.chunk();
      arena_.CancelGrowth(&work);
      if (PlaceInGap(scope, bytes, targets - 1, most, address)) {
        *foreign = true;
        return GrowStatus::kOk;
      }
      work = attempt == 0 ? wait_.BoundedWork() : PageWork();
      work.new_instead = true;
      if (!arena_.BeginGrowth(bytes, create_up_to, ahead_up_to, &work)) continue;
      empty = EmptyInZone(arena_.Shortfall(work, create_up_to));  // again: pages may have moved
    }
    if (too_many > 0 && !work.small && PlaceInZone(request, policy, too_many > Chunks(empty), address)) {
      arena_.CancelGrowth(&work);
      *foreign = true;
      return GrowStatus::kOk;
    }
    if (attempt == 0 && may_take_own && MissingChunksAtOwnPlace(request) <= work.TargetBytes() / arena_.chunk()) {
      arena_.CancelGrowth(&work);
      if (!MapOwnPlace(scope, request, create_up_to, address)) {
        may_take_own = false;
        --attempt;
        continue;
      }
      *foreign = true;
      return GrowStatus::kOk;
    }
    TakeFromZone(empty, &work);
    if (scope.Run(&work)) {
      if (work.small) {
        arena_.TryAllocate(bytes, address);
      } else {
        *address = work.block.begin;
      }
      return GrowStatus::kOk;
    }
    if (work.status == MemoryStatus::kDeinitialized) return GrowStatus::kGone;
    if (work.status == MemoryStatus::kOutOfMemory && CannotFit(scope, request))
      break;  // the script's zone does not help
  }
  // Give back pages created in vain: other processes may need them.
  PageWork rest = wait_.BoundedWork();
  if (arena_.BeginTrim(&rest)) scope.Run(&rest);
  return GrowStatus::kOutOfMemory;
}

// Returns true if the device cannot hold what is live and the request, whatever is moved. Asks the device.
bool PageManager::CannotFit(PageScope& scope, const EngineRequest& request) {
  if (memory_->Fixed()) return false;
  const uint64_t available = scope.Unlocked([this] { return memory_->AvailableBytes(); });
  const uint64_t needed = (blocks_->served_units() + request.units) * kBlockUnit;
  return available < UINT64_MAX - arena_.held() && needed > arena_.held() + available;
}

void PageManager::Free(DeviceAddress address, uint64_t bytes, bool foreign) {
  if (!foreign) return arena_.Free(address, bytes);
  if (envelope_.open()) {
    envelope_.Release(address);
  } else {
    follower_->RemoveForeign(OffsetOf(address), OffsetOf(address + bytes));
  }
  FreeOutside({address, bytes});
}

// A displaced block may take the script's own place after all, if that needs no more new pages than another place: its
// neighbours there will need these pages too. Returns the number of chunks; UINT64_MAX if the place is not free.
// O(blocks of the script).
uint64_t PageManager::MissingChunksAtOwnPlace(const EngineRequest& request) const {
  if (!request.displaced || request.entry == kNone || !follower_->active() || mapping_entries_ != 0) return UINT64_MAX;
  const uint32_t begin = follower_->Offset(request.entry);
  if (begin == kNone || follower_->PlannedUnits(request.entry) < request.units) return UINT64_MAX;
  const AddressRange place{AddressOf(begin), request.units * kBlockUnit};
  if (!InZone(place)) return UINT64_MAX;
  for (const Follower::Range& live : follower_->LiveRanges()) {
    if (live.begin < begin + request.units && live.end > begin) return UINT64_MAX;
  }
  return arena_.MissingChunks(place.begin, place.begin + place.bytes);
}

// Returns false if there are no pages.
bool PageManager::MapOwnPlace(PageScope& scope, const EngineRequest& request, uint64_t create_up_to,
                              DeviceAddress* address) {
  const uint32_t begin = follower_->Offset(request.entry);
  *address = AddressOf(begin);
  follower_->AddForeign(begin, begin + request.units);  // at once: other threads may run while pages are made
  const bool ok = MapPlace(scope, {*address, request.units * kBlockUnit}, ZoneInUse(), create_up_to);
  if (!ok) follower_->RemoveForeign(begin, begin + request.units);
  return ok;
}

// Maps pages, also those of other parts of the zone. Returns false if there are none.
bool PageManager::MapPlace(PageScope& scope, const AddressRange& place, const AddressRange& within,
                           uint64_t create_up_to) {
  PageWork work = wait_.BoundedWork();
  if (!arena_.BeginMap(place.begin, place.bytes, within, create_up_to, &work)) return true;
  TakeFromZone(EmptyInZone(arena_.Shortfall(work, create_up_to)), &work);
  return scope.Run(&work);
}

// If memory is short elsewhere, a block may lie in the planned zone: preferably where the script serves no request
// soon, or else `anywhere`. Requests that the script serves there later are displaced if the block still lives.
bool PageManager::PlaceInZone(const EngineRequest& request, const GrowthPolicy& policy, bool anywhere,
                              DeviceAddress* address) {
  if (!follower_->active() || mapping_entries_ != 0 || request.ordinal == kUnmonitored) return false;
  if (request.entry == kNone && policy.first_iteration) return false;  // it may be permanent
  // The search is linear in the script: only a bounded number of entries for each request so far.
  constexpr uint64_t kEntriesPerRequest = 512, kSearches = 16;
  const uint32_t size = follower_->script().size();
  if (zone_searches_ * size > policy.requests_followed * kEntriesPerRequest / 4 + kSearches * size) return false;
  ++zone_searches_;
  const uint32_t age = request.entry != kNone ? std::min(size, follower_->ExpectedAge(request.entry)) : size / 4;
  return ClaimIdleRange(request.units, age, address) || ClaimIdleRange(request.units, size / 16, address) ||
         (anywhere && ClaimIdleRange(request.units, 0, address));
}

bool PageManager::PlaceInIdleRange(const EngineRequest& request, DeviceAddress* address) {
  if (!request.displaced || request.entry == kNone || !follower_->active()) return false;
  if (follower_->ExpectedAge(request.entry) == 0) return false;
  if (page_work_) return false;  // pages of the zone may be in transit to another place
  return ClaimIdleRange(request.units, follower_->ExpectedAge(request.entry), address);
}

// Finds a place in the zone, with pages, where no block lives and no entry comes during the next `age` requests.
bool PageManager::ClaimIdleRange(uint32_t units, uint32_t age, DeviceAddress* address) {
  const auto alignment = static_cast<uint32_t>(arena_.AlignmentOf(units * kBlockUnit) / kBlockUnit);
  const auto height = static_cast<uint32_t>(zone_used_ / kBlockUnit);
  const uint32_t begin = follower_->FindIdleRange(units, age, height, WithoutPages(), alignment);
  if (begin == kNone) return false;
  follower_->AddForeign(begin, begin + units);
  *address = AddressOf(begin);
  return true;
}

// Returns runs of chunks of the zone without pages, in units.
std::vector<Follower::Range> PageManager::WithoutPages() const {
  std::vector<Follower::Range> runs;
  const uint64_t chunk = arena_.chunk();
  for (DeviceAddress begin = zone_.begin; begin < zone_.begin + zone_.bytes; begin += chunk) {
    if (arena_.Mapped(begin, chunk)) continue;
    if (runs.empty() || runs.back().end != OffsetOf(begin)) runs.push_back({OffsetOf(begin), OffsetOf(begin), kNone});
    runs.back().end = OffsetOf(begin + chunk);
  }
  return runs;
}

bool PageManager::MapEntry(EngineLock& lock, uint32_t entry, const GrowthPolicy& policy) {
  ++mapping_entries_;
  bool ok = false;
  {
    PageScope scope(this, lock);
    if (map_state_ == MapState::kFresh) MapFromFreePages(scope, policy);
    AddressRange range = EntryRange(entry);
    ok = HasPages(range);
    for (int attempt = 0; attempt < 2 && !ok && InZone(range); ++attempt) {
      PageWork work = wait_.BoundedWork();
      uint64_t create_up_to = attempt == 0 ? CreateForEntryUpTo(policy) : 0;
      ok = !arena_.BeginMap(range.begin, range.bytes, ZoneInUse(), create_up_to, &work);
      if (ok) break;
      if (policy.may_wait && arena_.Shortfall(work, create_up_to) > 0) {
        arena_.CancelGrowth(&work);
        break;
      }
      ok = scope.Run(&work);
    }
  }
  --mapping_entries_;
  if (ok) {
    follower_->SetMapped(entry);
  } else {
    follower_->Release(entry);
  }
  return ok;
}

// --- the followed script's zone and fragments -----------------------------------------------------------------------

AddressRange PageManager::EntryRange(uint32_t entry) const {
  return {AddressOf(follower_->Offset(entry)), follower_->PlannedUnits(entry) * kBlockUnit};
}

// Returns whether the range lies in the zone or in one fragment.
bool PageManager::IsPlanned(const AddressRange& range) const {
  return InZone(range) ? range.begin + range.bytes <= zone_.begin + zone_.bytes : fragments_.Contain(range);
}

// Returns whether a place may be handed out. The zone is mapped chunk by chunk. A fragment has all its pages if it is
// held at all.
bool PageManager::HasPages(const AddressRange& range) const {
  return InZone(range) ? arena_.Mapped(range.begin, range.bytes) : fragments_.Contain(range);
}

void PageManager::MarkMappedEntries() {
  for (uint32_t i = 0; i < follower_->script().size() && follower_->UnmappedEntries() > 0; ++i) {
    if (follower_->Offset(i) == kNone) continue;
    if (HasPages(EntryRange(i))) follower_->SetMapped(i);
  }
}

// Returns the chunks of the zone that the followed script uses.
AddressRange PageManager::ZoneInUse() const {
  const uint64_t chunk = arena_.chunk();
  return {zone_.begin, (follower_->script().height_bytes + chunk - 1) & ~(chunk - 1)};
}

// Maps the zone with the pages that are available without holding more than is live.
void PageManager::MapFromFreePages(PageScope& scope, const GrowthPolicy& policy) {
  if (map_state_ == MapState::kFresh) map_state_ = MapState::kPartial;
  PageWork work = wait_.BoundedWork();
  if (arena_.BeginMapAvailable(ZoneInUse(), CreateUpTo(policy), &work)) scope.Run(&work);
  MarkMappedEntries();
}

void PageManager::ReclaimAddresses(EngineLock& lock) {
  PageScope scope(this, lock);
  PageWork work = wait_.BoundedWork();
  if (arena_.BeginClear(&work)) scope.Run(&work);
}

uint64_t PageManager::Chunks(const std::vector<AddressRange>& ranges) const {
  uint64_t bytes = 0;
  for (const AddressRange& range : ranges) bytes += range.bytes;
  return bytes / arena_.chunk();
}

// Returns extents of the planned zone that have no live block, from the top down: `chunks` of them or a part of an
// extent more. Adjacent ones are joined. O(chunks of the zone + blocks of the script).
std::vector<AddressRange> PageManager::EmptyInZone(uint64_t chunks) const {
  std::vector<AddressRange> empty;
  if (envelope_.open()) return envelope_.EmptyExtents(arena_, chunks);
  if (chunks == 0 || !follower_->active()) return empty;
  const std::vector<Follower::Range> live = follower_->LiveRanges();  // ascending, disjoint
  auto below = live.rbegin();
  const uint64_t chunk = arena_.chunk();
  for (DeviceAddress end = zone_.begin + zone_.bytes, begin = end; end > zone_.begin && chunks > 0; end = begin) {
    const AddressRange extent = arena_.ExtentAt(end - 1);
    begin = extent.begin;
    while (below != live.rend() && below->begin >= OffsetOf(end)) ++below;
    const bool used = below != live.rend() && below->end > OffsetOf(begin);
    if (used || !arena_.Mapped(begin, chunk)) continue;
    if (empty.empty() || empty.back().begin != end) empty.push_back({end, 0});
    empty.back() = {begin, empty.back().bytes + extent.bytes};
    chunks -= std::min(chunks, extent.bytes / chunk);
  }
  return empty;
}

// Avoids a second pool in a diverging iteration: pages of the planned zone without live blocks serve elsewhere. Entries
// that need them again map them on request. O(blocks of the script) for each of `empty`.
void PageManager::TakeFromZone(const std::vector<AddressRange>& empty, PageWork* work) {
  for (const AddressRange& range : empty) {
    if (!envelope_.open()) follower_->SetUnmapped(OffsetOf(range.begin), OffsetOf(range.begin + range.bytes));
    work->take_zone.push_back(range);
    if (envelope_.open()) ready_.Set(range, false);
    if (map_state_ == MapState::kFull) map_state_ = MapState::kPartial;
  }
}

// --- giving back ----------------------------------------------------------------------------------------------------

bool PageManager::NeedsHousekeeping() const {
  return !fully_mapped() || growth_ == Growth::kEarlier || ZoneIsTooHigh();
}

bool PageManager::ZoneIsTooHigh() const {
  constexpr int kTries = 4;
  return follower_->active() && zone_mapped_ > ZoneInUse().bytes && zone_lowerings_ < kTries;
}

// A zone that was taken back has pages above the script's height. They go to the pool, unless blocks lie there.
// O(chunks of the zone + blocks of the script).
void PageManager::LowerZone(PageScope& scope, const GrowthPolicy& policy) {
  ++zone_lowerings_;
  if (policy.takes_turns) return;                                                     // a higher script may come back
  const AddressRange highest = arena_.ExtentAt(zone_.begin + ZoneInUse().bytes - 1);  // that the script uses
  const DeviceAddress top = highest.begin + highest.bytes;
  PageWork work = wait_.BoundedWork();
  std::vector<AddressRange> above;
  for (const AddressRange& range : EmptyInZone(UINT64_MAX)) {
    const DeviceAddress end = range.begin + range.bytes, begin = std::max(range.begin, top);
    if (begin < end) above.push_back({begin, end - begin});
  }
  TakeFromZone(above, &work);
  if (!work.take_zone.empty()) scope.Run(&work);
  if (arena_.MappedEnd(top, zone_.begin + zone_.bytes) <= top) zone_mapped_ = 0;
}

// Something that recurs, such as an evaluation, takes a few pages each time. To give them back each time costs a wait
// for the device, and new pages the next time.
bool PageManager::KeepsIdle(const PageWork& trim) {
  constexpr uint64_t kFew = 256, kTrims = 2;  // 1/256 of the memory held
  uint64_t bytes = Chunks(trim.take) * arena_.chunk();
  for (const Extent& extent : trim.extents) bytes += extent.bytes;
  return bytes <= arena_.held() / kFew && ++small_trims_ > kTrims;
}

void PageManager::Housekeep(EngineLock& lock, const GrowthPolicy& policy) {
  constexpr size_t kSpareNodes = 64;
  PageScope scope(this, lock);
  if (!follower_->active()) return;
  const uint64_t calls = arena_.driver_calls();
  if (follower_->UnmappedEntries() > 0) MapFromFreePages(scope, policy);
  if (ZoneIsTooHigh()) LowerZone(scope, policy);
  PageWork trim = wait_.BoundedWork();
  if (arena_.BeginTrim(&trim)) {
    if (policy.steady && KeepsIdle(trim)) {
      arena_.CancelGrowth(&trim);
    } else {
      scope.Run(&trim);
    }
  }
  // From now on releasing a block outside the script must not allocate from the heap.
  arena_.ReserveRanges(blocks_->size() + kSpareNodes);
  blocks_->Reserve(kSpareNodes);
  if (follower_->UnmappedEntries() == 0) {
    map_state_ = MapState::kFull;
  } else if (fully_mapped()) {
    map_state_ = MapState::kPartial;
  }
  growth_ = !fully_mapped() && arena_.driver_calls() != calls ? Growth::kEarlier : Growth::kUnchanged;
}

void PageManager::EndIteration() {
  if (growth_ == Growth::kNow) growth_ = Growth::kEarlier;
  arena_.NewEpoch();
}

// Two steps, so that after a failing call every page is in the pool or at its old place. First the pages of free chunks
// go to the pool (after waiting for the device), then the pool goes to the device.
uint64_t PageManager::GiveBack(EngineLock& lock, uint64_t wanted) {
  PageScope scope(this, lock);
  const uint64_t before = arena_.held();
  uint64_t more = wanted - std::min(wanted, arena_.pooled());
  PageWork work;
  if (more > 0) arena_.BeginClear(&work, more);
  more -= std::min(more, Chunks(work.take) * arena_.chunk());
  TakeFromZone(EmptyInZone(more / arena_.chunk() + (more % arena_.chunk() != 0 ? 1 : 0)), &work);
  if (!work.take.empty() || !work.take_zone.empty()) scope.Run(&work);
  PageWork rest;
  if (arena_.BeginRelease(&rest)) scope.Run(&rest);
  return before - std::min(before, arena_.held());
}

uint64_t PageManager::Returnable() const {
  return arena_.Returnable() + Chunks(EmptyInZone(UINT64_MAX)) * arena_.chunk();
}

void PageManager::EndWait() {
  longest_wait_ = std::max(longest_wait_, waited_requests_);
  waited_requests_ = idle_requests_ = 0;
}

// At most one trim in this many requests, so its cost is a small part of theirs. After a wait that has ended the job
// needs its pages again. So waits that recur, such as evaluations, keep them: only one twice as long gives them back.
void PageManager::TrimIdle(EngineLock& lock, bool waiting, uint64_t script_size) {
  constexpr uint64_t kLong = 1 << 14;  // requests
  if (!waiting) return EndWait();
  ++waited_requests_;
  if (idle_requests_++ == 0) arena_.NewEpoch();
  const uint64_t patience = std::max({kLong, 4 * script_size, 2 * longest_wait_});
  if (idle_requests_ < patience || memory_->Fixed()) return;
  idle_requests_ = 0;
  PageScope scope(this, lock);
  PageWork zone = wait_.BoundedWork();
  TakeFromZone(EmptyInZone(UINT64_MAX), &zone);
  if (!zone.take_zone.empty()) scope.Run(&zone);
  PageWork old = wait_.BoundedWork();
  if (arena_.BeginTrim(&old)) scope.Run(&old);
}

}  // namespace hotpack
