#include "runtime/engine/plan_saver.h"

#include <algorithm>
#include <utility>

#include "runtime/base/request_timer.h"
#include "runtime/include/hotpack.h"

namespace hotpack {
namespace {

using Scripts = std::vector<std::shared_ptr<const Script>>;

// Returns whether a run that begins with `outer` has the beginning of `inner` in its first cycle. The time steps of a
// recurrent network are used more often than its iteration, but a run does not begin with them.
bool BeginsInside(const Script& inner, const Opening& inner_opening, const Script& outer,
                  const Opening& outer_opening) {
  return outer.size() > inner.size() && outer_opening.before <= inner_opening.before &&
         inner_opening.before < outer_opening.before + outer.size();
}

void MoveToFront(Scripts* scripts, Scripts::iterator it) { std::rotate(scripts->begin(), it, it + 1); }

}  // namespace

// Chooses the first of the scripts that has an opening and begins in no other's cycle. That script becomes the first of
// all.
Opening PlanSaver::ChooseOpening(RunToSave* run, const History& history) {
  constexpr size_t kTries = 8;
  Scripts& scripts = run->scripts;
  const HistoryTail tail = CopyTail(history, history.Count(), history.Window());
  if (tail.first != 0) {  // the history no longer contains the beginning
    std::lock_guard lock(mutex_);
    const auto it = std::find_if(scripts.begin(), scripts.end(), [this](const auto& script) {
      return opening_known_ && script->profile.first_ordinal == opening_root_;
    });
    if (it == scripts.end()) return {};
    MoveToFront(&scripts, it);
    return opening_;
  }
  size_t chosen = scripts.size();
  Opening opening;
  for (size_t k = 0; k < std::min(kTries, scripts.size()); ++k) {
    const Script& script = *scripts[k];
    const uint64_t root = script.profile.first_ordinal;
    const uint64_t anchor = root == kOfSavedPlan ? run->anchor_of_saved : FoundHere(script) ? root : kNoAnchor;
    Opening other = FindOpening(tail, script, anchor);
    if (other.empty()) continue;
    if (chosen < scripts.size() && !BeginsInside(*scripts[chosen], opening, script, other)) continue;
    chosen = k;
    opening = std::move(other);
  }
  if (chosen == scripts.size()) return {};
  MoveToFront(&scripts, scripts.begin() + static_cast<ptrdiff_t>(chosen));
  std::lock_guard lock(mutex_);
  opening_ = opening;
  opening_root_ = scripts.front()->profile.first_ordinal;
  opening_known_ = true;
  return opening;
}

std::shared_ptr<const SavedPlan> PlanSaver::Make(RunToSave run, const History& history, int64_t pack_limit_ns) {
  if (run.scripts.empty()) return nullptr;
  auto plan = std::make_shared<SavedPlan>();
  plan->live_peak_bytes = run.live_peak_bytes;
  plan->chunk_bytes = run.chunk_bytes;
  plan->device_bytes = run.device_bytes;
  plan->opening = ChooseOpening(&run, history);
  // Of many scripts, only those are saved that can be packed again by then.
  const int64_t until = RequestTimer::Now() + 2 * pack_limit_ns;
  for (const auto& script : run.scripts) {
    if (!plan->scripts.empty() && !script->fragments.empty() && RequestTimer::Now() > until) continue;
    auto whole = WithoutFragments(script, pack_limit_ns, run.large_alignment);
    if (!whole && plan->scripts.empty()) return nullptr;  // the opening belongs to this script
    if (whole) plan->scripts.push_back(std::move(whole));
  }
  plan->tool_version = HOTPACK_VERSION;
  return plan;
}

}  // namespace hotpack
