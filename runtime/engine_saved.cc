// The engine and plans that outlive a run: taking up the plan of an earlier one, and giving this one's to the sink.
//
//   waiting ── the opening says: the first iteration begins ──► on trial ── half of a cycle was planned ──► kept
//      │   └─ the opening is another: 16 requests are the script's,  ▲  └─ lost, or hardly planned ──► dropped
//      │      and live as long as the script says ──────────────────┘
//      └── no match for long, or a plan of this run comes first ──► dropped
//
// A wrong match does no harm to correctness: the follower is right for any order of requests (docs/correctness.md).
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

namespace {

constexpr uint64_t kOfSavedPlan = UINT64_MAX;  // a profile's first_ordinal: it was found in another run

// Requests that must be a script's for its plan to be recognised where the opening is another.
constexpr uint32_t kRecognised = 16, kLongest = 64;

}  // namespace

// --- beginning with a plan -------------------------------------------------------------------------------------------

void Engine::Impl::BeginSaved() {
  if (!options_.plan || options_.plan->scripts.empty()) return;
  saved_ = options_.plan;
  opening_holds_ = !saved_->opening.empty();
  uint64_t longest = 0;
  for (const auto& script : saved_->scripts) longest = std::max<uint64_t>(longest, script->size());
  give_up_at_ = 2 * saved_->opening.before + 4 * longest + 1024;
}

// The next request is for `units`. False: it is to be served dynamically, whatever the script says.
bool Engine::Impl::FollowSaved(uint32_t units) {
  const uint64_t count = history_.Count();
  if (opening_holds_ && FollowOpening(units)) {
    const bool by_script = saved_->opening.entries[count] != kNone;
    if (count + 1 >= saved_->opening.units.size()) saved_.reset();  // from here on the script says it all
    return by_script;
  }
  if (saved_in_force_) {  // the run has left the opening: the follower will see
    saved_.reset();
    return true;
  }
  if (follower_.active() || count > give_up_at_) {
    DropSaved();
    return true;
  }
  RecogniseSaved(units);
  return true;
}

// False: this request is not what the opening says.
bool Engine::Impl::FollowOpening(uint32_t units) {
  const Opening& opening = saved_->opening;
  const uint64_t count = history_.Count();
  opening_holds_ = count < opening.units.size() && opening.units[count] == units && saved_in_force_ == follower_.active();
  if (!opening_holds_) {
    opening_known_ = false;
    expected_peak_ = 0;
    saved_script_ = 0;  // what is saved begins otherwise than this run
    return false;
  }
  const uint32_t entry = opening.entries[count];
  if (entry == kNone) return true;
  if (!saved_in_force_) {
    TakeUpSaved(saved_->scripts[opening.script], entry);
    if (!saved_in_force_) return opening_holds_ = false;
    opening_ = opening;
    opening_known_ = true;
    opening_root_ = kOfSavedPlan;
    saved_script_ = script_number_;
    expected_peak_ = std::min(saved_->live_peak_bytes, memory_->TotalBytes());
  } else if (follower_.cursor() != entry && !follower_.lost()) {
    follower_.SkipTo(entry);
  }
  return true;
}

// The next request is entry `position` of `script`.
void Engine::Impl::TakeUpSaved(const std::shared_ptr<const Script>& script, uint32_t position) {
  if (page_work_ || mapping_entries_ != 0) return;
  Script own = *script;  // it counts requests of this run
  own.profile.first_ordinal = kOfSavedPlan;
  pending_ = std::make_shared<const Script>(std::move(own));
  pending_since_ = history_.Count();
  pending_refines_ = 0;
  Activate(position);
  if (!follower_.active()) return;  // no addresses for it now: the next iteration may have some
  saved_in_force_ = on_trial_ = true;
  trial_planned_ = planned_;
  trial_turns_ = 0;
  for (uint32_t i = position; i < current_->size(); ++i) trial_turns_ += current_->entries[i].offset != kNone;
  iterations_ = 0;
  ++plans_;
  const uint64_t n = current_->size(), count = history_.Count();
  saved_anchor_ = count + n - position;
  eager_until_ = count + 2 * n;
}

// The entry that a request of `units`, the next one, would be to judge by the most requests before it. Returns how many
// agree, this one included; at most kLongest.
uint32_t Engine::Impl::LongestAgreement(const Script& script, uint32_t units, uint32_t* last) const {
  constexpr int kTries = 64;
  const uint64_t count = history_.Count();
  const uint32_t n = script.size();
  if (count + 1 < Script::kContext) return 0;
  auto at = [&](uint64_t back) { return back == 0 ? units : history_.Units(count - back); };
  uint32_t window[Script::kContext];
  for (uint32_t k = 0; k < Script::kContext; ++k) window[k] = at(Script::kContext - 1 - k);
  const uint32_t hash = ContextHash(window, Script::kContext);
  auto it = std::lower_bound(script.contexts.begin(), script.contexts.end(), std::make_pair(hash, 0u));
  uint32_t best = 0;
  for (int tries = 0; tries < kTries && it != script.contexts.end() && it->first == hash; ++it, ++tries) {
    const uint32_t entry = it->second == 0 ? n - 1 : it->second - 1;
    uint32_t length = 0, i = entry;
    while (length < kLongest && length <= count && at(length) == script.entries[i].units) {
      ++length;
      i = i == 0 ? n - 1 : i - 1;
    }
    if (length <= best) continue;
    best = length;
    *last = entry;
  }
  return best;
}

// Whether the `length - 1` requests before the next one, which would be entry `last`, have been released when the script
// says so: weights ask for the same sizes as gradients, but stay.
bool Engine::Impl::LivesAgree(const Script& script, uint32_t last, uint32_t length) const {
  const uint64_t count = history_.Count(), n = script.size();
  uint32_t due = 0, released = 0;
  for (uint32_t back = 1; back < length; ++back) {
    const ProfileBlock& block = script.profile.blocks[(last + n * kLongest - back) % n];
    if (!block.planned || block.age >= back) continue;
    ++due;
    const uint32_t age = history_.Age(count - back);
    if (age != kStillLive && age <= 2 * block.age) ++released;
  }
  return due > 0 ? 4 * released >= 3 * due : length >= std::min<uint64_t>(n, kLongest);
}

bool Engine::Impl::RecogniseSaved(uint32_t units) {
  for (const auto& script : saved_->scripts) {
    uint32_t last = 0;
    const uint32_t length = LongestAgreement(*script, units, &last);
    if (length < std::min(script->size(), kRecognised) || !LivesAgree(*script, last, length)) continue;
    TakeUpSaved(script, last);
    if (on_trial_) saved_.reset();
    return on_trial_;
  }
  return false;
}

// --- on trial --------------------------------------------------------------------------------------------------------

// After each request that was not simply served.
void Engine::Impl::WatchTrial() {
  if (!follower_.active()) {
    on_trial_ = false;
  } else if (follower_.lost()) {
    DropSaved();
  }
}

// The first cycle has ended, or what was left of it.
void Engine::Impl::EndTrial() {
  // Requests may have been missing or inserted: where entry 0 is, is certain only now.
  if (follower_.active()) saved_anchor_ = history_.Count() + (current_->size() - follower_.cursor()) % current_->size();
  if (follower_.active() && 2 * (planned_ - trial_planned_) >= trial_turns_) {
    on_trial_ = false;
    // It may have begun in the middle of the cycle.
    if (follower_.TakeEnded() != 0) iterations_ += (history_.Count() - activated_at_) / period_;
  } else {
    DropSaved();
  }
}

// It is of no use. What is followed of it is given up, now or as soon as no pages are being changed.
void Engine::Impl::DropSaved() {
  saved_.reset();
  opening_known_ = opening_holds_ = false;
  if (on_trial_ && follower_.active()) {
    if (page_work_ || mapping_entries_ != 0) return;
    RetireScript();
    current_.reset();
    plan_height_ = plan_lower_bound_ = period_ = 0;
    carried_ = 0;
    eager_until_ = expected_peak_ = 0;
    --plans_;
    if (pending_ && pending_->profile.first_ordinal == kOfSavedPlan) pending_.reset();
  }
  on_trial_ = saved_in_force_ = false;
  saved_script_ = 0;
  tell_not_used_ = true;
}

// Without the lock: it writes, and whoever reads that may be slow.
void Engine::Impl::TellNotUsed(Lock& lock) {
  tell_not_used_ = false;
  if (options_.sink == nullptr) return;
  lock.unlock();
  options_.sink->NotUsed();
  lock.lock();
}

// --- saving ----------------------------------------------------------------------------------------------------------

// At the end of an iteration: a script that is steady and not saved yet is saved on the planner's thread. Ever more rarely:
// a job that goes on learning has another one each time.
void Engine::Impl::MaybeSave() {
  if (!steady_ || on_trial_ || saved_script_ == script_number_ || iterations_ < next_save_ || planner_.Busy()) return;
  PlanJob job;
  job.save = true;
  if (planner_.Post(std::move(job))) next_save_ = 2 * iterations_;
}

std::shared_ptr<const SavedPlan> Engine::Impl::PlanToSave() {
  if (abandoned()) return nullptr;
  auto plan = std::make_shared<SavedPlan>();
  std::shared_ptr<const Script> script;
  uint64_t anchor = 0;
  bool known = false;
  {
    Lock lock(mutex_);
    script = current_ ? current_ : pending_;
    if (!script || on_trial_) return nullptr;
    const uint64_t root = script->profile.first_ordinal;
    anchor = root == kOfSavedPlan ? saved_anchor_ : root;
    known = opening_known_ && opening_root_ == root;
    if (known) plan->opening = opening_;
    plan->live_peak_bytes = live_peak_units_ * kUnitBytes;
    plan->chunk_bytes = arena_.chunk();
    plan->device_bytes = memory_->TotalBytes();
  }
  if (!known) {
    plan->opening = FindOpening(CopyTail(history_, history_.Count(), history_.Window()), *script, anchor);
    Lock lock(mutex_);
    opening_ = plan->opening;
    opening_root_ = script->profile.first_ordinal;
    opening_known_ = true;
  }
  script = WithoutHoles(script, options_.plan_time_limit_ns);
  if (!script) return nullptr;
  plan->scripts.push_back(std::move(script));
  plan->tool_version = HOTPACK_VERSION;
  return plan;
}

void Engine::Impl::Save() try {
  if (options_.sink == nullptr) return;
  uint64_t number = 0;
  {
    Lock lock(mutex_);
    number = script_number_;
    if (number != 0 ? saved_script_ == number : !pending_) return;
  }
  std::shared_ptr<const SavedPlan> plan = PlanToSave();
  if (!plan) return;
  options_.sink->Save(*plan);
  Lock lock(mutex_);
  if (saved_script_ < number) saved_script_ = number;
} catch (...) {  // the host is out of memory: what was saved before stays
}

}  // namespace hotpack
