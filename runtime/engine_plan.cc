// The engine's plans: when to look for one, when to take it up, what an iteration's end means.
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

// --- looking for a plan ----------------------------------------------------------------------------------------------

// `refines`: the number of the script whose requests the job's profile has; 0: none.
bool Engine::Impl::Post(PlanJob job, uint64_t refines) {
  if (follower_.active() && !follower_.lost()) job.known = current_;
  if (!planner_.Post(std::move(job))) return false;
  job_refines_ = refines;
  divergences_at_post_ = Divergences();
  hurried_ = false;
  return true;
}

// Without marks: looks at the history each time it has grown by a sixteenth, and when that came to nothing, the run has. While a script is followed: only after the
// job has left it, for a period that explains that as well.
void Engine::Impl::MaybeDetect() {
  uint64_t count = history_.Count();
  // A program that marks goes on marking; how long its first iteration is, nobody knows yet.
  constexpr uint64_t kFirst = 1 << 16;
  bool marked = marks_ >= 2 ? count - last_mark_ <= 4 * marked_length_ + 64 : marks_ == 1 && count - last_mark_ <= kFirst;
  if (marked || count < next_detection_) return;
  if (planner_.Busy()) {
    // A script is being improved that the job leaves meanwhile: what it repeats instead is worth more.
    if (job_refines_ != 0 && !hurried_ && (Divergences() != divergences_at_post_ || Outlived())) {
      hurried_ = true;
      planner_.Hurry();
    }
    return;
  }
  if (pending_ && count - pending_since_ <= 2 * uint64_t{pending_->size()}) return;  // its turn may still come
  next_detection_ = count + DetectionInterval(count);
  bool followed = follower_.active() && !follower_.lost();
  bool outlived = followed && Outlived();
  if (followed && !outlived && Divergences() == divergences_at_detection_) return;
  divergences_at_detection_ = Divergences();
  outlived_at_detection_ = outlived_;
  PlanJob job;
  job.end = count;
  job.replace = !followed || outlived;
  Post(std::move(job));
}

// Marked iterations: one is enough to plan (Sekiyama 2018, §4.1). Planned again when the last one left the script.
void Engine::Impl::Mark() {
  if (abandoned()) return;
  Lock lock(mutex_);
  Record(EventKind::kMark, 0, 0, 0);
  ++marks_;
  uint64_t count = history_.Count();
  bool followed = follower_.active() && !follower_.lost() && Divergences() == divergences_at_mark_;
  if (marks_ >= 2 && count > last_mark_ && !followed && !planner_.Busy()) {
    PlanJob job;
    job.end = count;
    job.period = count - last_mark_;
    job.replace = true;
    Post(std::move(job));
  }
  marked_length_ = count - last_mark_;
  last_mark_ = count;
  divergences_at_mark_ = Divergences();
  if (!follower_.active()) {
    iterations_ = marks_ - 1;
    iterations_from_ = count;
  }
}

// A block has been released after `age` requests.
void Engine::Impl::NoteLife(uint32_t age) {
  if (!follower_.active() || follower_.lost()) return;
  if (age > current_->size() && age <= kMaxUnroll * uint64_t{current_->profile.period}) ++outlived_;
}

// Blocks outlive the cycle again and again: their lives repeat only after several periods.
bool Engine::Impl::Outlived() const {
  return outlived_ >= 2 + outlived_at_detection_;
}

// On the planner's thread.
void Engine::Impl::Plan(const PlanJob& job, const std::atomic<bool>* cancel) {
  if (job.save) return Save(options_.plan_time_limit_ns);
  std::optional<Profile> profile = FindProfile(history_, job);
  if (!profile) return;
  uint64_t most_units = 0;
  std::vector<AddressRange> spare = SpareMemory(*profile, &most_units);
  // Lives that repeat only after more periods than have been seen: the longest of each block's are too much together.
  if (!job.profile && profile->unroll > 1 && PeakUnits(*profile) > most_units + most_units / 2) return;
  if (job.profile && job.known && !KeepNearLoad(&*profile, job.known->profile, NearlyNoMore(most_units, arena_.chunk())) &&
      !job.replace) {
    return;
  }
  std::shared_ptr<const Script> script =
      MakeScript(std::move(*profile), most_units, spare, arena_.chunk(), options_.plan_time_limit_ns, cancel);
  if (!script || !PlanFits(*script)) return;
  Lock lock(mutex_);
  pending_ = std::move(script);
  pending_since_ = history_.Count();
  pending_refines_ = job_refines_;
  ++plans_;
  UpdateFast();
}

// Weights and optimizer state came in between other blocks; the chunks they lie in are held as long as they live. What
// is left over of these chunks is offered to the plan, if it is more than a two-hundredth of all.
// *most_units: the rest of the largest load so far.
std::vector<AddressRange> Engine::Impl::SpareMemory(const Profile& profile, uint64_t* most_units) {
  Lock lock(mutex_);
  std::vector<AddressRange> kept;
  uint64_t count = history_.Count(), kept_units = 0;
  for (const auto& [address, block] : dynamic_) {
    bool stays = block.ordinal == kUnmonitored || count - block.ordinal > profile.period;
    if (!stays) continue;
    kept_units += block.units;
    if (InReservation(address)) kept.push_back({address, block.bytes});
  }
  *most_units = live_peak_units_ - std::min(kept_units, live_peak_units_);
  std::vector<AddressRange> spare = arena_.Fragments(kept);
  uint64_t sum = 0;
  for (const AddressRange& range : spare) sum += range.bytes;
  if (sum < 2 * arena_.chunk() || sum < live_peak_units_ * kUnitBytes / 200) spare.clear();
  return spare;
}

// --- taking it up ----------------------------------------------------------------------------------------------------

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
  if (period == n) return 0;
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
    // The job has gone another way, and is served: the plan came too late.
    uint64_t waited = history_.Count() - pending_since_;
    if (follower_.active() && !follower_.lost() && waited > 2 * uint64_t{pending_->size()} + 64) pending_.reset();
    return false;
  }
  // The memory beside the zone that the plan counts on may have gone since, with the blocks that held it: plan again. (Its
  // addresses may even become part of the zone.)
  for (const Hole& hole : pending_->holes) {
    if (arena_.Mapped(hole.address, hole.units * kUnitBytes)) continue;
    PlanJob job;
    job.profile = pending_->profile;
    if (Post(std::move(job), pending_refines_)) pending_.reset();
    return false;
  }
  Activate();
  return true;
}

// Addresses for a script: half as many again as it needs, so that a plan that grows can stay where it is; where addresses
// are few, just what it needs.
bool Engine::Impl::TakeZone(const Script& script) {
  if (!memory_->Fixed() && arena_.TakeZone(script.height_bytes + script.height_bytes / 2, &zone_)) return true;
  return arena_.TakeZone(script.height_bytes, &zone_);
}

// `position`: the entry that the next request is.
void Engine::Impl::Activate(uint32_t position) {
  constexpr int kRoomTries = 4;  // iterations, with different blocks in the way
  std::shared_ptr<const Script> script = std::move(pending_);
  pending_.reset();
  uint64_t count = history_.Count();
  const Profile& profile = script->profile;
  if (!ReuseZone(script)) {
    if (follower_.active()) RetireScript();
    if (!TakeZone(*script)) {  // once free memory is cleared there may be addresses
      room_due_ = true;
      if (++room_tries_ < kRoomTries) {
        pending_ = std::move(script);
      } else {
        room_tries_ = 0;
      }
      return;
    }
    room_tries_ = 0;
    follower_.Start(script, position, base_, zone_.begin);
    TakeHoles();
  }
  fresh_zone_ = false;
  MarkMappedEntries();
  ++script_number_;
  if (period_ != profile.period || (current_ && current_->profile.unroll != profile.unroll)) {  // another cycle
    steady_ = false;
    steady_iteration_ = -1;
  }
  if (period_ != profile.period) {
    if (marks_ > 0) {
      iterations_ = marks_;  // what came before the first mark counts as one
    } else {
      // What came before the repetition, if it was more than a part of an iteration, counts as one.
      uint64_t before = profile.seen_from > profile.period / 2 ? 1 : 0;
      iterations_ = before + (count - std::min(count, profile.seen_from)) / profile.period;
    }
  } else if (current_ != script) {
    iterations_ += (count - iterations_from_) / profile.period;
  }
  iterations_from_ = count;
  current_ = std::move(script);
  displaced_at_end_ = displaced_;
  period_ = profile.period;
  carried_ = profile.carried_blocks;
  plan_height_ = current_->height_bytes + current_->hole_bytes;
  plan_lower_bound_ = current_->lower_bound_bytes;
  settled_ = follower_.UnmappedEntries() == 0;
  activated_at_ = count;
  zone_searches_ = 0;
  outlived_at_detection_ = outlived_;
  divergences_at_end_ = Divergences();
  bulk_map_due_ = !settled_;
  arena_.NewEpoch();  // free chunks that the coming iteration does not use are given back at its end
  lost_since_ = 0;
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

// A plan without holes that fits into the zone that is there: follow it around the blocks that still live. Their pages
// stay where they are.
bool Engine::Impl::ReuseZone(const std::shared_ptr<const Script>& script) {
  if (!follower_.active() || fresh_zone_ || script->height_bytes > zone_.bytes) return false;
  if (!script->holes.empty() || !holes_.empty()) return false;
  std::vector<Follower::Range> live = follower_.LiveRanges();
  for (const Follower::Range& range : live) {
    if (range.entry == kNone) continue;
    DynamicBlock block = ToDynamic(range.entry);
    block.foreign = true;
    dynamic_.emplace(AddressOf(range.begin), block);
  }
  divergences_ += follower_.divergences();
  follower_.Start(script, 0, base_, zone_.begin);
  for (const Follower::Range& range : live) follower_.AddForeign(range.begin, range.end);
  return true;
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
  // What is free of the holes, around the blocks there: in ascending order, like these.
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
  divergences_ += follower_.divergences();
  follower_.Stop();
  UpdateFast();  // at once: others may come in before this request is done
  iterations_from_ = history_.Count();
  settled_ = bulk_map_due_ = false;
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
  if (pending_) return;
  pending_ = current_;
  pending_since_ = count;
  pending_refines_ = 0;
}

// --- iterations ------------------------------------------------------------------------------------------------------

void Engine::Impl::EndIteration(Lock& lock) {
  if (on_trial_) EndTrial();
  if (!current_) return;  // it did not pass
  iterations_ += uint64_t{follower_.TakeEnded()} * current_->profile.unroll;
  iterations_from_ = history_.Count();
  retained_ = dynamic_.size();
  // A block that stays lies where the script wants to serve: the same plan, but elsewhere. (Where chunks are few, one more
  // is dearer than that.)
  if (displaced_ != displaced_at_end_ && arena_.reserved() >= 16 * arena_.chunk() && !fresh_zone_ && !pending_ &&
      !planner_.Busy() && SomethingOverstays()) {
    PlanJob job;
    job.profile = follower_.LearnedProfile();
    job.replace = true;
    fresh_zone_ = Post(std::move(job), script_number_);
  }
  // Displaced although nobody left the script: perhaps we are a period off.
  if (displaced_ != displaced_at_end_ && follower_.active() && !follower_.lost() && follower_.cursor() == 0) {
    if (uint32_t phase = BestPhase(*current_); phase != 0) follower_.SkipTo(phase);
  }
  displaced_at_end_ = displaced_;
  bool improving = pending_ && pending_refines_ == script_number_;  // the next iteration has another plan
  // Reoptimisation (Sekiyama 2018, §4.3), in the background: larger sizes, longer lives.
  if (follower_.learned() && !pending_ && !planner_.Busy() && !Outlived()) {
    PlanJob job;
    job.profile = follower_.LearnedProfile();
    improving = Post(std::move(job), script_number_);
  }
  if (Divergences() != divergences_at_end_) diverged_until_ = history_.Count();
  divergences_at_end_ = Divergences();
  if (!settled_ || (grew_ && !grew_now_)) Housekeep(lock);
  grew_now_ = false;
  arena_.NewEpoch();
  if (settled_ && !steady_ && !improving) BeginSteady();
  if (spill_said_) TrimSpill(lock);
  if (options_.sink != nullptr) MaybeSave();
  FlushStats();
}

// Whether a block that is not the script's has been at one of its places for longer than the whole cycle.
bool Engine::Impl::SomethingOverstays() const {
  uint64_t count = history_.Count();
  return std::any_of(dynamic_.begin(), dynamic_.end(), [&](const auto& entry) {
    const DynamicBlock& block = entry.second;
    return block.foreign && (block.ordinal == kUnmonitored || count - block.ordinal > current_->size());
  });
}

void Engine::Impl::BeginSteady() {
  steady_ = true;
  steady_iteration_ = static_cast<int64_t>(iterations_);
  requests_before_ = Requests();
  planned_before_ = planned_;
  calls_before_ = arena_.driver_calls();
  passed_before_ = passed_through_;
  steady_began_now_ = true;
  reserved_steady_ = arena_.held();
}

}  // namespace hotpack
