// The engine's changes of pages: opening the arena, growth, mapping a script's zone, giving back.
#include <algorithm>

#include "runtime/engine_impl.h"
#include "runtime/engine_page_scope.h"
#include "runtime/node_reserve.h"

namespace hotpack {

// New pages are created rather than moved as long as this many bytes are held: moving means waiting for the device.
// (Where several scripts are followed by turns, what is displaced at a change comes again and again.)
uint64_t Engine::Impl::CreateUpTo() const { return LiveAndPart(switches_ > 0 && steady_ ? 64 : 32); }

// The largest load so far and a part of it, with something for the chunks' ends: bytes.
uint64_t Engine::Impl::LiveAndPart(uint64_t divisor) const {
  uint64_t live = std::max(live_peak_units_, live_units_) * kUnitBytes;
  return live + live / divisor + 2 * arena_.chunk();
}

void Engine::Impl::NoteReserved() {
  reserved_peak_ = std::max(reserved_peak_, arena_.held());
  held_peak_ = std::max(held_peak_, arena_.held());
  if (steady_) reserved_steady_ = std::max(reserved_steady_, arena_.held());
}

// A place in managed memory, as long as no plan is in force.
bool Engine::Impl::Spill(Lock& lock, uint64_t bytes, DeviceAddress* address) {
  return spill_.Allocate(lock, bytes, [this] { return !follower_.active() || !steady_; }, address);
}

EngineStatus Engine::Impl::OpenArena(Lock& lock) {
  constexpr uint64_t kTimes = 8;  // addresses for the dynamic zone and several planned ones
  PageScope scope(this, lock);
  if (base_ != 0) return EngineStatus::kOk;
  if (abandoned()) return EngineStatus::kPassThrough;
  MemoryStatus status = scope.Unlocked([&] { return arena_.Open(kTimes); });
  if (status != MemoryStatus::kOk) {
    if (status != MemoryStatus::kDeinitialized) broken_ = true;
    return EngineStatus::kPassThrough;
  }
  base_ = arena_.base();
  owned_bytes_.store(arena_.bytes(), std::memory_order_relaxed);
  (guards_ ? guarded_base_ : owned_base_).store(arena_.base(), std::memory_order_release);
  return EngineStatus::kOk;
}

EngineStatus Engine::Impl::Grow(Lock& lock, const Want& want, bool* foreign, DeviceAddress* address) {
  uint64_t bytes = want.units * kUnitBytes;
  if (bytes > memory_->TotalBytes()) return EngineStatus::kOutOfMemory;  // before all pages there are have been made
  PageScope scope(this, lock);
  if (arena_.TryAllocate(bytes, address)) return EngineStatus::kOk;  // something was released meanwhile
  // First new pages within reason, then free ones from elsewhere, at last those of the script's zone.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (attempt == 2) {
      if (!follower_.active() || mapping_entries_ != 0) break;
      std::shared_ptr<const Script> script = current_;
      RetireScript();
      WaitFor(script);
      if (arena_.TryAllocate(bytes, address)) return EngineStatus::kOk;
    }
    PageWork work;
    uint64_t create_up_to = attempt == 0 ? std::max(CreateUpTo(), ExpectedPeak()) : 0;
    if (!arena_.BeginGrowth(bytes, create_up_to, &work)) continue;  // no addresses: the zone may give some
    const std::vector<AddressRange> empty = EmptyInZone(arena_.Shortfall(work, create_up_to));
    const uint64_t most = switches_ > 0 && steady_ ? CreateUpTo() : LiveAndPart(16);
    const uint64_t too_many = arena_.Shortfall(work, most);
    // Rather than hold much more than is live. (Small blocks fill a chunk of their own; all over the zone they would keep
    // large ones out.)
    if (too_many > 0 && !work.small && PlaceInZone(want, too_many > Chunks(empty), address)) {
      arena_.CancelGrowth(&work);
      *foreign = true;
      return EngineStatus::kOk;
    }
    if (attempt == 0 && OwnPlaceCosts(want) <= work.targets.size()) {
      arena_.CancelGrowth(&work);
      if (!MapOwnPlace(scope, want, create_up_to, address)) continue;
      *foreign = true;
      return EngineStatus::kOk;
    }
    TakeFromZone(empty, &work);
    if (scope.Run(&work)) {
      if (work.small) {
        arena_.TryAllocate(bytes, address);
      } else {
        *address = work.block.begin;
      }
      return EngineStatus::kOk;
    }
    if (work.status == MemoryStatus::kDeinitialized) return EngineStatus::kPassThrough;
  }
  // What was made in vain is given back: others may need it.
  PageWork rest;
  if (arena_.BeginTrim(&rest)) scope.Run(&rest);
  return EngineStatus::kOutOfMemory;
}

// A displaced block may have the place after all that the script has for it, if that takes no more new pages than another
// one: there, its neighbours will need them too. How many chunks; UINT64_MAX: it is not free. O(blocks of the script).
uint64_t Engine::Impl::OwnPlaceCosts(const Want& want) const {
  if (!want.displaced || want.entry == kNone || !follower_.active() || mapping_entries_ != 0) return UINT64_MAX;
  const uint32_t begin = follower_.Offset(want.entry);
  if (begin == kNone || follower_.PlannedUnits(want.entry) < want.units) return UINT64_MAX;
  const AddressRange place{AddressOf(begin), want.units * kUnitBytes};
  if (!InZone(place)) return UINT64_MAX;
  for (const Follower::Range& live : follower_.LiveRanges()) {
    if (live.begin < begin + want.units && live.end > begin) return UINT64_MAX;
  }
  return arena_.MissingChunks(place.begin, place.begin + place.bytes);
}

// False: there are no pages.
bool Engine::Impl::MapOwnPlace(PageScope& scope, const Want& want, uint64_t create_up_to, DeviceAddress* address) {
  const uint32_t begin = follower_.Offset(want.entry);
  *address = AddressOf(begin);
  follower_.AddForeign(begin, begin + want.units);  // at once: others may come in while pages are made
  PageWork work;
  bool ok = !arena_.BeginMap(*address, want.units * kUnitBytes, create_up_to, &work);
  if (!ok) {
    TakeFromZone(EmptyInZone(arena_.Shortfall(work, create_up_to)), &work);
    ok = scope.Run(&work);
  }
  if (!ok) follower_.RemoveForeign(begin, begin + want.units);
  return ok;
}

AddressRange Engine::Impl::EntryRange(uint32_t entry) const {
  return {AddressOf(follower_.Offset(entry)), follower_.PlannedUnits(entry) * kUnitBytes};
}

// Whether a place of the script may be handed out: its zone is mapped chunk by chunk; a hole has its pages, if it could
// be had at all.
bool Engine::Impl::HasPages(const AddressRange& range) const {
  if (InZone(range)) return arena_.Mapped(range.begin, range.bytes);
  auto it = std::upper_bound(holes_.begin(), holes_.end(), range.begin,
                             [](DeviceAddress begin, const AddressRange& hole) { return begin < hole.begin; });
  return it != holes_.begin() && range.begin < std::prev(it)->begin + std::prev(it)->bytes;
}

void Engine::Impl::MarkMappedEntries() {
  for (uint32_t i = 0; i < follower_.script().size() && follower_.UnmappedEntries() > 0; ++i) {
    if (follower_.Offset(i) == kNone) continue;
    if (HasPages(EntryRange(i))) follower_.SetMapped(i);
  }
}

uint64_t Engine::Impl::Chunks(const std::vector<AddressRange>& ranges) const {
  uint64_t bytes = 0;
  for (const AddressRange& range : ranges) bytes += range.bytes;
  return bytes / arena_.chunk();
}

// Chunks of the planned zone that have pages and in which nothing lives now, up to so many, from the top down; those side
// by side as one. O(chunks of the zone + blocks of the script).
std::vector<AddressRange> Engine::Impl::EmptyInZone(uint64_t chunks) const {
  std::vector<AddressRange> empty;
  if (chunks == 0 || !follower_.active()) return empty;
  const std::vector<Follower::Range> live = follower_.LiveRanges();  // ascending, apart from each other
  auto below = live.rbegin();
  const uint64_t chunk = arena_.chunk();
  for (DeviceAddress end = zone_.begin + zone_.bytes; end > zone_.begin && chunks > 0; end -= chunk) {
    const DeviceAddress begin = end - chunk;
    while (below != live.rend() && below->begin >= OffsetOf(end)) ++below;
    const bool used = below != live.rend() && below->end > OffsetOf(begin);
    if (used || !arena_.Mapped(begin, chunk)) continue;
    if (empty.empty() || empty.back().begin != end) empty.push_back({end, 0});
    empty.back() = {begin, empty.back().bytes + chunk};
    --chunks;
  }
  return empty;
}

// A diverging iteration does not pay for a second pool: pages of the planned zone that nothing lives in now serve
// elsewhere. Entries that need them back will ask. O(blocks of the script) for each of `empty`.
void Engine::Impl::TakeFromZone(const std::vector<AddressRange>& empty, PageWork* work) {
  for (const AddressRange& range : empty) {
    follower_.SetUnmapped(OffsetOf(range.begin), OffsetOf(range.begin + range.bytes));
    work->take_zone.push_back(range);
    settled_ = false;
  }
}

// A script has just been taken up: its zone gets the pages that are to be had without asking for more than is live.
void Engine::Impl::MapWhatIsFree(PageScope& scope) {
  bulk_map_due_ = false;
  PageWork work;
  AddressRange used{zone_.begin, follower_.script().height_bytes};
  used.bytes = (used.bytes + arena_.chunk() - 1) & ~(arena_.chunk() - 1);
  if (arena_.BeginMapAvailable(used, CreateUpTo(), &work)) scope.Run(&work);
  MarkMappedEntries();
}

// A plan found no addresses for its zone: those of free memory become blank, their pages wait in the pool.
void Engine::Impl::MakeRoom(Lock& lock) {
  PageScope scope(this, lock);
  room_due_ = false;
  PageWork work;
  if (arena_.BeginClear(&work)) scope.Run(&work);
}

// Whether places of the script without pages can wait: what was carried into its first iteration, or into the first after
// one that diverged, still has its old memory, and what is not by script has memory of its own.
bool Engine::Impl::MayWait() const {
  if (history_.Count() <= eager_until_) return false;  // in a run's first iteration nothing is carried
  bool first_cycle = history_.Count() - std::max(activated_at_, diverged_until_) <= follower_.script().size();
  return first_cycle || Divergences() != divergences_at_end_;
}

uint64_t Engine::Impl::CreateForEntryUpTo() const {
  if (switches_ > 0) return CreateUpTo();
  return LiveAndPart(Divergences() != divergences_at_end_ ? 32 : 12);
}

// Pages for an entry that has been claimed. On failure the claim is given up.
EngineStatus Engine::Impl::MapEntry(Lock& lock, uint32_t entry) {
  ++mapping_entries_;
  bool ok = false;
  {
    PageScope scope(this, lock);
    if (bulk_map_due_) MapWhatIsFree(scope);
    AddressRange range = EntryRange(entry);
    ok = HasPages(range);
    for (int attempt = 0; attempt < 2 && !ok && InZone(range); ++attempt) {
      PageWork work;
      uint64_t create_up_to = attempt == 0 ? CreateForEntryUpTo() : 0;
      ok = !arena_.BeginMap(range.begin, range.bytes, create_up_to, &work);
      if (ok) break;
      if (MayWait() && arena_.Shortfall(work, create_up_to) > 0) {
        arena_.CancelGrowth(&work);
        break;
      }
      ok = scope.Run(&work);
    }
  }
  --mapping_entries_;
  if (ok) {
    follower_.SetMapped(entry);
    return EngineStatus::kOk;
  }
  follower_.Release(entry);
  return EngineStatus::kOutOfMemory;
}

// Runs of chunks of the zone without pages, in units.
std::vector<Follower::Range> Engine::Impl::WithoutPages() const {
  std::vector<Follower::Range> runs;
  const uint64_t chunk = arena_.chunk();
  for (DeviceAddress begin = zone_.begin; begin < zone_.begin + zone_.bytes; begin += chunk) {
    if (arena_.Mapped(begin, chunk)) continue;
    if (runs.empty() || runs.back().end != OffsetOf(begin)) runs.push_back({OffsetOf(begin), OffsetOf(begin), kNone});
    runs.back().end = OffsetOf(begin + chunk);
  }
  return runs;
}

// A place in the zone, with pages, where nothing lives and no entry comes for the next `age` requests.
bool Engine::Impl::TakeHole(uint32_t units, uint32_t age, DeviceAddress* address) {
  uint32_t begin = follower_.FindHole(units, age, static_cast<uint32_t>(zone_used_ / kUnitBytes), WithoutPages());
  if (begin == kNone) return false;
  follower_.AddForeign(begin, begin + units);
  *address = AddressOf(begin);
  return true;
}

// A block may lie in the planned zone for want of memory elsewhere, best where the script serves nothing soon, or else
// `anywhere`. What it serves there later is displaced if the block still lives.
bool Engine::Impl::PlaceInZone(const Want& want, bool anywhere, DeviceAddress* address) {
  if (!follower_.active() || mapping_entries_ != 0 || want.ordinal == kUnmonitored) return false;
  if (want.entry == kNone && history_.Count() <= eager_until_) return false;  // a run's first iteration: it may be there to stay
  // The search is linear in the script: no more than a bounded part of it for each request there was.
  constexpr uint64_t kEntriesPerRequest = 512, kSearches = 16;
  uint32_t size = follower_.script().size();
  if (zone_searches_ * size > (history_.Count() - activated_at_) * kEntriesPerRequest / 4 + kSearches * size) return false;
  ++zone_searches_;
  uint32_t age = want.entry != kNone ? std::min(size, follower_.ExpectedAge(want.entry)) : size / 4;
  return TakeHole(want.units, age, address) || TakeHole(want.units, size / 16, address) ||
         (anywhere && TakeHole(want.units, 0, address));
}

// A displaced block may lie in the planned zone where no entry comes for as long as it is expected to live.
bool Engine::Impl::PlaceInHole(const Want& want, DeviceAddress* address) {
  if (!want.displaced || want.entry == kNone || !follower_.active()) return false;
  if (follower_.ExpectedAge(want.entry) == 0) return false;
  if (page_work_) return false;  // pages of the zone may be on their way to somewhere else
  return TakeHole(want.units, follower_.ExpectedAge(want.entry), address);
}

// At the end of an iteration: what is missing of the zone is mapped, what has not been used is given back.
void Engine::Impl::Housekeep(Lock& lock) {
  constexpr size_t kSpareNodes = 64;
  PageScope scope(this, lock);
  if (!follower_.active()) return;
  uint64_t calls = arena_.driver_calls();
  if (follower_.UnmappedEntries() > 0) MapWhatIsFree(scope);
  PageWork trim;
  if (arena_.BeginTrim(&trim)) scope.Run(&trim);
  // From here on a block released outside the script must not cost a heap allocation.
  arena_.ReserveRanges(dynamic_.size() + kSpareNodes);
  ReserveNodes(&nodes_, sizeof(*dynamic_.begin()) + 4 * sizeof(void*), kSpareNodes);
  settled_ = follower_.UnmappedEntries() == 0;
  grew_ = !settled_ && arena_.driver_calls() != calls;
}

}  // namespace hotpack
