// Follows a script: decides which entry a request is, and whether the entry's place is free. Holds all state of serving
// except memory.
//
// Each planned entry i counts its unreleased spatial predecessors (`pending`). Invariants:
// 1. A request is served at the entry's offset only while pending is zero. A release counts down its successors.
// 2. At every address the entries take turns in the order of the cycle. Each turn starts only after the previous one
//    has ended.
// 3. A turn that is not taken is a ghost: its request was missing, or displaced because the place was still in use. A
//    ghost ends by itself when its own predecessors have ended.
// docs/correctness.md proves that this suffices for any order of requests and releases.
// Not thread-safe: guarded by the engine's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/history.h"
#include "runtime/script/live_slots.h"
#include "runtime/script/script.h"

namespace hotpack {

class Follower {
 public:
  enum class Outcome : uint8_t {
    kPlanned,    // claimed: serve at the entry's offset
    kUnmapped,   // claimed too, but its pages must be mapped first
    kDisplaced,  // expected, but its place is still in use: serve it elsewhere
    kUnplanned,  // expected, and the script leaves it to best fit
    kOffScript,  // not expected
  };
  struct Range {
    uint32_t begin, end;
    uint32_t entry;  // kNone: foreign
  };
  struct Answer {
    Outcome outcome;
    uint32_t entry;  // kNone if off script
  };

  // Begins to follow `script` at `position`, with nothing live at its places. From now on offsets are units from
  // `base`. The planned zone begins at the address `zone`. All entries count as unmapped. O(n + edges). If the same
  // script was followed last, at the same place, nothing is rebuilt and learned values stay.
  void Start(std::shared_ptr<const Script> script, uint32_t position, uint64_t base, uint64_t zone);
  void Stop();
  bool active() const { return script_ != nullptr; }
  const Script& script() const { return *script_; }

  // Serves the next request, for `units`, if it is on script and its place is free: returns true, and *offset in units.
  // The common case. O(1).
  bool TryNext(uint32_t units, uint64_t ordinal, uint32_t* offset) {
    Cell& cell = cells_[cursor_];
    if (cell.units != units || cell.pending != 0) return false;
    Claim(cursor_, cell, units, ordinal);
    *offset = cell.offset;
    Advance();
    return true;
  }

  // Handles every other request: aligns, resynchronises, displaces. `history` ends with this request. Usually
  // O(window).
  Answer Next(uint32_t units, uint64_t ordinal, const History& history);

  // Returns the planned entry whose block lives at `offset` (units); kNone if none does.
  uint32_t LiveAt(uint32_t offset) {
    LiveSlots::Slot* slot = live_.Find(offset);
    return slot == nullptr ? kNone : slot->entry;
  }
  uint64_t Ordinal(uint32_t entry) const { return cells_[entry].ordinal; }
  // Units that the entry's last block asked for.
  uint32_t Units(uint32_t entry) const { return cells_[entry].live_units; }
  uint32_t ExpectedAge(uint32_t entry) const { return cells_[entry].age; }
  uint32_t Offset(uint32_t entry) const { return cells_[entry].offset; }
  uint32_t PlannedUnits(uint32_t entry) const { return cells_[entry].units; }

  // Releases the block at `offset` if it is a planned one, exactly as old as the script says: returns true. The common
  // case.
  bool TryRelease(uint32_t offset, History* history, uint64_t* units) {
    LiveSlots::Slot* slot = live_.Find(offset);
    if (slot == nullptr || slot->entry == kNone) return false;
    Cell* cells = cells_;
    const Cell& cell = cells[slot->entry];
    uint64_t ordinal = cell.ordinal;
    uint32_t age = cell.age, live_units = cell.live_units;
    if (history->Count() - ordinal != age) return false;
    history->ReleasedAt(ordinal, live_units, age);
    *units = live_units;
    slot->entry = kNone;
    const uint32_t* k = successors_ + cell.first_successor;
    const uint32_t* last = successors_ + cell.last_successor;
    uint32_t ghosts = 0;
    do {  // every entry has at least one successor, if only itself
      ghosts |= --cells[*k].pending;
    } while (++k != last);
    if (ghosts & kGhostBit) [[unlikely]]
      EndGhostsAfter(cell);
    return true;
  }

  // Releases the live block of `entry`. O(successors), more only when ghosts end.
  void Release(uint32_t entry) {
    Cell& cell = cells_[entry];
    live_[cell.slot].entry = kNone;
    End(cell);
  }

  // Records for the next plan that a block of this entry, released now, lived `age` requests. A longer life counts once
  // it has been seen twice.
  void NoteAge(uint32_t entry, uint32_t age);

  // The entry's pages are mapped now.
  void SetMapped(uint32_t entry) {
    if (cells_[entry].pending & kUnmappedBit) --unmapped_;
    cells_[entry].pending &= ~kUnmappedBit;
  }
  uint32_t UnmappedEntries() const { return unmapped_; }
  // Entries that lie at least partly in [begin, end) units of the zone count as unmapped: a page there was taken away.
  // O(n).
  void SetUnmapped(uint32_t begin, uint32_t end);

  // A foreign block lies in [begin, end) units of the zone from now on: entries there wait. O(n).
  void AddForeign(uint32_t begin, uint32_t end);
  // Adds several blocks at once, ascending and disjoint. Requires that no foreign block lies there yet.
  // O((n + blocks) log blocks).
  void AddForeign(const std::vector<Range>& blocks);
  // The foreign block of [begin, end) is gone. O(n).
  void RemoveForeign(uint32_t begin, uint32_t end);
  // Returns a place for `units` in the planned zone that no live block uses and no entry uses in the next `age`
  // requests; kNone if there is none. O(n log n). The zone has `height` units; `without_pages` lists those without
  // pages.
  uint32_t FindIdleRange(uint32_t units, uint32_t age, uint32_t height, const std::vector<Range>& without_pages,
                         uint32_t alignment = 1) const;
  // Returns the offset ranges of live blocks (planned and foreign), sorted by begin.
  std::vector<Range> LiveRanges() const;

  // Continues at `position` (< size). Entries skipped on the way count as missing.
  void SkipTo(uint32_t position);
  uint32_t cursor() const { return cursor_; }
  bool Expects(uint32_t units) const { return cells_[cursor_].units == units; }
  uint32_t unmatched() const { return unmatched_; }  // recent requests that were not found in the script
  bool lost() const { return lost_; }

  // Returns the number of iterations ended since the last call.
  uint32_t TakeEnded() {
    uint32_t ended = ended_;
    ended_ = 0;
    return ended;
  }
  bool ended() const { return ended_ != 0; }
  uint64_t divergences() const { return divergences_; }  // since Start
  bool learned() const { return learned_; }              // sizes or lives were seen that the profile lacks
  // Returns the script's profile with what was seen since: larger sizes, longer and shorter lives.
  Profile LearnedProfile() const;

  // Recomputes all counters and returns whether they agree (for tests and HOTPACK_CHECKS=all). O(n + edges).
  bool Consistent() const;

 private:
  static constexpr uint32_t kUnmappedBit = 1u << 31;
  static constexpr uint32_t kUnplannedBit = 1u << 30;
  static constexpr uint32_t kGhostBit = 1u << 29;    // ghosts != 0
  static constexpr uint32_t kForeignBit = 1u << 28;  // foreign != 0
  static constexpr uint32_t kCountMask = kForeignBit - 1;
  static constexpr uint32_t kBusyMask = kForeignBit | kCountMask;  // what a request must wait for
  static constexpr uint32_t kWindow = 64;                          // search distance around the cursor, in requests

  // An entry with its place and its state: one cache line.
  struct alignas(64) Cell {
    uint32_t units = 0;       // planned size
    uint32_t pending = 0;     // unreleased predecessors, plus the bits above
    uint32_t offset = kNone;  // units from the arena's base
    uint32_t slot = kNone;    // in live_
    uint32_t predecessors = 0;
    uint32_t first_successor = 0, last_successor = 0;  // a range of successors_
    uint32_t age = 0;                                  // expected
    uint64_t ordinal = 0;                              // the request that claimed it last
    uint32_t live_units = 0;                           // ... and the units that it asked for
    uint32_t ghosts = 0;                               // turns not taken that have not ended
    uint32_t foreign = 0;  // foreign blocks that lie here. A ghost need not wait for them: it takes no place
  };

  void Claim(uint32_t i, Cell& cell, uint32_t units, uint64_t ordinal) {
    cell.pending += cell.predecessors;
    cell.live_units = units;
    cell.ordinal = ordinal;
    live_[cell.slot].entry = i;
  }
  void Advance() {
    if (++cursor_ == size_) [[unlikely]]
      WrapAround();
  }
  void End(const Cell& cell) {
    for (uint32_t s = cell.first_successor; s < cell.last_successor; ++s) --cells_[successors_[s]].pending;
    EndGhostsAfter(cell);
  }
  // Requires that the successors of `cell` have been counted down.
  [[gnu::noinline]] void EndGhostsAfter(const Cell& cell) {
    for (uint32_t s = cell.first_successor; s < cell.last_successor; ++s) EndGhosts(successors_[s]);
  }
  [[gnu::noinline]] void EndGhosts(uint32_t entry);
  void Ghost(uint32_t entry);
  [[gnu::noinline]] void WrapAround();
  void GhostSkipped();
  void MoveTo(uint32_t position, bool may_return);
  uint32_t Locate(uint32_t units, uint64_t ordinal, const History& history, bool* skipped);
  uint32_t FindAhead(uint32_t units, uint64_t ordinal);
  // Required requests on script on either side of a larger one.
  uint32_t Quiet() const { return std::min(kWindow / 4, size_ / 4); }
  void NoteLeft(uint64_t ordinal);
  void LearnLarger();
  uint64_t ScriptAge(uint32_t entry, uint32_t age) const;
  uint32_t Agreement(uint32_t last, uint64_t ordinal, const History& history) const;
  uint32_t FindContext(uint64_t ordinal, const History& history, uint32_t least) const;
  Answer Take(uint32_t position, uint32_t units, uint64_t ordinal, bool skipped);
  bool Overlaps(uint32_t i, uint32_t begin, uint32_t end) const {
    const Cell& e = cells_[i];
    return e.offset != kNone && e.offset < end && begin < e.offset + e.units;
  }
  uint32_t After(uint32_t position, uint32_t steps) const { return (position + uint64_t{steps}) % size_; }
  uint32_t Before(uint32_t position, uint32_t steps) const {
    return (position + uint64_t{size_} - steps % size_) % size_;
  }

  void Place(uint64_t base, uint64_t zone);
  void ClearTurns();

  std::shared_ptr<const Script> script_;
  const uint32_t* successors_ = nullptr;
  Cell* cells_ = nullptr;
  LiveSlots live_;
  uint64_t base_ = 0, zone_ = 0;  // what the cells' offsets were last computed for
  uint32_t zone_begin_ = 0;       // units
  uint32_t size_ = 0;
  uint32_t cursor_ = 0;
  uint32_t unmapped_ = 0;
  uint32_t ended_ = 0;
  bool lost_ = false;
  bool learned_ = false;
  uint32_t unmatched_ = 0;          // recent requests that matched nothing
  uint32_t last_unmatched_ = 0;     // the size of the last of them
  uint64_t last_unmatched_at_ = 0;  // ... and its ordinal
  bool last_was_novel_ = false;     // ... and no entry near the cursor has that size
  uint64_t divergences_ = 0;
  // A single request that was larger than its entry. Believed once the rest of the iteration has come by script.
  struct Larger {
    uint32_t entry = kNone, units = 0;
    uint64_t ordinal = 0;
    bool passed_end = false;  // of the iteration
  } larger_;
  uint64_t left_at_ = 0, left_before_ = 0;  // ordinals of the last two requests that were not the next entry's
  std::vector<uint32_t> skipped_;  // entries before the cursor whose turn was skipped but may still come, oldest first
  std::vector<uint32_t> ready_;    // scratch memory of EndGhosts
  std::vector<Range> foreign_;
  std::vector<Cell> cell_storage_;
  struct Seen {
    uint32_t units = 0, min_age = 0;
    uint32_t longest = 0;  // life longer than known
    uint32_t max_age = 0;  // the same, but reached at least twice
  };
  std::vector<Seen> seen_;
};

}  // namespace hotpack
