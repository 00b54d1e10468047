// The engine's scripts: which of them is followed, how one is taken up, how one is left.
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

// --- a plan that waits for its iteration -----------------------------------------------------------------------------

// Whether the next request, of `units`, begins an iteration of `script`: the requests before are the script's last. All
// of them at first; after waiting for long, fewer are enough.
bool Engine::Impl::TailMatches(const Script& script, uint32_t units) const {
  if (script.entries[0].units != units) return false;
  uint64_t n = script.size(), count = history_.Count(), waited = count - pending_since_;
  uint64_t limit = waited < 2 * n ? 4096 : waited < 8 * n ? 256 : 64;
  uint64_t length = std::min({n, limit, count, history_.Window() - 1});
  for (uint64_t k = 1; k <= length; ++k) {
    if (history_.Units(count - k) != script.entries[n - k].units) return false;
  }
  return BestPhase(script) == 0;
}

// Several periods in one cycle ask for the same, but what they ask for lives differently long. Where in the cycle the next
// request is, to judge by the lives of the last ones: the first entry of a period.
uint32_t Engine::Impl::BestPhase(const Script& script) const {
  uint64_t n = script.size(), period = script.profile.period, count = history_.Count();
  if (period == n || script.profile.unroll > kMaxUnroll) return 0;  // of a loop so short, whichever
  uint64_t length = std::min({n, count, history_.Window() - 1});
  uint64_t least = UINT64_MAX, best = 0;
  for (uint64_t phase = 0; phase < n; phase += period) {
    uint64_t mismatch = 0;
    for (uint64_t k = 1; k <= length; ++k) {
      const ProfileBlock& block = script.profile.blocks[(phase + n - k) % n];
      uint32_t age = history_.Age(count - k);
      bool as_planned = age == kStillLive ? !block.planned || k <= block.age
                                          : block.planned && age >= block.min_age && age <= block.age;
      if (!as_planned) mismatch += block.units;
    }
    if (mismatch < least) {
      least = mismatch;
      best = phase;
    }
  }
  return static_cast<uint32_t>(best);
}

bool Engine::Impl::TryActivate(uint32_t units) {
  if (page_work_ || mapping_entries_ != 0) return false;  // at the next iteration, then
  bool refines = pending_refines_ != 0 && pending_refines_ == script_number_ && follower_.active() && !follower_.lost();
  if (refines ? follower_.cursor() != 0 : !TailMatches(*pending_, units)) {
    // The job has gone another way, and is served: the plan came too late. It is known from now on.
    uint64_t waited = history_.Count() - pending_since_;
    if (follower_.active() && !follower_.lost() && waited > 2 * uint64_t{pending_->size()} + 64) {
      if (pending_ != current_) AddVariant(std::move(pending_), pending_refines_);
      pending_.reset();
    }
    return false;
  }
  // The memory beside the zone that the plan counts on may have gone since, with the blocks that held it: plan again. (Its
  // addresses may even become part of the zone.)
  if (!HolesHavePages(*pending_)) {
    PlanJob job;
    job.profile = pending_->profile;
    if (Post(std::move(job), pending_refines_)) pending_.reset();
    return false;
  }
  Activate();
  return true;
}

bool Engine::Impl::HolesHavePages(const Script& script) const {
  return std::all_of(script.holes.begin(), script.holes.end(),
                     [&](const Hole& hole) { return arena_.Mapped(hole.address, hole.units * kUnitBytes); });
}

// The script becomes known: in place of the variant that it refines (a number), if that is still there.
Variant* Engine::Impl::AddVariant(std::shared_ptr<const Script> script, uint64_t refines) {
  if (refines != 0) {
    if (Variant* replaced = variants_.Replace(refines, script)) return replaced;
  }
  return variants_.Add(std::move(script), history_.Count(), script_number_);
}

// `position`: the entry of the plan that waits that the next request is.
void Engine::Impl::Activate(uint32_t position) {
  constexpr int kRoomTries = 4;  // iterations, with different blocks in the way
  Variant* variant = variants_.Find(pending_.get());
  if (variant == nullptr) variant = AddVariant(std::move(pending_), pending_refines_);
  pending_.reset();
  uint64_t count = history_.Count();
  const Profile& profile = variant->script->profile;
  bool first = variant->uses == 0, other_period = period_ != profile.period;
  bool other_cycle = other_period || (current_ && current_->profile.unroll != profile.unroll);
  std::shared_ptr<const Script> before = current_;
  if (!TakeUp(variant, position)) {  // once free memory is cleared there may be addresses
    room_due_ = true;
    if (++room_tries_ < kRoomTries) {
      pending_ = variant->script;
      pending_refines_ = 0;
    } else {
      room_tries_ = 0;
    }
    return;
  }
  room_tries_ = 0;
  if (other_cycle && first) {
    steady_ = false;
    steady_iteration_ = -1;
  }
  if (other_period && first) {
    CountIterations(profile);
  } else if (before != current_) {
    iterations_ += (count - iterations_from_) / profile.period;
  }
  iterations_from_ = count;
}

// Iterations so far, in units of the profile's period.
void Engine::Impl::CountIterations(const Profile& profile) {
  if (marks_ > 0) {
    iterations_ = marks_;  // what came before the first mark counts as one
    return;
  }
  // What came before the repetition, if it was more than a part of an iteration, counts as one.
  const uint64_t count = history_.Count(), unseen = profile.seen_from > profile.period / 2 ? 1 : 0;
  iterations_ = unseen + (count - std::min(count, profile.seen_from)) / profile.period;
}

// --- taking a script up ----------------------------------------------------------------------------------------------

// Addresses for a script: half as many again as it needs, so that a plan that grows can stay where it is; where addresses
// are few, just what it needs.
bool Engine::Impl::TakeZone(const Script& script) {
  if (!memory_->Fixed() && arena_.TakeZone(script.height_bytes + script.height_bytes / 2, &zone_)) return true;
  return arena_.TakeZone(script.height_bytes, &zone_);
}

// Whether the script can be followed in the zone that is there. (Its holes may lie beside blocks that stay in that zone.)
bool Engine::Impl::FitsZone(const Script& script) const {
  return script.height_bytes <= zone_.bytes && std::none_of(script.holes.begin(), script.holes.end(), [&](const Hole& hole) {
           return hole.address < zone_.begin + zone_.bytes && zone_.begin < hole.address + hole.units * kUnitBytes;
         });
}

// Follows `variant` from now on; the next request is its entry `position`. Blocks that are live stay where they are. In the
// zone that is there, unless it is too low or to be left. False: there are no addresses for it; nothing is followed then.
bool Engine::Impl::TakeUp(Variant* variant, uint32_t position) {
  const std::shared_ptr<const Script> script = variant->script;
  bool in_place = follower_.active() && !fresh_zone_ && FitsZone(*script);
  std::vector<Follower::Range> foreign;
  if (in_place) {
    foreign = LeaveInPlace(*script);
    if (Variant* left = variants_.Find(script_number_)) {
      left->parked = std::move(follower_);
      left->used_at = history_.Count();
    }
    follower_ = std::move(variant->parked);
  } else {
    if (follower_.active()) RetireScript();
    if (!TakeZone(*script)) return false;
    zone_used_ = 0;
  }
  zone_used_ = std::max(zone_used_, script->height_bytes);
  follower_.Start(script, position, base_, zone_.begin);
  follower_.AddForeign(foreign);
  if (holes_.empty()) TakeHoles();
  MarkMappedEntries();
  fresh_zone_ = false;
  script_number_ = variant->number;
  ++taken_up_;
  ++variant->uses;
  variant->fresh = false;
  variant->used_at = history_.Count();
  current_ = script;
  period_ = script->profile.period;
  longest_period_ = std::max(longest_period_, period_);
  carried_ = script->profile.carried_blocks;
  plan_height_ = script->height_bytes + script->hole_bytes;
  plan_lower_bound_ = script->lower_bound_bytes;
  if (options_.load != nullptr) *options_.load = script->load;
  settled_ = follower_.UnmappedEntries() == 0;
  bulk_map_due_ = !settled_;
  displaced_at_end_ = displaced_;
  activated_at_ = boundary_ = history_.Count();
  boundary_before_ = kUnmonitored;
  zone_searches_ = 0;
  outlived_at_detection_ = outlived_;
  divergences_at_end_ = Divergences();
  arena_.NewEpoch();  // free chunks that the coming iteration does not use are given back at its end
  lost_since_ = 0;
  if (pending_ == script) pending_.reset();
  return true;
}

// The script that is followed gives way to `next` in the same zone. Returns what is live at places that may be the next
// one's: each of these blocks is an ordinary one from now on, foreign to the zone.
std::vector<Follower::Range> Engine::Impl::LeaveInPlace(const Script& next) {
  std::vector<Follower::Range> live = follower_.LiveRanges(), foreign;
  const bool keep_holes = HoldsHoles(next);
  std::vector<AddressRange> outside;
  for (Follower::Range& range : live) {
    AddressRange place{AddressOf(range.begin), uint64_t{range.end - range.begin} * kUnitBytes};
    bool stays = keep_holes || InZone(place);
    if (!stays) outside.push_back(place);
    if (range.entry != kNone) dynamic_.emplace(place.begin, ToDynamic(range.entry));
    dynamic_[place.begin].foreign = stays;
    range.entry = kNone;
    if (stays) foreign.push_back(range);
  }
  if (!keep_holes) FreeHoles(outside);
  divergences_ += follower_.divergences();
  return foreign;
}

// Whether the holes that are held have all that the script needs. (Scripts that are followed by turns use the same memory
// beside retained blocks, but not each all of it.)
bool Engine::Impl::HoldsHoles(const Script& script) const {
  return std::all_of(script.holes.begin(), script.holes.end(), [&](const Hole& hole) {
    return std::any_of(holes_.begin(), holes_.end(), [&](const AddressRange& held) {
      return held.begin <= hole.address && hole.address + hole.units * kUnitBytes <= held.begin + held.bytes;
    });
  });
}

// The holes are ordinary memory from now on; `live`: what is in use of them, ascending.
void Engine::Impl::FreeHoles(const std::vector<AddressRange>& live) {
  for (const AddressRange& hole : holes_) {
    DeviceAddress from = hole.begin, end = hole.begin + hole.bytes;
    for (const AddressRange& block : live) {
      if (block.begin + block.bytes <= from || block.begin >= end) continue;
      if (block.begin > from) arena_.Free(from, block.begin - from);
      from = block.begin + block.bytes;
    }
    if (from < end) arena_.Free(from, end - from);
  }
  holes_.clear();
}

Engine::Impl::DynamicBlock Engine::Impl::ToDynamic(uint32_t entry) const {
  DynamicBlock block;
  block.bytes = follower_.PlannedUnits(entry) * kUnitBytes;
  block.units = follower_.Units(entry);
  block.ordinal = block.trace_id = follower_.Ordinal(entry);
  return block;
}

// The script's holes are its own from now on. Blocks that still lie there are waited for.
void Engine::Impl::TakeHoles() {
  for (const Hole& hole : follower_.script().holes) {
    AddressRange range{hole.address, hole.units * kUnitBytes};
    if (!arena_.TakeRange(range)) continue;  // TryActivate has seen to it that all have their pages
    holes_.push_back(range);
    auto it = dynamic_.upper_bound(range.begin);
    if (it != dynamic_.begin()) --it;
    for (; it != dynamic_.end() && it->first < range.begin + range.bytes; ++it) {
      if (it->first + it->second.bytes <= range.begin || it->second.foreign) continue;
      it->second.foreign = true;
      follower_.AddForeign(OffsetOf(it->first), OffsetOf(it->first + it->second.bytes));
    }
  }
  std::sort(holes_.begin(), holes_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

// Frees what of `range` lies neither in the zone nor in a hole of the script.
void Engine::Impl::FreeOutside(const AddressRange& range) {
  if (InZone(range)) return;  // blocks never lie across the zone's ends
  DeviceAddress from = range.begin, end = range.begin + range.bytes;
  for (const AddressRange& hole : holes_) {
    if (hole.begin + hole.bytes <= from) continue;
    if (hole.begin >= end) break;
    if (hole.begin > from) arena_.Free(from, hole.begin - from);
    from = hole.begin + hole.bytes;
  }
  if (from < end) arena_.Free(from, end - from);
}

// Nothing is followed any more; what lives at the script's places goes on living there, in ordinary memory.
void Engine::Impl::RetireScript() {
  std::vector<AddressRange> in_zone;
  std::vector<AddressRange> live;
  for (const Follower::Range& range : follower_.LiveRanges()) {
    AddressRange place{AddressOf(range.begin), uint64_t{range.end - range.begin} * kUnitBytes};
    (InZone(place) ? in_zone : live).push_back(place);
    if (range.entry == kNone) {
      dynamic_[place.begin].foreign = false;
    } else {
      dynamic_.emplace(place.begin, ToDynamic(range.entry));
    }
  }
  arena_.RetireZone(zone_, in_zone);
  zone_ = {};
  FreeHoles(live);
  divergences_ += follower_.divergences();
  follower_.Stop();
  UpdateFast();  // at once: others may come in before this request is done
  iterations_from_ = history_.Count();
  settled_ = bulk_map_due_ = false;
}

// The script is taken up again when its iteration's end is seen.
void Engine::Impl::WaitFor(const std::shared_ptr<const Script>& script) {
  if (pending_) return;
  pending_ = script;
  pending_since_ = history_.Count();
  pending_refines_ = 0;
}

// Lost for longer than an iteration: the script waits, without memory, until its iteration is seen again.
void Engine::Impl::MaybePark() {
  if (!follower_.active() || !follower_.lost()) {
    lost_since_ = 0;
    return;
  }
  uint64_t count = history_.Count();
  if (lost_since_ == 0) {
    lost_since_ = count;
    DetectSoon(count);
  }
  if (count - lost_since_ <= std::max<uint64_t>(256, follower_.script().size())) return;
  if (page_work_ || mapping_entries_ != 0) return;
  RetireScript();
  lost_since_ = 0;
  WaitFor(current_);
}

// --- one script for another ------------------------------------------------------------------------------------------

// An iteration has ended. Where another one has come after it each of the last times, it is that one's turn now.
void Engine::Impl::FollowPredicted() {
  if (variants_.size() < 2 || page_work_ || mapping_entries_ != 0 || pending_) return;
  if (!follower_.active() || follower_.lost() || follower_.cursor() != 0) return;
  uint32_t phase = 0;
  Variant* next = variants_.Predict(script_number_, &phase);
  if (next == nullptr || !HolesHavePages(*next->script) || !FitsZone(*next->script)) return;
  if (!SwitchTo(next, phase)) return;
  boundary_ = history_.Count() - std::min<uint64_t>(history_.Count(), phase);
  phase_ = phase;
}

// As TakeUp; the last request is that entry, or the one before it.
bool Engine::Impl::SwitchTo(Variant* next, uint32_t position) {
  const Profile& profile = next->script->profile;
  if (next->fresh) {
    steady_ = false;
    steady_iteration_ = -1;
    // So much longer than any before: those were parts of an iteration.
    if (profile.period >= 2 * longest_period_) CountIterations(profile);
  }
  ++switches_;
  return TakeUp(next, position);
}

// Switches to another script if that is known to ask for what the job has asked for: for all of the iteration under way, or
// for the last requests, if nothing the script says was found for a while. `newest` is the ordinal of the last request.
void Engine::Impl::MaybeSwitch(uint64_t newest) {
  constexpr uint64_t kOfHead = 4;       // requests that begin another iteration
  constexpr uint32_t kOfContext = 16;   // ... that may lie anywhere in it
  constexpr uint32_t kWithout = 48;     // ... where nothing is followed
  constexpr uint64_t kPerRequest = 16;  // entries of scripts taken up for each request there was
  if (page_work_ || mapping_entries_ != 0 || variants_.size() == 0) return;
  bool followed = follower_.active() && !follower_.lost();
  uint64_t number = follower_.active() ? script_number_ : 0;
  Variant* next = nullptr;
  uint32_t position = 0;
  auto try_head = [&](uint64_t begin) {
    if (next != nullptr || begin > newest) return;
    next = variants_.MatchHead(history_, begin, newest, number);
    position = static_cast<uint32_t>(newest - begin);
  };
  if (followed) {
    try_head(boundary_);
    try_head(ended_at_);
    try_head(boundary_before_);
    // The same of an iteration that is taken to begin somewhat earlier.
    uint64_t since = newest - std::min(newest, std::max(boundary_, ended_at_)) + 1;
    if (next == nullptr && since >= kOfHead) {
      auto least = static_cast<uint32_t>(std::min<uint64_t>(since, Variants::kLongestContext));
      next = variants_.MatchContext(history_, newest, least, number, &position);
    }
    if (follower_.unmatched() + 1 >= kOfHead && newest >= kOfHead) try_head(newest - (kOfHead - 1));
  } else if (newest >= kOfContext) {
    try_head(newest - (kOfContext - 1));
  }
  if (next == nullptr && (!followed || follower_.unmatched() + 1 >= kOfHead)) {
    next = variants_.MatchContext(history_, newest, followed ? kOfContext : kWithout, number, &position);
  }
  if (next == nullptr) return;
  switch_work_ += next->script->size();
  if (switch_work_ > newest * kPerRequest) {  // to and fro: the script is followed as well as may be
    switch_work_ -= next->script->size();
    return;
  }
  if (!HolesHavePages(*next->script)) {
    variants_.Remove(next->number);
    return;
  }
  if (!SwitchTo(next, position)) return;
  boundary_ = newest - std::min<uint64_t>(newest, position);
  const uint32_t size = follower_.script().size();
  phase_ = static_cast<uint32_t>((position + size - (newest - ended_at_) % size) % size);
}

}  // namespace hotpack
