#include "runtime/engine/warm_start.h"

#include <algorithm>
#include <utility>

namespace hotpack {
namespace {

// Requests that must match a script to recognise it after a different opening: a small part of a cycle, yet enough to
// exclude a match by chance with another program.
constexpr uint32_t kLongest = 64;
uint32_t Recognisable(const Script& script) {
  return std::min(script.size(), std::clamp(script.size() / 32, 16u, kLongest));
}

}  // namespace

// --- starting with a plan -------------------------------------------------------------------------------------------

WarmStart::WarmStart(std::shared_ptr<const SavedPlan> plan, uint64_t device_bytes, const History* history,
                     const PageManager* pages, ScriptSwitcher* scripts, EngineStats* stats, PlanSaver* saver)
    : plan_(std::move(plan)),
      device_bytes_(device_bytes),
      history_(history),
      pages_(pages),
      scripts_(scripts),
      stats_(stats),
      saver_(saver) {
  if (!plan_ || plan_->scripts.empty()) return;
  saved_ = plan_;
  match_.holds = !saved_->opening.empty();
  uint64_t longest = 0;
  for (const auto& script : saved_->scripts) longest = std::max<uint64_t>(longest, script->size());
  match_.give_up_at = 2 * saved_->opening.before + 4 * longest + 1024;
}

bool WarmStart::Follow(uint32_t units) {
  bool by_script = true;
  if (match_.holds && FollowOpening(units, &by_script)) {
    if (match_.at >= saved_->opening.units.size()) saved_.reset();  // from here on the script covers everything
    return by_script;
  }
  if (in_force_) {  // the run has left the opening
    constexpr uint64_t kBelieved = 256;
    if (match_.matched >= kBelieved || !Leave()) {
      saved_.reset();  // the follower handles the rest
      return true;
    }
  }
  if (scripts_->follower().active() || history_->Count() > match_.give_up_at) {
    Drop();
    return true;
  }
  Recognise(units);
  return true;
}

uint64_t WarmStart::ExpectedPeak() const {
  if (expected_peak_ == 0 || !InFirstIteration()) return 0;
  return expected_peak_ + expected_peak_ / 16 + 2 * pages_->arena().chunk();
}

// Returns which of the opening's requests the next one, for `units`, is; kNone if it is none of them: it was inserted,
// or replaces another.
uint32_t WarmStart::MatchOpening(uint32_t units) {
  constexpr uint64_t kAhead = 64;
  const std::vector<uint32_t>& expected = saved_->opening.units;
  uint64_t found = expected[match_.at] == units ? match_.at : UINT64_MAX;
  if (found == UINT64_MAX && match_.missed > 0) {
    // The previous request was changed; or some are missing, and it was the first after these.
    const uint64_t end = std::min<uint64_t>(expected.size(), match_.at + kAhead);
    for (uint64_t j = match_.at + 1; j < end && found == UINT64_MAX; ++j) {
      if (expected[j] == units && (expected[j - 1] == match_.last_missed || j == match_.at + 1)) found = j;
    }
  }
  if (found == UINT64_MAX) {
    ++match_.missed;
    ++match_.missed_in_all;
    match_.last_missed = units;
    return kNone;
  }
  match_.at = found + 1;
  match_.missed = 0;
  ++match_.matched;
  return static_cast<uint32_t>(found);
}

// Returns whether the run begins like the opening, except for a few requests. Most programs use the same few sizes
// again and again, so many requests match by chance.
bool WarmStart::OpeningHolds() const {
  constexpr uint64_t kOneMissedOf = 8, kInARow = 32;
  return match_.missed <= kInARow && match_.missed_in_all * kOneMissedOf <= match_.matched + kOneMissedOf;
}

// Returns false if this run begins differently.
bool WarmStart::FollowOpening(uint32_t units, bool* by_script) {
  const Opening& opening = saved_->opening;
  const uint32_t at = MatchOpening(units);
  if (at == kNone) saver_->Forget();  // this run begins differently from the saved one
  match_.holds = OpeningHolds() && in_force_ == scripts_->follower().active();
  if (!match_.holds) {
    expected_peak_ = 0;
    return false;
  }
  const uint32_t entry = at == kNone ? kNone : opening.entries[at];
  *by_script = entry != kNone;
  if (entry == kNone) return true;
  if (!in_force_) {
    StartFollowing(saved_->scripts[opening.script], entry);
    if (!in_force_) return match_.holds = false;
    expected_peak_ = std::min(saved_->live_peak_bytes, device_bytes_);
    if (match_.missed_in_all == 0) saver_->SetSaved(scripts_->variants().newest());
  } else if (scripts_->follower().cursor() != entry && !scripts_->follower().lost()) {
    scripts_->follower().SkipTo(entry);
  }
  return true;
}

// Follows `script`: the next request is its entry `position`.
void WarmStart::StartFollowing(const std::shared_ptr<const Script>& script, uint32_t position) {
  if (pages_->zone_pinned()) return;
  Script own = *script;  // the copy counts requests of this run
  own.profile.first_ordinal = kOfSavedPlan;
  const uint64_t count = history_->Count();
  scripts_->SetPending(std::make_shared<const Script>(std::move(own)), 0);
  scripts_->Activate(position);
  if (!scripts_->follower().active()) return;  // no addresses for it now: the next iteration may have some
  in_force_ = on_trial_ = true;
  trial_.planned = trial_.window_planned = stats_->planned();
  trial_.displaced = stats_->displaced();
  trial_.window_begin = count;
  stats_->SetIterations(0, count);
  stats_->NotePlan();
  const uint64_t n = scripts_->current()->size();
  anchor_ = count + n - position;
  trial_.position = position;
  eager_until_ = count + 2 * n;
}

// Finds the entry that the next request, for `units`, has by the longest match of the requests before it. Returns the
// length of the match, including this request; at most kLongest.
uint32_t WarmStart::LongestAgreement(const Script& script, uint32_t units, uint32_t* last) const {
  constexpr int kTries = 64;
  const uint64_t count = history_->Count();
  const uint32_t n = script.size();
  if (count + 1 < Script::kContext) return 0;
  auto at = [&](uint64_t back) { return back == 0 ? units : history_->Units(count - back); };
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

// Returns whether earlier requests were released when the script says so, if the next request is entry `last`. Weights
// have the same sizes as gradients, but stay. Checks the last few requests and, if these are inconclusive, `length` of
// them.
bool WarmStart::LivesAgree(const Script& script, uint32_t last, uint32_t length) const {
  const uint64_t count = history_->Count(), n = script.size();
  uint32_t due = 0, released = 0;
  for (uint32_t back = 1; back < length && (back < Recognisable(script) || due == 0); ++back) {
    const ProfileBlock& block = script.profile.blocks[(last + n * kLongest - back) % n];
    if (!block.planned || block.age >= back) continue;
    ++due;
    const uint32_t age = history_->Age(count - back);
    if (age != kStillLive && age <= 2 * block.age) ++released;
  }
  return due > 0 ? 4 * released >= 3 * due : length >= std::min<uint64_t>(n, kLongest);
}

// The opening is different: starts a script that the last requests match.
void WarmStart::Recognise(uint32_t units) {
  for (const auto& script : saved_->scripts) {
    uint32_t last = 0;
    const uint32_t length = LongestAgreement(*script, units, &last);
    if (length < Recognisable(*script) || !LivesAgree(*script, last, length)) continue;
    StartFollowing(script, last);
    if (on_trial_) saved_.reset();
    return;
  }
}

// --- on trial -------------------------------------------------------------------------------------------------------

void WarmStart::WatchTrial() {
  constexpr uint64_t kWindow = 64;
  if (!scripts_->follower().active()) {
    on_trial_ = false;
    return;
  }
  const uint64_t count = history_->Count();
  bool hardly = false;
  if (match_.holds || count - trial_.window_begin >= kWindow) {
    hardly = !match_.holds && stats_->planned() - trial_.window_planned < kWindow / 2;
    trial_.window_begin = count;
    trial_.window_planned = stats_->planned();
  }
  // Places are still used by blocks that should be gone: weights with the same sizes as an iteration's blocks.
  const bool in_the_way = stats_->displaced() - trial_.displaced > 8 + (stats_->planned() - trial_.planned) / 4;
  if (hardly || in_the_way || scripts_->follower().lost()) GiveUpTrial();
}

void WarmStart::EndTrial() {
  if (!scripts_->follower().active()) return;
  const uint64_t n = scripts_->current()->size();
  // Requests may have been missing or inserted: the position of entry 0 is certain only now.
  anchor_ = history_->Count() + (n - scripts_->follower().cursor()) % n;
  if (trial_.position != 0) {  // it began within the cycle
    if (scripts_->follower().TakeEnded() != 0) {
      stats_->AddIterations((n - trial_.position) / scripts_->current()->profile.period, history_->Count());
    }
    trial_.position = 0;
    return;
  }
  uint64_t turns = 0;
  for (uint32_t i = 0; i < n; ++i) turns += scripts_->current()->entries[i].offset != kNone;
  if (2 * (stats_->planned() - trial_.planned) >= turns) {
    on_trial_ = false;
    KnowOtherScripts();
  } else {
    GiveUpTrial();
  }
}

// The saved plan belongs to this program: its other scripts become known now.
void WarmStart::KnowOtherScripts() {
  const bool all_saved = saver_->IsSaved(scripts_->variants().newest());
  uint64_t ordinal = kOfSavedPlan;
  for (const auto& script : plan_->scripts) {
    if (AlikeCycles(script->profile, scripts_->current()->profile)) continue;
    Script own = *script;
    own.profile.first_ordinal = --ordinal;
    scripts_->variants().Add(std::make_shared<const Script>(std::move(own)), history_->Count(), scripts_->number());
  }
  if (all_saved) saver_->SetSaved(scripts_->variants().newest());
}

// Stops following the script. Returns false while pages are being changed.
bool WarmStart::Leave() {
  if (pages_->zone_pinned()) return false;
  scripts_->Forget();
  const Script* pending = scripts_->pending().get();
  if (pending != nullptr && pending->profile.first_ordinal == kOfSavedPlan) scripts_->DropPending();
  eager_until_ = expected_peak_ = 0;
  stats_->TakePlanBack();
  on_trial_ = in_force_ = false;
  saver_->Forget();
  return true;
}

// This was not the script's iteration, which may still come (weights can have the same requests as an iteration).
void WarmStart::GiveUpTrial() {
  constexpr int kTrials = 3;
  const bool first = trial_.given_up++ == 0 && match_.matched > 0;
  // Optimizer state may have come in between.
  const bool believed = 4 * (stats_->planned() - trial_.planned) >= scripts_->current()->size();
  if (!Leave()) return;  // pages are being changed: try again at the next request
  match_.holds = false;
  saved_ = plan_;
  if ((!first && !believed) || trial_.given_up >= kTrials || history_->Count() > match_.give_up_at) Drop();
}

void WarmStart::Drop() {
  saved_.reset();
  match_.holds = false;
  rejected_ = true;
}

bool WarmStart::TakeRejected() { return std::exchange(rejected_, false); }

}  // namespace hotpack
