#include "runtime/engine/script_switcher.h"

#include <algorithm>
#include <utility>

namespace hotpack {

// --- a pending script -----------------------------------------------------------------------------------------------

void ScriptSwitcher::SetPending(std::shared_ptr<const Script> script, uint64_t replans) {
  pending_ = {std::move(script), replans, history_->Count()};
  fast_->CloseRequests();  // the next one may begin the iteration
}

// Returns whether the next request, for `units`, begins an iteration of `script`: then the requests before it are the
// script's last. At first all of them must match; after a long wait, fewer suffice.
bool ScriptSwitcher::TailMatches(const Script& script, uint32_t units) const {
  if (script.entries[0].units != units) return false;
  uint64_t n = script.size(), count = history_->Count(), waited = count - pending_.since;
  uint64_t limit = waited < 2 * n ? 4096 : waited < 8 * n ? 256 : 64;
  uint64_t length = std::min({n, limit, count, history_->Window() - 1});
  for (uint64_t k = 1; k <= length; ++k) {
    if (history_->Units(count - k) != script.entries[n - k].units) return false;
  }
  return BestPhase(script) == 0;
}

// Several periods in one cycle have the same requests but different lives. Judging by the lives of the last requests,
// returns the entry of the next one: the first entry of a period.
uint32_t ScriptSwitcher::BestPhase(const Script& script) const {
  uint64_t n = script.size(), period = script.profile.period, count = history_->Count();
  if (period == n || script.profile.unroll > kMaxUnroll) return 0;  // in so short a loop, any phase will do
  uint64_t length = std::min({n, count, history_->Window() - 1});
  uint64_t least = UINT64_MAX, best = 0;
  for (uint64_t phase = 0; phase < n; phase += period) {
    uint64_t mismatch = 0;
    for (uint64_t k = 1; k <= length; ++k) {
      const ProfileBlock& block = script.profile.blocks[(phase + n - k) % n];
      uint32_t age = history_->Age(count - k);
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

ScriptSwitcher::Activation ScriptSwitcher::TryActivate(uint32_t units) {
  if (!pending_.script || pages_->zone_pinned()) return Activation::kWaits;  // try again at the next iteration
  const bool replans = pending_.replans != 0 && pending_.replans == number_ && Follows();
  if (replans ? follower_.cursor() != 0 : !TailMatches(*pending_.script, units)) {
    // The job has taken another path and is served: the plan came too late. It becomes known now.
    const uint64_t waited = history_->Count() - pending_.since;
    if (Follows() && waited > 2 * uint64_t{pending_.script->size()} + 64) {
      if (pending_.script != current_) AddVariant(std::move(pending_.script), pending_.replans);
      pending_.script.reset();
    }
    return Activation::kWaits;
  }
  // The memory outside the zone that the plan counts on may be gone, along with the blocks that held it. Then it must
  // be planned again. (Its addresses may even become part of the zone.)
  if (!pages_->FragmentsHavePages(*pending_.script)) return Activation::kReplanNeeded;
  waits_for_capture_ = !pages_->CanMapNow(*pending_.script);  // best fit serves until its end
  if (waits_for_capture_) return Activation::kWaits;
  Activate(0);
  return Activation::kActivated;
}

// Makes the script known. It replaces the variant with number `replans`, if that still exists.
Variant* ScriptSwitcher::AddVariant(std::shared_ptr<const Script> script, uint64_t replans) {
  if (replans != 0) {
    if (Variant* replaced = variants_.Replace(replans, script)) return replaced;
  }
  return variants_.Add(std::move(script), history_->Count(), number_);
}

void ScriptSwitcher::Activate(uint32_t position) {
  constexpr int kReclaimTries = 4;  // iterations, with different blocks in the way
  Variant* variant = variants_.Find(pending_.script.get());
  if (variant == nullptr) variant = AddVariant(std::move(pending_.script), pending_.replans);
  pending_.script.reset();
  const uint64_t count = history_->Count();
  const Profile& profile = variant->script->profile;
  const std::shared_ptr<const Script> before = current_;
  const bool first = variant->uses == 0, other_period = !before || before->profile.period != profile.period;
  const bool other_cycle = other_period || before->profile.unroll != profile.unroll;
  if (!StartFollowing(variant, position)) {  // addresses may be available once free memory is cleared
    reclaim_due_ = true;
    if (++reclaim_tries_ < kReclaimTries) {
      pending_.script = variant->script;
      pending_.replans = 0;
    } else {
      reclaim_tries_ = 0;
    }
    return;
  }
  reclaim_tries_ = 0;
  if (other_cycle && first) stats_->EndSteady();
  if (other_period && first) {
    stats_->RecountIterations(profile, count);
  } else if (before != current_) {
    stats_->AddIterationsSince(profile.period, count);
  } else {
    stats_->SkipTo(count);
  }
}

bool ScriptSwitcher::TakeReclaimDue() { return std::exchange(reclaim_due_, false); }

// --- starting a script ----------------------------------------------------------------------------------------------

AddressRange ScriptSwitcher::PlaceOf(const Follower::Range& range) const {
  return {pages_->AddressOf(range.begin), uint64_t{range.end - range.begin} * kBlockUnit};
}

DynamicBlock ScriptSwitcher::ToDynamic(uint32_t entry) const {
  DynamicBlock block;
  block.bytes = follower_.PlannedUnits(entry) * kBlockUnit;
  block.units = follower_.Units(entry);
  block.ordinal = block.trace_id = follower_.Ordinal(entry);
  return block;
}

// Follows `variant` from now on; the next request is its entry `position`. Live blocks stay where they are. Stays in
// the current zone, or returns to the last one, unless that is too small or must be left. Returns false if there are no
// addresses: then no script is followed.
bool ScriptSwitcher::StartFollowing(Variant* variant, uint32_t position) {
  const std::shared_ptr<const Script> script = variant->script;
  const bool in_place = follower_.active() && !fresh_zone_ && pages_->FitsZone(*script);
  std::vector<Follower::Range> foreign;
  if (in_place) {
    foreign = LeaveInPlace(*script);
    if (Variant* left = variants_.Find(number_)) {
      left->idle_follower = std::move(follower_);
      left->used_at = history_->Count();
    }
    follower_ = std::move(variant->idle_follower);
  } else {
    if (follower_.active()) Retire();
    if ((fresh_zone_ || !pages_->RetakeZone(*script, history_->Count())) && !pages_->TakeZone(*script)) return false;
  }
  follower_.Start(script, position, pages_->base(), pages_->zone().begin);
  follower_.AddForeign(foreign);
  pages_->BeginScript();
  fresh_zone_ = false;
  head_ = 0;
  number_ = variant->number;
  ++epoch_;
  ++variant->uses;
  variant->fresh = false;
  variant->used_at = history_->Count();
  current_ = script;
  longest_period_ = std::max<uint64_t>(longest_period_, script->profile.period);
  if (load_ != nullptr) *load_ = script->load;
  displaced_at_end_ = stats_->displaced();
  activated_at_ = iteration_begin_ = history_->Count();
  previous_begin_ = kUnmonitored;
  overlong_at_start_ = overlong_lives_;
  divergences_at_end_ = Divergences();
  lost_since_ = 0;
  if (pending_.script == script) pending_.script.reset();
  return true;
}

// The followed script gives way to `next` in the same zone. Returns the live blocks at places that may belong to
// `next`. Each becomes an ordinary block, foreign to the zone.
std::vector<Follower::Range> ScriptSwitcher::LeaveInPlace(const Script& next) {
  std::vector<Follower::Range> live = follower_.LiveRanges(), foreign;
  const bool keep_fragments = pages_->HaveFragments(next);
  std::vector<AddressRange> outside;
  for (Follower::Range& range : live) {
    const AddressRange place = PlaceOf(range);
    const bool stays = keep_fragments || pages_->InZone(place);
    if (!stays) outside.push_back(place);
    if (range.entry != kNone) blocks_->Add(place.begin, ToDynamic(range.entry));
    blocks_->SetForeign(place.begin, stays);
    range.entry = kNone;
    if (stays) foreign.push_back(range);
  }
  if (!keep_fragments) pages_->FreeFragments(outside);
  divergences_ += follower_.divergences();
  return foreign;
}

// --- leaving --------------------------------------------------------------------------------------------------------

void ScriptSwitcher::Retire() {
  std::vector<AddressRange> in_zone, in_fragments;
  for (const Follower::Range& range : follower_.LiveRanges()) {
    const AddressRange place = PlaceOf(range);
    (pages_->InZone(place) ? in_zone : in_fragments).push_back(place);
    if (range.entry == kNone) {
      blocks_->SetForeign(place.begin, false);
    } else {
      blocks_->Add(place.begin, ToDynamic(range.entry));
    }
  }
  pages_->RetireZone(in_zone, in_fragments);
  divergences_ += follower_.divergences();
  follower_.Stop();
  fast_->Close();  // at once: other threads may run before this request is done
  stats_->SkipTo(history_->Count());
}

void ScriptSwitcher::Park() {
  Retire();
  if (!pending_.script) SetPending(current_, 0);
}

ScriptSwitcher::Loss ScriptSwitcher::NoteLoss() {
  if (!follower_.active() || !follower_.lost()) {
    lost_since_ = 0;
    return Loss::kNotLost;
  }
  const uint64_t count = history_->Count();
  const Loss loss = lost_since_ == 0 ? Loss::kJustLost : Loss::kNotLost;
  if (loss == Loss::kJustLost) lost_since_ = count;
  if (count - lost_since_ <= std::max<uint64_t>(256, follower_.script().size()) || pages_->zone_pinned()) return loss;
  lost_since_ = 0;
  Park();
  return Loss::kParked;
}

bool ScriptSwitcher::PlaceAtHome(uint32_t units, DeviceAddress* address) {
  if (!parked() || fresh_zone_ || head_ >= current_->size()) return false;
  const std::vector<ScriptEntry>& entries = current_->entries;
  if (entries[head_].units != units) head_ = 0;
  const ScriptEntry& entry = entries[head_];
  if (entry.units != units) return false;
  ++head_;
  if (entry.offset == kNone || entry.offset < current_->zone_offset) return false;
  return pages_->TryAllocateInLastZone(*current_, entry.offset - current_->zone_offset, units, address);
}

void ScriptSwitcher::Forget() {
  if (follower_.active()) Retire();
  pages_->ForgetLastZone();
  variants_.Remove(number_);
  number_ = 0;  // observed as from the beginning: no script is parked
  current_.reset();
  if (load_ != nullptr) *load_ = {};
}

void ScriptSwitcher::ForgetAll() {
  DropPending();
  Forget();
  variants_.Clear();
}

// --- one script for another -----------------------------------------------------------------------------------------

void ScriptSwitcher::FollowPredicted() {
  if (variants_.size() < 2 || pages_->zone_pinned() || pending_.script) return;
  if (!Follows() || follower_.cursor() != 0) return;
  uint32_t phase = 0;
  Variant* next = variants_.Predict(number_, &phase);
  if (next == nullptr || !pages_->FragmentsHavePages(*next->script) || !pages_->FitsZone(*next->script)) return;
  if (!SwitchTo(next, phase)) return;
  iteration_begin_ = history_->Count() - std::min<uint64_t>(history_->Count(), phase);
  phase_ = phase;
}

// Like StartFollowing. The last request is the entry at `position`, or the one before it.
bool ScriptSwitcher::SwitchTo(Variant* next, uint32_t position) {
  const Profile& profile = next->script->profile;
  if (next->fresh) {
    stats_->EndSteady();
    // Much longer than any before: those were parts of an iteration.
    if (profile.period >= 2 * longest_period_) stats_->RecountIterations(profile, history_->Count());
  }
  ++switches_;
  return StartFollowing(next, position);
}

void ScriptSwitcher::MaybeSwitch(uint64_t newest) {
  constexpr uint64_t kOfHead = 4;       // requests that begin another iteration
  constexpr uint32_t kOfContext = 16;   // ... that may lie anywhere in it
  constexpr uint32_t kWithout = 48;     // ... if no script is followed
  constexpr uint64_t kPerRequest = 16;  // entries of started scripts per request so far
  if (pages_->zone_pinned() || variants_.size() == 0) return;
  const bool followed = Follows();
  const uint64_t number = follower_.active() ? number_ : 0;
  Variant* next = nullptr;
  uint32_t position = 0;
  auto try_head = [&](uint64_t begin) {
    if (next != nullptr || begin > newest) return;
    next = variants_.MatchHead(*history_, begin, newest, number);
    position = static_cast<uint32_t>(newest - begin);
  };
  if (followed) {
    try_head(iteration_begin_);
    try_head(last_end_);
    try_head(previous_begin_);
    // The same for an iteration that begins somewhat earlier.
    uint64_t since = newest - std::min(newest, std::max(iteration_begin_, last_end_)) + 1;
    if (next == nullptr && since >= kOfHead) {
      auto least = static_cast<uint32_t>(std::min<uint64_t>(since, Variants::kLongestContext));
      next = variants_.MatchContext(*history_, newest, least, number, &position);
    }
    if (follower_.unmatched() + 1 >= kOfHead && newest >= kOfHead) try_head(newest - (kOfHead - 1));
  } else if (newest >= kOfContext) {
    try_head(newest - (kOfContext - 1));
  }
  if (next == nullptr && (!followed || follower_.unmatched() + 1 >= kOfHead)) {
    next = variants_.MatchContext(*history_, newest, followed ? kOfContext : kWithout, number, &position);
  }
  if (next == nullptr) return;
  switch_work_ += next->script->size();
  if (switch_work_ > newest * kPerRequest) {  // too many switches: stay with the script as well as possible
    switch_work_ -= next->script->size();
    return;
  }
  if (!pages_->FragmentsHavePages(*next->script)) {
    variants_.Remove(next->number);
    return;
  }
  if (!SwitchTo(next, position)) return;
  iteration_begin_ = newest - std::min<uint64_t>(newest, position);
  const uint32_t size = follower_.script().size();
  phase_ = static_cast<uint32_t>((position + size - (newest - last_end_) % size) % size);
}

std::vector<std::shared_ptr<const Script>> ScriptSwitcher::ScriptsByUse() const {
  std::vector<std::pair<uint64_t, std::shared_ptr<const Script>>> used;
  for (const Variant& variant : variants_.all())
    used.emplace_back(variant.passes * variant.script->size(), variant.script);
  std::stable_sort(used.begin(), used.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::shared_ptr<const Script>> scripts;
  for (auto& [requests, script] : used) scripts.push_back(std::move(script));
  if (scripts.empty() && pending_.script) scripts.push_back(pending_.script);
  return scripts;
}

// A script that was followed before must not delay the plan of the script that replaced it.
std::vector<std::shared_ptr<const Script>> ScriptSwitcher::OtherScripts(uint64_t number) const {
  std::vector<std::shared_ptr<const Script>> scripts;
  if (switches_ == 0) return scripts;
  for (const Variant& v : variants_.all()) {
    if (v.number != number) scripts.push_back(v.script);
  }
  return scripts;
}

// --- iterations -----------------------------------------------------------------------------------------------------

bool ScriptSwitcher::EndIteration() {
  const uint64_t count = history_->Count();
  stats_->AddIterations(uint64_t{follower_.TakeEnded()} * current_->profile.unroll, count);
  previous_begin_ = iteration_begin_;
  iteration_begin_ = count - std::min<uint64_t>(count, follower_.cursor());
  if (variants_.size() >= 2) {
    variants_.NoteIteration(number_, phase_);
    last_end_ = iteration_begin_;
    phase_ = 0;
  }
  const bool displaced = stats_->displaced() != displaced_at_end_;
  displaced_at_end_ = stats_->displaced();
  if (Variant* variant = variants_.Find(number_)) variant->NotePass(!displaced);
  return displaced;
}

void ScriptSwitcher::Realign() {
  if (!Follows() || follower_.cursor() != 0) return;
  if (uint32_t phase = BestPhase(*current_); phase != 0) follower_.SkipTo(phase);
}

void ScriptSwitcher::CloseIteration() {
  if (diverged()) diverged_until_ = history_->Count();
  divergences_at_end_ = Divergences();
}

bool ScriptSwitcher::InFirstCycle() const {
  return history_->Count() - std::max(activated_at_, diverged_until_) <= follower_.script().size();
}

std::vector<ZoneRange> ScriptSwitcher::FindReservedRanges() const {
  std::vector<ZoneRange> reserved_ranges;
  const uint32_t zone = pages_->OffsetOf(pages_->zone().begin);
  for (const Follower::Range& range : follower_.LiveRanges()) {
    if (range.entry != kNone || !pages_->InZone(PlaceOf(range))) continue;
    const DynamicBlock* block = blocks_->Find(PlaceOf(range).begin);
    if (block == nullptr || block->ordinal == kUnmonitored || block->ordinal >= previous_begin_) continue;
    const uint32_t begin = range.begin - zone, units = range.end - range.begin;
    if (!reserved_ranges.empty() && reserved_ranges.back().offset + reserved_ranges.back().units == begin) {
      reserved_ranges.back().units += units;
    } else {
      reserved_ranges.push_back({begin, units});
    }
  }
  return reserved_ranges;
}

bool ScriptSwitcher::SomethingOverstays() const {
  return blocks_->AnyForeignLivesLongerThan(std::max(current_->size(), variants_.LongestRequests()), history_->Count());
}

void ScriptSwitcher::RecordLifetime(uint32_t age) {
  if (!Follows()) return;
  if (variants_.size() > 1 && history_->Count() - age < activated_at_) return;  // a block from another script's time
  if (age > current_->size() && age <= kMaxUnroll * uint64_t{current_->profile.period}) ++overlong_lives_;
}

// --- figures --------------------------------------------------------------------------------------------------------

uint64_t ScriptSwitcher::PlanBytes() const { return current_ ? current_->height_bytes + current_->fragment_bytes : 0; }

void ScriptSwitcher::AddTo(hotpack_stats* stats) const {
  stats->carried = current_ ? current_->profile.carried_blocks : 0;
  stats->plan_height = PlanBytes();
  stats->plan_lower_bound = current_ ? current_->lower_bound_bytes : 0;
  stats->plan_stream_edges = current_ ? current_->stream_edges : 0;
  stats->plan_stream_edges_avoided = current_ ? current_->avoided_stream_edges : 0;
  stats->divergences = Divergences();
  stats->variants = variants_.size();
  stats->switches = switches_;
}

}  // namespace hotpack
