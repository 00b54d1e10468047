// The pages of an engine's arena: opens it, grows it, maps the followed script's zone, gives pages back.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/base/adaptive_mutex.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine_request.h"
#include "runtime/engine/envelope_zone.h"
#include "runtime/engine/held_fragments.h"
#include "runtime/engine/page_wait.h"
#include "runtime/engine/ready_chunks.h"
#include "runtime/engine/spill_policy.h"
#include "runtime/include/hotpack.h"
#include "runtime/memory/arena.h"
#include "runtime/script/follower.h"
#include "runtime/script/script.h"

namespace hotpack {

// The state of the run that determines how many pages are created. The engine fills it in for each call.
struct GrowthPolicy {
  bool takes_turns = false;        // several scripts have been followed
  bool steady = false;             // the steady state has begun
  bool diverged = false;           // in the current iteration
  bool first_iteration = false;    // ... of a run that began with a saved plan
  bool may_wait = false;           // places of the script without pages may wait for an iteration
  uint64_t expected_peak = 0;      // bytes that the run is expected to hold; 0: unknown
  uint64_t requests_followed = 0;  // since the script was started
};

// Needs the engine's lock. A function that takes an EngineLock releases it around driver calls. A separate mutex, taken
// before the engine's lock, serialises changes of pages.
class PageManager {
 public:
  enum class GrowStatus : uint8_t {
    kOk,
    kOutOfMemory,
    kNeedsZone,  // only the followed script's zone has pages left: retire the script, then call again
    kGone,       // the driver is shutting down
  };

  // `abandoned`: once it is set, no call reaches the device. `follower` and `blocks` are the engine's. All arguments
  // must outlive this object.
  // `page_wait_us`: how long a request waits for work on idle pages that could move, before it takes new ones
  // (page_wait.h). UINT64_MAX: no limit.
  PageManager(DeviceMemory* memory, const std::atomic<bool>* abandoned, Follower* follower, DynamicBlocks* blocks,
              uint64_t page_wait_us = UINT64_MAX)
      : memory_(memory),
        abandoned_(abandoned),
        follower_(follower),
        blocks_(blocks),
        arena_(memory),
        envelope_(&blocks->zone()),
        wait_(page_wait_us) {}

  // --- addresses. O(1) ----------------------------------------------------------------------------------------------
  const Arena& arena() const { return arena_; }
  DeviceAddress base() const { return base_; }        // of the arena; 0: it is not open
  const AddressRange& zone() const { return zone_; }  // of the followed script
  bool InZone(const AddressRange& range) const { return range.begin - zone_.begin < zone_.bytes; }
  bool InReservation(DeviceAddress address) const { return base_ != 0 && address - base_ < arena_.bytes(); }
  uint32_t OffsetOf(DeviceAddress address) const { return static_cast<uint32_t>((address - base_) / kBlockUnit); }
  DeviceAddress AddressOf(uint32_t offset) const { return base_ + offset * kBlockUnit; }

  // --- memory for blocks --------------------------------------------------------------------------------------------
  MemoryStatus Open(EngineLock& lock);
  void SetLargeAlignment(uint64_t bytes) { arena_.SetLargeAlignment(bytes); }
  bool TryAllocate(uint64_t bytes, DeviceAddress* address) { return arena_.TryAllocate(bytes, address); }
  // Places a displaced block in the planned zone, where no entry comes during the block's expected life. Returns false
  // if there is no such place.
  bool PlaceInIdleRange(const EngineRequest& request, DeviceAddress* address);
  // Finds a place for the request, with new or moved pages. `zone_given`: an earlier call returned kNeedsZone, and no
  // script is followed now. *foreign: the place lies in the planned zone.
  GrowStatus Grow(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy, bool zone_given,
                  bool* foreign, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes, bool foreign);  // a block in the reservation
  // Maps pages for an entry that the follower has claimed. Returns false and gives up the claim on failure.
  bool MapEntry(EngineLock& lock, uint32_t entry, const GrowthPolicy& policy);

  // --- the followed script's zone and fragments ----------------------------------------------------------------------
  // Returns whether pages are being changed: then the script and its zone must stay.
  bool zone_pinned() const { return page_work_ || mapping_entries_ != 0; }
  bool TakeZone(const Script& script);  // fresh addresses. Returns false if there are none
  // Takes the last zone back for a script that fits it, with its pages: they need not move. Its blocks become
  // foreign. Returns false, with nothing done, if many do, or some for long, or if not all of the zone can be had.
  // `count`: requests so far. O(blocks and chunks of the zone).
  bool RetakeZone(const Script& script, uint64_t count);
  void ForgetLastZone() { last_zone_ = {}; }  // its blocks were in the script's way
  // Places a block at this offset of the last zone, if the script fits it and the place is free and has pages.
  bool TryAllocateInLastZone(const Script& script, uint32_t offset, uint32_t units, DeviceAddress* address);
  // Returns whether the script can be followed in the current zone.
  bool FitsZone(const Script& script) const { return Fits(script, zone_); }
  // Returns whether the script can have its pages now without holding much more than is live. While a stream is
  // capturing no pages move, so all that its zone lacks would be new. O(chunks of the zone).
  bool CanMapNow(const Script& script) const;
  void BeginScript();  // the follower has started a script in the zone
  // Whether the held fragments include all fragments of the script.
  bool HaveFragments(const Script& script) const { return fragments_.Include(script.fragments); }
  bool FragmentsHavePages(const Script& script) const { return fragments_.HavePages(script.fragments); }
  // `live`: the parts in use, ascending.
  void FreeFragments(const std::vector<AddressRange>& live) { fragments_.Free(live); }
  // Ends the script: its zone and fragments become ordinary memory. `in_zone`, `in_fragments`: the parts in use,
  // ascending.
  void RetireZone(const std::vector<AddressRange>& in_zone, const std::vector<AddressRange>& in_fragments);
  std::vector<AddressRange> fragments() const { return fragments_.ranges(); }
  uint64_t zone_used() const { return zone_used_; }  // bytes of the zone used so far, by the highest script
  // Unmaps free memory to get free addresses, because a script found none for its zone. The pages go to the pool.
  void ReclaimAddresses(EngineLock& lock);

  // --- an envelope's zone: no script is followed meanwhile -----------------------------------------------------------
  enum class PlaceStatus : uint8_t { kPlaced, kInUse, kNoPages };
  bool FitsEnvelopeZone(uint64_t bytes) const { return envelope_.open() && bytes <= zone_.bytes; }
  // Takes fresh addresses, and the free memory of the fragments. Blocks that lie there become foreign. Returns false if
  // there are no addresses, or no pages in a fragment.
  bool TakeEnvelopeZone(uint64_t bytes, const std::vector<Fragment>& fragments);
  void RetireEnvelopeZone();  // its blocks become ordinary ones
  // Returns the lowest address for a block, not below `lowest` and at most `planned`, above the live block below that,
  // which ends at `end_below`.
  DeviceAddress LowestAbove(DeviceAddress end_below, DeviceAddress lowest, DeviceAddress planned,
                            uint64_t bytes) const {
    const uint64_t mask = AlignmentOf(bytes) - 1;
    return std::min(planned, (std::max(lowest, end_below) + mask) & ~mask);
  }
  // The addresses that blocks of a place of an envelope may have, up to this end. In the zone, ZoneReady tells whether
  // their pages are there; a fragment has all its pages. No end: the place may not be used on the short way. O(log
  // fragments).
  struct PlaceArea {
    DeviceAddress end = 0;
    bool in_zone = false;
  };
  PlaceArea AreaOf(DeviceAddress planned) const;
  // Returns whether a range of the zone has all its pages. Requires that no pages are being changed. O(chunks / 64) if
  // its pages were not taken away since they were asked for.
  bool ZoneReady(DeviceAddress begin, DeviceAddress end) {
    return ready_.Have(begin, end) || BecomesReady({begin, end - begin});
  }
  uint64_t AlignmentOf(uint64_t bytes) const { return arena_.AlignmentOf(bytes); }
  bool changing_pages() const { return page_work_; }
  // Places a block at an address of the zone or a fragment. Maps pages where there are none. `below`: as
  // EnvelopeZone::Claim has it.
  PlaceStatus PlaceInEnvelope(EngineLock& lock, DeviceAddress address, uint64_t bytes, const GrowthPolicy& policy,
                              ZoneBlock* below = nullptr);
  // An iteration that the envelope served has ended. After 1, 2, 4, ... of them, gives back the memory outside the zone
  // that was not used since the last time.
  void EndEnvelopeIteration(EngineLock& lock);

  // --- giving back --------------------------------------------------------------------------------------------------
  bool NeedsHousekeeping() const;
  // Maps missing pages of the zone and gives back idle memory.
  void Housekeep(EngineLock& lock, const GrowthPolicy& policy);
  void EndIteration();
  bool fully_mapped() const { return map_state_ == MapState::kFull; }  // the script's zone
  uint64_t GiveBack(EngineLock& lock, uint64_t wanted);                // implements Engine::Trim
  uint64_t Returnable() const;                                         // what GiveBack can give back now, in bytes
  // Counts a request. After many requests, and twice as many as in any such wait before, it gives back the memory that
  // none of them used. `waiting`: the script is parked, or monitoring is interrupted. `script_size`: requests of that
  // script.
  void TrimIdle(EngineLock& lock, bool waiting, uint64_t script_size);
  void EndWait();  // the wait is over, although no request says so

  // Waits until no thread changes pages. No change begins while the result lives. Requires that the engine's lock is
  // not held.
  std::unique_lock<std::mutex> WaitForChanges() { return std::unique_lock(changes_); }

  // --- figures ------------------------------------------------------------------------------------------------------
  uint64_t capacity_seen() const { return capacity_seen_; }  // bytes held when the device refused more; 0: it never did
  uint64_t held_peak() const { return std::max(held_peak_, arena_.held()); }  // since ResetPeak
  void ResetPeak() { held_peak_ = base_ != 0 ? arena_.held() : 0; }
  void BeginSteady() { reserved_steady_ = arena_.held(); }
  void AddTo(hotpack_stats* stats, bool steady) const;

 private:
  class PageScope;
  // How much of the zone has pages. kFresh: none except by chance, since the script has just been started.
  enum class MapState : uint8_t { kFresh, kPartial, kFull };
  // When pages last changed: before the last trim, in an earlier iteration, in this one.
  enum class Growth : uint8_t { kUnchanged, kEarlier, kNow };

  // New pages for the script's entries: up to 1/12 more than was ever live.
  static constexpr uint64_t kEntryMargin = 12;

  uint64_t LiveWithMargin(uint64_t divisor) const;
  uint64_t CreateUpTo(const GrowthPolicy& policy) const;
  uint64_t CreateForEntryUpTo(const GrowthPolicy& policy) const;
  uint64_t AheadUpTo(uint64_t bytes) const;
  bool CannotFit(PageScope& scope, const EngineRequest& request);
  uint64_t MissingChunksAtOwnPlace(const EngineRequest& request) const;
  bool MapOwnPlace(PageScope& scope, const EngineRequest& request, uint64_t create_up_to, DeviceAddress* address);
  bool PlaceInGap(PageScope& scope, uint64_t bytes, uint64_t most_missing, uint64_t create_up_to,
                  DeviceAddress* address);
  bool MapPlace(PageScope& scope, const AddressRange& place, const AddressRange& within, uint64_t create_up_to);
  bool PlaceInZone(const EngineRequest& request, const GrowthPolicy& policy, bool anywhere, DeviceAddress* address);
  bool ClaimIdleRange(uint32_t units, uint32_t age, DeviceAddress* address);
  static bool Fits(const Script& script, const AddressRange& zone);
  void MakeForeign(const AddressRange& range);
  std::vector<Follower::Range> WithoutPages() const;
  AddressRange EntryRange(uint32_t entry) const;
  bool IsPlanned(const AddressRange& range) const;
  bool HasPages(const AddressRange& range) const;
  [[gnu::noinline]] bool BecomesReady(const AddressRange& range);
  AddressRange ZoneInUse() const;
  void MarkMappedEntries();
  void MapFromFreePages(PageScope& scope, const GrowthPolicy& policy);
  bool TakeAddresses(uint64_t bytes);
  void AddForeign(const AddressRange& block);
  void TakeFragments(const std::vector<Fragment>& fragments);
  void FreeOutside(const AddressRange& range);
  uint64_t Chunks(const std::vector<AddressRange>& ranges) const;
  std::vector<AddressRange> EmptyInZone(uint64_t chunks) const;
  void TakeFromZone(const std::vector<AddressRange>& empty, PageWork* work);
  bool ZoneIsTooHigh() const;
  void LowerZone(PageScope& scope, const GrowthPolicy& policy);
  bool KeepsIdle(const PageWork& trim);
  void NoteReserved();

  DeviceMemory* const memory_;
  const std::atomic<bool>* const abandoned_;
  Follower* const follower_;
  DynamicBlocks* const blocks_;
  std::mutex changes_;
  Arena arena_;
  EnvelopeZone envelope_;
  uint64_t envelope_iterations_ = 0;  // since the zone was taken
  ReadyChunks ready_;
  PageWait wait_;
  DeviceAddress base_ = 0;
  AddressRange zone_;
  AddressRange last_zone_;  // the zone that was retired last; empty: another one was taken since
  bool retaken_ = false;    // zone_ was taken back, for a script that has not begun
  HeldFragments fragments_{&arena_};
  bool page_work_ = false;   // pages are being changed without the engine's lock: the zone must stay
  int mapping_entries_ = 0;  // claimed entries whose pages are not mapped yet: the script must stay
  MapState map_state_ = MapState::kPartial;
  Growth growth_ = Growth::kUnchanged;
  uint64_t zone_used_ = 0;
  uint64_t zone_mapped_ = 0;    // bytes up to the last page of a zone when it was taken back; 0: none of it is idle
  int zone_lowerings_ = 0;      // tries of LowerZone since the script was started
  uint64_t zone_searches_ = 0;  // of PlaceInZone since the script was started
  uint64_t small_trims_ = 0;    // of Housekeep, steady: times that only few pages were idle
  uint64_t capacity_seen_ = 0;
  uint64_t idle_requests_ = 0;                       // of TrimIdle: since the last trim
  uint64_t waited_requests_ = 0, longest_wait_ = 0;  // ... in the present wait; in the longest that has ended
  uint64_t reserved_peak_ = 0, reserved_steady_ = 0, held_peak_ = 0;
};

}  // namespace hotpack
