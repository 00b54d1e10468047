// The engine and plans that outlive a run: taking up the plan of an earlier one, and giving this one's to the sink.
//
//   waiting ── the opening says: the first iteration begins ──► on trial ── a cycle, and half of it planned ──► kept
//    │ ▲ │                                                       ▲ │  └─ lost, or hardly planned ──► dropped
//    │ └─│── it goes on otherwise ───────────────────────────────│─┘
//    │   └── the opening is another: 16 to 64 requests are the script's, and live as long as the script says
//    └────── no match for long, or a plan of this run comes first ──► dropped
//
// A wrong match does no harm to correctness: the follower is right for any order of requests (docs/correctness.md).
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

namespace {

// Requests that must be a script's for it to be recognised where the opening is another: a small part of a cycle, and
// enough for no other program to have them by chance.
constexpr uint32_t kLongest = 64;
uint32_t Recognisable(const Script& script) {
  return std::min(script.size(), std::clamp(script.size() / 32, 16u, kLongest));
}

}  // namespace

// --- beginning with a plan -------------------------------------------------------------------------------------------

void Engine::Impl::BeginSaved() {
  if (!options_.plan || options_.plan->scripts.empty()) return;
  saved_ = options_.plan;
  guide_.holds = !saved_->opening.empty();
  uint64_t longest = 0;
  for (const auto& script : saved_->scripts) longest = std::max<uint64_t>(longest, script->size());
  guide_.give_up_at = 2 * saved_->opening.before + 4 * longest + 1024;
}

// The next request is for `units`. False: it is to be served dynamically, whatever the script says.
bool Engine::Impl::FollowSaved(uint32_t units) {
  bool by_script = true;
  if (guide_.holds && FollowOpening(units, &by_script)) {
    if (guide_.at >= saved_->opening.units.size()) saved_.reset();  // from here on the script says it all
    return by_script;
  }
  if (saved_in_force_) {  // the run has left the opening
    constexpr uint64_t kBelieved = 256;
    if (guide_.matched >= kBelieved || !LeaveSaved()) {
      saved_.reset();  // the follower will see
      return true;
    }
  }
  if (follower_.active() || history_.Count() > guide_.give_up_at) {
    DropSaved();
    return true;
  }
  RecogniseSaved(units);
  return true;
}

// What may be held in a run's first iteration without moving pages that it needs again: bytes.
uint64_t Engine::Impl::ExpectedPeak() const {
  if (expected_peak_ == 0 || history_.Count() > eager_until_) return 0;
  return expected_peak_ + expected_peak_ / 16 + 2 * arena_.chunk();
}

// Which of the opening's requests the next one, of `units`, is; kNone: none of them, but one that was inserted, or stands
// for another.
uint32_t Engine::Impl::MatchOpening(uint32_t units) {
  constexpr uint64_t kAhead = 64;
  const std::vector<uint32_t>& expected = saved_->opening.units;
  uint64_t found = expected[guide_.at] == units ? guide_.at : UINT64_MAX;
  if (found == UINT64_MAX && guide_.missed > 0) {
    // The one before was changed; or some are missing, and it was the first after these.
    const uint64_t end = std::min<uint64_t>(expected.size(), guide_.at + kAhead);
    for (uint64_t j = guide_.at + 1; j < end && found == UINT64_MAX; ++j) {
      if (expected[j] == units && (expected[j - 1] == guide_.last_missed || j == guide_.at + 1)) found = j;
    }
  }
  if (found == UINT64_MAX) {
    ++guide_.missed;
    ++guide_.missed_in_all;
    guide_.last_missed = units;
    return kNone;
  }
  guide_.at = found + 1;
  guide_.missed = 0;
  ++guide_.matched;
  return static_cast<uint32_t>(found);
}

// Whether the run begins as the opening says, but for a few requests: most programs ask for the same few sizes again and
// again, so that many agree by chance.
bool Engine::Impl::OpeningHolds() const {
  constexpr uint64_t kOneMissedOf = 8, kInARow = 32;
  return guide_.missed <= kInARow && guide_.missed_in_all * kOneMissedOf <= guide_.matched + kOneMissedOf;
}

// False: this run begins otherwise.
bool Engine::Impl::FollowOpening(uint32_t units, bool* by_script) {
  const Opening& opening = saved_->opening;
  const uint32_t at = MatchOpening(units);
  if (at == kNone) saver_.Forget();  // what is saved begins otherwise than this run
  guide_.holds = OpeningHolds() && saved_in_force_ == follower_.active();
  if (!guide_.holds) {
    expected_peak_ = 0;
    return false;
  }
  const uint32_t entry = at == kNone ? kNone : opening.entries[at];
  *by_script = entry != kNone;
  if (entry == kNone) return true;
  if (!saved_in_force_) {
    TakeUpSaved(saved_->scripts[opening.script], entry);
    if (!saved_in_force_) return guide_.holds = false;
    expected_peak_ = std::min(saved_->live_peak_bytes, memory_->TotalBytes());
    if (guide_.missed_in_all == 0) saver_.SetSaved(variants_.newest());
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
  trial_.planned = trial_.window_planned = planned_;
  trial_.displaced = displaced_;
  trial_.window_begin = pending_since_;
  iterations_ = 0;
  ++plans_;
  const uint64_t n = current_->size(), count = history_.Count();
  saved_anchor_ = count + n - position;
  trial_.position = position;
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

// Whether the requests before the next one, which would be entry `last`, have been released when the script says so:
// weights ask for the same sizes as gradients, but stay. Looks at the last few, and, where these tell nothing, at `length`.
bool Engine::Impl::LivesAgree(const Script& script, uint32_t last, uint32_t length) const {
  const uint64_t count = history_.Count(), n = script.size();
  uint32_t due = 0, released = 0;
  for (uint32_t back = 1; back < length && (back < Recognisable(script) || due == 0); ++back) {
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
    if (length < Recognisable(*script) || !LivesAgree(*script, last, length)) continue;
    TakeUpSaved(script, last);
    if (on_trial_) saved_.reset();
    return on_trial_;
  }
  return false;
}

// --- on trial --------------------------------------------------------------------------------------------------------

// After each request that was not simply served.
void Engine::Impl::WatchTrial() {
  constexpr uint64_t kWindow = 64;
  if (!follower_.active()) {
    on_trial_ = false;
    return;
  }
  const uint64_t count = history_.Count();
  bool hardly = false;
  if (guide_.holds || count - trial_.window_begin >= kWindow) {
    hardly = !guide_.holds && planned_ - trial_.window_planned < kWindow / 2;
    trial_.window_begin = count;
    trial_.window_planned = planned_;
  }
  // Places still in use by blocks that should be gone: weights that ask for what an iteration asks for.
  const bool in_the_way = displaced_ - trial_.displaced > 8 + (planned_ - trial_.planned) / 4;
  if (hardly || in_the_way || follower_.lost()) GiveUpTrial();
}

// A cycle has ended.
void Engine::Impl::EndTrial() {
  if (!follower_.active()) return;
  const uint64_t n = current_->size();
  // Requests may have been missing or inserted: where entry 0 is, is certain only now.
  saved_anchor_ = history_.Count() + (n - follower_.cursor()) % n;
  if (trial_.position != 0) {  // it began in the middle
    if (follower_.TakeEnded() != 0) iterations_ += (n - trial_.position) / current_->profile.period;
    trial_.position = 0;
    return;
  }
  uint64_t turns = 0;
  for (uint32_t i = 0; i < n; ++i) turns += current_->entries[i].offset != kNone;
  if (2 * (planned_ - trial_.planned) >= turns) {
    on_trial_ = false;
    KnowOtherScripts();
  } else {
    GiveUpTrial();
  }
}

// What is saved is this program's: its other scripts are known from now on.
void Engine::Impl::KnowOtherScripts() {
  const bool all_saved = saver_.IsSaved(variants_.newest());
  uint64_t ordinal = kOfSavedPlan;
  for (const auto& script : options_.plan->scripts) {
    if (AlikeCycles(script->profile, current_->profile)) continue;
    Script own = *script;
    own.profile.first_ordinal = --ordinal;
    variants_.Add(std::make_shared<const Script>(std::move(own)), history_.Count(), script_number_);
  }
  if (all_saved) saver_.SetSaved(variants_.newest());
}

// The script taken up is given up again. False: not now, pages are being changed.
bool Engine::Impl::LeaveSaved() {
  if (page_work_ || mapping_entries_ != 0) return false;
  if (follower_.active()) RetireScript();
  variants_.Remove(script_number_);
  script_number_ = 0;  // observed as from the beginning: no script is parked
  current_.reset();
  if (pending_ && pending_->profile.first_ordinal == kOfSavedPlan) pending_.reset();
  plan_height_ = plan_lower_bound_ = period_ = 0;
  if (options_.load != nullptr) *options_.load = {};
  carried_ = 0;
  eager_until_ = expected_peak_ = 0;
  --plans_;
  on_trial_ = saved_in_force_ = false;
  saver_.Forget();
  return true;
}

// This was not its iteration; it may be still to come (weights can ask for the same as an iteration).
void Engine::Impl::GiveUpTrial() {
  constexpr int kTrials = 3;
  const bool first = trial_.count++ == 0 && guide_.matched > 0;
  // Optimizer state may have come in between.
  const bool believed = 4 * (planned_ - trial_.planned) >= current_->size();
  if (!LeaveSaved()) return;  // pages are being changed: at the next request, then
  guide_.holds = false;
  saved_ = options_.plan;
  if ((!first && !believed) || trial_.count >= kTrials || history_.Count() > guide_.give_up_at) DropSaved();
}

// It is of no use.
void Engine::Impl::DropSaved() {
  saved_.reset();
  guide_.holds = false;
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

// At the end of an iteration: if there are scripts that are not saved yet, and the job is steady, all are saved on the
// planner's thread.
void Engine::Impl::MaybeSave() {
  if (!steady_ || on_trial_ || !saver_.Due(variants_.newest(), iterations_) || planner_.Busy()) return;
  PlanJob job;
  job.save = true;
  if (planner_.Post(std::move(job))) saver_.NotePosted(iterations_);
}

// The scripts known, that which has served most first; with none, the plan that waits to be taken up.
std::vector<std::shared_ptr<const Script>> Engine::Impl::ScriptsByUse() const {
  std::vector<std::pair<uint64_t, std::shared_ptr<const Script>>> used;
  for (const Variant& variant : variants_.all()) used.emplace_back(variant.passes * variant.script->size(), variant.script);
  std::stable_sort(used.begin(), used.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::shared_ptr<const Script>> scripts;
  for (auto& [requests, script] : used) scripts.push_back(std::move(script));
  if (scripts.empty() && pending_) scripts.push_back(pending_);
  return scripts;
}

std::shared_ptr<const SavedPlan> Engine::Impl::PlanToSave(int64_t pack_limit_ns) {
  if (abandoned()) return nullptr;
  RunToSave run;
  {
    Lock lock(mutex_);
    if (on_trial_) return nullptr;
    run = {ScriptsByUse(), saved_anchor_, live_peak_units_ * kUnitBytes, arena_.chunk(), memory_->TotalBytes()};
  }
  return saver_.Make(std::move(run), history_, pack_limit_ns);
}

// Packing again, where that is needed, takes at most thrice `pack_limit_ns`.
void Engine::Impl::Save(int64_t pack_limit_ns) try {
  if (options_.sink == nullptr) return;
  uint64_t newest = 0;
  {
    Lock lock(mutex_);
    newest = variants_.newest();
    if (variants_.size() > 0 ? saver_.IsSaved(newest) : !pending_) return;
  }
  std::shared_ptr<const SavedPlan> plan = PlanToSave(pack_limit_ns);
  if (!plan) return;
  options_.sink->Save(*plan);
  Lock lock(mutex_);
  saver_.SetSaved(std::max(saver_.saved_newest(), newest));
} catch (...) {  // the host is out of memory: what was saved before stays
}

}  // namespace hotpack
