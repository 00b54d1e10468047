// The pages of an engine's arena: opening it, growth, the pages of the followed script's zone, giving back.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/base/adaptive_mutex.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine_request.h"
#include "runtime/engine/spill_policy.h"
#include "runtime/include/hotpack.h"
#include "runtime/memory/arena.h"
#include "runtime/script/follower.h"
#include "runtime/script/script.h"

namespace hotpack {

// What the run is like, as far as that decides how many pages are made. The engine fills it in for each call.
struct GrowthPolicy {
  bool takes_turns = false;        // several scripts have been followed
  bool steady = false;             // the steady state has begun
  bool diverged = false;           // in the iteration under way
  bool first_iteration = false;    // of a run that began with a saved plan
  bool may_wait = false;           // places of the script without pages can wait for an iteration
  uint64_t expected_peak = 0;      // bytes that the run is expected to hold; 0: unknown
  uint64_t requests_followed = 0;  // since the script was taken up
};

// Needs the engine's lock. A function that takes one drops it around driver calls. Changes of pages are serialised by a
// mutex of their own, which is taken before the engine's lock.
class PageManager {
 public:
  enum class GrowStatus : uint8_t {
    kOk,
    kOutOfMemory,
    kNeedsZone,  // only the followed script's zone has pages left: retire the script, and ask again
    kGone,       // the driver is going down
  };

  // `abandoned`: once it is set no call reaches the device. `follower` and `blocks` are the engine's. All outlive this.
  PageManager(DeviceMemory* memory, const std::atomic<bool>* abandoned, Follower* follower, DynamicBlocks* blocks)
      : memory_(memory), abandoned_(abandoned), follower_(follower), blocks_(blocks), arena_(memory) {}

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
  bool TryAllocate(uint64_t bytes, DeviceAddress* address) { return arena_.TryAllocate(bytes, address); }
  // A displaced block may lie in the planned zone where no entry comes for as long as it is expected to live.
  bool PlaceInIdleRange(const EngineRequest& request, DeviceAddress* address);
  // A place for the request, with new pages or moved ones. `zone_given`: kNeedsZone was returned, and no script is
  // followed now. *foreign: the place lies in the planned zone.
  GrowStatus Grow(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy, bool zone_given,
                  bool* foreign, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes, bool foreign);  // a block in the reservation
  // Pages for an entry that the follower has claimed. On failure the claim is given up.
  bool MapEntry(EngineLock& lock, uint32_t entry, const GrowthPolicy& policy);

  // --- the followed script's zone and holes -------------------------------------------------------------------------
  // Pages are being changed: the script and its zone must stay.
  bool zone_pinned() const { return page_work_ || mapping_entries_ != 0; }
  bool TakeZone(const Script& script);             // fresh addresses. Returns false if there are none
  bool FitsZone(const Script& script) const;       // whether it can be followed in the zone there is
  void BeginScript();                              // the follower has started a script in the zone
  bool HaveFragments(const Script& script) const;  // whether the held holes have all holes of the script
  bool FragmentsHavePages(const Script& script) const;
  void FreeFragments(const std::vector<AddressRange>& live);  // `live`: the parts in use, ascending
  // No script is followed: the zone and the holes are ordinary memory. `in_zone`, `in_fragments`: the parts in use,
  // ascending.
  void RetireZone(const std::vector<AddressRange>& in_zone, const std::vector<AddressRange>& in_fragments);
  std::vector<AddressRange> fragments() const { return fragments_; }
  uint64_t zone_used() const { return zone_used_; }  // bytes of the zone that scripts have used: the highest of them
  // Addresses of free memory become blank, and its pages go to the pool: a script found no addresses for its zone.
  void ReclaimAddresses(EngineLock& lock);

  // --- giving back --------------------------------------------------------------------------------------------------
  bool NeedsHousekeeping() const;
  void Housekeep(EngineLock& lock,
                 const GrowthPolicy& policy);  // maps what is missing of the zone, gives back what is idle
  void EndIteration();
  bool fully_mapped() const { return map_state_ == MapState::kFull; }  // the script's zone
  uint64_t GiveBack(EngineLock& lock, uint64_t wanted);                // Engine::Trim
  // A request came. `waiting`: the script is parked or the monitoring interrupted, `script_size` being its requests.
  // After many such requests the memory that none of them touched is given back.
  void TrimIdle(EngineLock& lock, bool waiting, uint64_t script_size);

  // Waits until no thread changes pages; none begins to while the result lives. Without the engine's lock.
  std::unique_lock<std::mutex> WaitForChanges() { return std::unique_lock(changes_); }

  // --- figures ------------------------------------------------------------------------------------------------------
  uint64_t capacity_seen() const { return capacity_seen_; }  // bytes held when the device refused more; 0: it never did
  uint64_t held_peak() const { return std::max(held_peak_, arena_.held()); }  // since ResetPeak
  void ResetPeak() { held_peak_ = base_ != 0 ? arena_.held() : 0; }
  void BeginSteady() { reserved_steady_ = arena_.held(); }
  void AddTo(hotpack_stats* stats, bool steady) const;

 private:
  class PageScope;
  // How much of the zone has pages: none but by chance, since the script has just been taken up; some; all.
  enum class MapState : uint8_t { kFresh, kPartial, kFull };
  // When pages last changed: before the last trim, in an earlier iteration, in this one.
  enum class Growth : uint8_t { kUnchanged, kEarlier, kNow };

  uint64_t LiveWithMargin(uint64_t divisor) const;
  uint64_t CreateUpTo(const GrowthPolicy& policy) const;
  uint64_t CreateForEntryUpTo(const GrowthPolicy& policy) const;
  uint64_t MissingChunksAtOwnPlace(const EngineRequest& request) const;
  bool MapOwnPlace(PageScope& scope, const EngineRequest& request, uint64_t create_up_to, DeviceAddress* address);
  bool PlaceInZone(const EngineRequest& request, const GrowthPolicy& policy, bool anywhere, DeviceAddress* address);
  bool ClaimIdleRange(uint32_t units, uint32_t age, DeviceAddress* address);
  std::vector<Follower::Range> WithoutPages() const;
  AddressRange EntryRange(uint32_t entry) const;
  bool HasPages(const AddressRange& range) const;
  void MarkMappedEntries();
  void MapFromFreePages(PageScope& scope, const GrowthPolicy& policy);
  void TakeFragments();
  void FreeOutside(const AddressRange& range);
  uint64_t Chunks(const std::vector<AddressRange>& ranges) const;
  std::vector<AddressRange> EmptyInZone(uint64_t chunks) const;
  void TakeFromZone(const std::vector<AddressRange>& empty, PageWork* work);
  void NoteReserved();

  DeviceMemory* const memory_;
  const std::atomic<bool>* const abandoned_;
  Follower* const follower_;
  DynamicBlocks* const blocks_;
  std::mutex changes_;
  Arena arena_;
  DeviceAddress base_ = 0;
  AddressRange zone_;
  std::vector<AddressRange> fragments_;  // that the followed script uses, ascending
  bool page_work_ = false;               // pages are being changed without the engine's lock: the zone must stay
  int mapping_entries_ = 0;              // claimed entries whose pages are still to be mapped: the script must stay
  MapState map_state_ = MapState::kPartial;
  Growth growth_ = Growth::kUnchanged;
  uint64_t zone_used_ = 0;
  uint64_t zone_searches_ = 0;  // of PlaceInZone since the script was taken up
  uint64_t capacity_seen_ = 0;
  uint64_t idle_requests_ = 0;  // TrimIdle
  uint64_t reserved_peak_ = 0, reserved_steady_ = 0, held_peak_ = 0;
};

}  // namespace hotpack
