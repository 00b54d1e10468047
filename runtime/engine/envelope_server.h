// Serves a job whose iterations differ by the places of an envelope (runtime/script/envelope.h): decides when a job is
// one, follows it, and says what the planner shall learn from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "profiler/history.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine_request.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/page_manager.h"
#include "runtime/script/envelope_follower.h"
#include "runtime/script/plan_builder.h"

namespace hotpack {

// Guarded by the engine's lock.
class EnvelopeServer {
 public:
  // All must outlive this object. `enabled`: else no job is served by an envelope.
  EnvelopeServer(PageManager* pages, DynamicBlocks* blocks, EngineStats* stats, bool enabled)
      : pages_(pages), blocks_(blocks), stats_(stats), enabled_(enabled) {}

  // --- what to learn from --------------------------------------------------------------------------------------------
  // The program has marked an iteration's end, after `count` requests. Returns whether the planner shall learn from the
  // iterations since the last TakeWork. `planning`: the planner is busy.
  bool NoteMark(uint64_t count, bool planning);
  // The job's iterations differ, so scripts of one iteration are not planned for it any more.
  bool learning() const { return learning_; }
  // Scripts have served no iteration well so far, and one poorly: a further script would probably be no better.
  bool Doubts() const { return enabled_ && poor_marks_ > 0 && !served_well_; }
  // Moves what the planner needs into the job.
  void TakeWork(PlanJob* job);
  // Hardly any request of the last iteration was served by best fit.
  bool ServesWell() const;

  // --- following -----------------------------------------------------------------------------------------------------
  bool active() const { return follower_.script() != nullptr; }
  // `script` has places. It is followed from the next call of Change on. Does nothing after GiveUp.
  void SetPending(std::shared_ptr<const EnvelopeScript> script) {
    if (enabled_) pending_ = std::move(script);
    SetShortUntil();
  }
  // Another script, or none, is to be followed from now on: call Change.
  bool change_due() const { return pending_ != nullptr || leaving_; }
  // Follows the pending script, or none. Requires that no script of one iteration is followed, and that the zone is not
  // pinned. Live blocks stay where they are. If there are no addresses for a zone, no envelope is followed.
  void Change();
  // Follows no envelope from the next call of Change on, until another script is pending: the job does not mark its
  // iterations any more.
  void Pause();
  // The job repeats, and a script of its iteration is pending: as Pause, and scripts are judged from the beginning.
  void Rest();
  // No envelope is followed after the next call of Change.
  bool leaving() const { return leaving_; }
  // Follows no envelope from the next call of Change on, and learns none, for good: it has become too large, or the job
  // does not fit.
  void GiveUp();

  // Serves a monitored request at a planned place. Must be called for each of them while active, at once after its
  // history entry. May release the lock for driver calls. Returns the entry, kNone if no place of a likely entry is
  // free and has pages.
  uint32_t Serve(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy, DeviceAddress* address);
  // The short way: serves the request, and notes its release, if that needs no page, no lock, no heap and no choice.
  // Returns false, with nothing changed, if it does: then call Serve. `ordinal`: that of the request in the history,
  // which does not have it yet. O(1).
  bool TryServe(uint32_t units, uint64_t ordinal, DeviceAddress* address) noexcept;
  // Releases a block at a place: returns true, and its units. `history` notes it. O(1).
  bool TryRelease(DeviceAddress address, History* history, uint32_t* units) noexcept;
  // A block of a monitored request was released. `entry`: that of its place, kNone: it had none.
  void NoteRelease(uint32_t age, uint32_t entry, DeviceAddress address) {
    if (!active()) return;
    context_.Add(age);
    if (entry == kNone) return;
    follower_.Released(entry);
    ForgetBlock(entry, address);
  }

  // --- figures -------------------------------------------------------------------------------------------------------
  uint64_t PlanBytes() const;  // of the zone and the fragments; 0: none is followed
  void AddTo(hotpack_stats* stats) const;

 private:
  enum class Placing : uint8_t { kPlaced, kInUse, kNoPages };
  enum class PagesWanted : uint8_t { kAny, kReady };  // any: those that are missing are mapped
  Placing TryEntry(EngineLock& lock, uint32_t entry, const EngineRequest& request, PagesWanted wanted,
                   const GrowthPolicy& policy, DeviceAddress* address);
  Placing TryAlternatives(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy, uint32_t* entry,
                          DeviceAddress* address);
  bool IsReady(const AddressRange& range, DeviceAddress area_end) const;
  bool JudgeScripts(uint64_t asked, uint64_t planned);
  // A place and its block: one cache line.
  struct alignas(64) Place {
    DeviceAddress planned = 0;    // 0: there is none
    DeviceAddress floor = 0;      // no block of it lies lower, except on a stack (AreAllLive)
    DeviceAddress end = 0;        // of its live block; 0: none
    ZoneBlock* live = nullptr;    // that block
    DeviceAddress area_end = 0;   // of the zone, or of the fragment that it lies in
    uint32_t below = kNone;       // the place of the block that its last one lay above: a guess
    uint32_t supports_begin = 0;  // in supports_
    uint8_t supports = 0;         // at most EnvelopePlaces::kSupports
    bool in_zone = false;         // else it lies in a fragment, which has all its pages
    // In this placement a block of it, lowered below other places, was in the way there. The next one keeps them apart.
    bool stays_up = false;
  };
  // Of what lies below a place, as EnvelopeSupport::Place.
  struct Support {
    DeviceAddress top = 0;
    uint32_t place = 0;
  };
  void MakePlaces(const EnvelopeScript& script);
  bool AreAllLive(const Place* places, const Place& place) const;
  DeviceAddress Lowest(const Place* places, uint32_t index, DeviceAddress from) const;
  ZoneBlock* Below(const Place* places, const Place& place) const;
  [[gnu::noinline]] ZoneBlock* FindBelow(uint32_t guess, DeviceAddress planned) const;
  [[gnu::always_inline]] ZoneBlock* ClaimPlace(uint32_t entry, uint32_t units, uint64_t ordinal) noexcept;
  [[gnu::noinline]] bool TryServeChoice(uint32_t units, uint64_t ordinal, DeviceAddress* address) noexcept;
  void NoteShort(uint64_t ordinal, uint32_t entry);
  // `index`: of the block's place, or of the other one of its entry, if that has a block.
  static void NoteBlock(Place* places, uint32_t index, ZoneBlock* block);
  void ForgetBlock(uint32_t entry, DeviceAddress address);
  void Leave();
  void NoteMet(uint32_t entry, const EngineRequest& request);
  void NoteTaken(uint64_t ordinal, uint32_t entry);
  void SetShortUntil() { short_until_ = change_due() || taken_.empty() ? 0 : taken_first_ + taken_.size(); }

  PageManager* const pages_;
  DynamicBlocks* const blocks_;
  EngineStats* const stats_;
  bool enabled_;
  bool learning_ = false, leaving_ = false;
  bool served_well_ = false;    // an iteration, by a script
  bool resting_ = false;        // in this iteration a script takes over, which serves only a part of it
  uint64_t plans_at_mark_ = 0;  // made by the last mark
  // Of the iterations that are judged together: their number, their requests, and those that scripts served.
  uint64_t judged_marks_ = 0, judged_requests_ = 0, judged_planned_ = 0;
  int poor_marks_ = 0;      // iterations of which scripts served too little; a better one takes one back
  int hopeless_marks_ = 0;  // ... the envelope, in a row
  int refused_zones_ = 0;   // times that there were no addresses, or no pages in a fragment
  uint64_t merges_ = 0;     // iterations handed to the planner
  double last_share_ = 0;
  uint64_t planned_at_mark_ = 0, requests_at_mark_ = 0;
  std::vector<uint64_t> marks_;  // not handed out yet: the beginning of an iteration, and the ends
  std::shared_ptr<const EnvelopeScript> pending_;
  EnvelopeFollower follower_;
  ReleaseContext context_;     // since the last request
  std::vector<Place> places_;  // by PlaceIndex
  std::vector<Support> supports_;
  const uint8_t* past_ = nullptr;  // EnvelopeScript::past, of the script that is followed
  // By ordinal from taken_first_ on: the entry whose place the request got.
  std::vector<uint32_t> taken_;
  uint64_t taken_first_ = 0;
  uint64_t short_until_ = 0;  // requests of lower ordinals may take the short way, as far as this object knows
  std::vector<std::pair<uint32_t, uint32_t>> met_;  // as PlanJob::met; not handed out yet
};

// Returns whether the place lists as many supports as it may, and all of them have blocks, as in a high stack. Then
// those that are not listed are taken to have theirs, too, or to be over: else blocks far up would lie at their places.
inline bool EnvelopeServer::AreAllLive(const Place* places, const Place& place) const {
  const Support* const support = supports_.data() + place.supports_begin;
  return place.supports == EnvelopePlaces::kSupports &&
         std::all_of(support, support + place.supports,
                     [&](const Support& each) { return places[each.place].end != 0; });
}

// Returns the lowest address, not below `from`, at which the block of a place may lie without lying where another
// entry, live at the same time, has a place: blocks below may be smaller than their places, or released. Otherwise the
// pages between small blocks would be used in part.
inline DeviceAddress EnvelopeServer::Lowest(const Place* places, uint32_t index, DeviceAddress from) const {
  const Place& place = places[index];
  const Support* support = supports_.data() + place.supports_begin;
  if (place.floor > from && AreAllLive(places, place)) return from;
  DeviceAddress lowest = std::max(place.floor, from);
  uint32_t past = place.stays_up ? 0 : past_[index];
  for (const Support* const end = support + place.supports; support != end && support->top > lowest; ++support) {
    const DeviceAddress below_end = places[support->place].end;
    const bool passes = below_end == 0 && (past & 1) != 0;
    past >>= 1;
    if (passes) continue;
    lowest = std::max(lowest, below_end - 1 < support->top ? below_end : support->top);  // 0: the top
  }
  return lowest;
}

// Returns the block below a place. Usually that of the same place as the time before.
inline ZoneBlock* EnvelopeServer::Below(const Place* places, const Place& place) const {
  if (place.below == kNone) [[unlikely]]
    return FindBelow(kNone, place.planned);
  ZoneBlock* const guess = places[place.below].live;
  if (guess == nullptr || !ZoneBlocks::IsBelow(guess, place.planned)) [[unlikely]]
    return FindBelow(place.below, place.planned);
  return guess;
}

// Claims one of the places of an entry, and notes the block there. Returns null if none is free, or pages are missing.
inline ZoneBlock* EnvelopeServer::ClaimPlace(uint32_t entry, uint32_t units, uint64_t ordinal) noexcept {
  Place* const places = places_.data();
  PageManager* const pages = pages_;
  const uint64_t bytes = units * kBlockUnit, mask = pages->AlignmentOf(bytes) - 1;
  for (uint32_t index = EnvelopePlaces::PlaceIndex(entry, 0);; ++index) {
    Place& place = places[index];
    if (place.planned != 0) [[likely]] {
      ZoneBlock* const below = Below(places, place);
      const DeviceAddress begin = std::min(place.planned, (Lowest(places, index, below->end) + mask) & ~mask);
      const DeviceAddress end = begin + bytes;
      if ((begin & mask) != 0 || end > place.area_end) [[unlikely]]
        return nullptr;
      if (place.in_zone && !pages->ZoneReady(begin, end)) [[unlikely]]
        return nullptr;
      ZoneBlock* const claimed = blocks_->zone().Claim(below, begin, end);
      if (claimed != nullptr) [[likely]] {
        place.below = below->place;
        DynamicBlock& block = claimed->block;
        block.bytes = bytes;
        block.units = units;
        block.entry = kNone;
        block.ordinal = block.trace_id = ordinal;
        block.envelope_entry = entry;
        block.foreign = true;
        NoteBlock(places, index, claimed);
        return claimed;
      }
    }
    if (index % 2 != 0) return nullptr;
  }
}

inline bool EnvelopeServer::TryServe(uint32_t units, uint64_t ordinal, DeviceAddress* address) noexcept {
  if (ordinal >= short_until_ || pages_->changing_pages() || !blocks_->zone().prepared()) [[unlikely]]
    return false;
  const RequestSign sign = context_.Sign(units);
  int fit = 0;
  const uint32_t entry = follower_.Successor(sign, &fit);
  if (entry == kNone) [[unlikely]]
    return TryServeChoice(units, ordinal, address);
  const ZoneBlock* const claimed = ClaimPlace(entry, units, ordinal);
  if (claimed == nullptr) [[unlikely]]
    return false;
  *address = claimed->begin;
  follower_.FollowSuccessor(entry, fit, sign);
  NoteShort(ordinal, entry);
  return true;
}

inline void EnvelopeServer::NoteShort(uint64_t ordinal, uint32_t entry) {
  context_.Clear();
  follower_.Placed(entry);
  taken_[ordinal - taken_first_] = entry;
}

inline void EnvelopeServer::NoteBlock(Place* places, uint32_t index, ZoneBlock* block) {
  if (places[index].end != 0) [[unlikely]]
    index ^= 1;
  Place& place = places[index];
  block->place = index;
  place.end = block->end;
  place.live = block;
}

inline bool EnvelopeServer::TryRelease(DeviceAddress address, History* history, uint32_t* units) noexcept {
  ZoneBlocks& zone = blocks_->zone();
  if (zone.size() == 0) [[unlikely]]
    return false;
  ZoneBlock** const link = zone.LinkTo(address);
  ZoneBlock* const found = *link;
  if (found == nullptr || found->place >= places_.size()) [[unlikely]]
    return false;
  const DynamicBlock& block = found->block;
  *units = block.units;
  context_.Add(history->Released(block.ordinal, block.units));
  follower_.ReleasedKnown(block.envelope_entry);
  Place& place = places_[found->place];
  if (place.live == found) [[likely]] {
    place.end = 0;
    place.live = nullptr;
  }
  zone.EraseAt(link);
  return true;
}

}  // namespace hotpack
