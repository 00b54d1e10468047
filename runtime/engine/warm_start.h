// Begins a run with the plan of an earlier run, on trial.
//
//   waiting ── the opening matches: the first iteration begins ──► on trial ── a cycle, half of it planned ──► kept
//    │ ▲ │                                                          ▲ │  └─ lost, or hardly planned ──► dropped
//    │ └─│── the run continues differently ─────────────────────────│─┘
//    │   └── another opening: 16 to 64 requests are the script's, and live as long as the script says
//    └────── no match for long, or a plan of this run comes first ──► dropped
//
// A wrong match does not affect correctness: the follower is right for any order of requests (docs/correctness.md).
#pragma once

#include <cstdint>
#include <memory>

#include "profiler/history.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/page_manager.h"
#include "runtime/engine/plan_saver.h"
#include "runtime/engine/script_switcher.h"
#include "runtime/persist/saved_plan.h"

namespace hotpack {

// Needs the engine's lock. Makes no driver call.
class WarmStart {
 public:
  // `plan`: null disables this object. `device_bytes`: the device's memory. The other arguments must outlive this
  // object.
  WarmStart(std::shared_ptr<const SavedPlan> plan, uint64_t device_bytes, const History* history,
            const PageManager* pages, ScriptSwitcher* scripts, EngineStats* stats, PlanSaver* saver);

  // Returns whether requests are compared with the plan.
  bool matching() const { return saved_ != nullptr; }
  // Returns whether a script of the plan was started recently and may still be dropped.
  bool on_trial() const { return on_trial_; }
  // Returns whether places of the script get their pages at once: no block is carried in a run's first iteration.
  bool InFirstIteration() const { return history_->Count() <= eager_until_; }
  // Returns the bytes that may be held in the first iteration without moving pages that it needs again; 0: unknown.
  uint64_t ExpectedPeak() const;
  // Returns the ordinal of a request that entry 0 of the plan's script represents.
  uint64_t anchor() const { return anchor_; }

  bool in_force() const { return in_force_; }  // a script of the plan was started and has not been given up

  // Call while matching(): the next request is for `units`. Returns false if it must be served dynamically whatever the
  // script says. O(scripts * log requests).
  bool Follow(uint32_t units);
  void WatchTrial();  // on trial, after each request that did not take the short path
  void EndTrial();    // on trial, a cycle has ended
  // Returns true once after the plan turned out to be useless.
  bool TakeRejected();

 private:
  // Compares the plan's opening with the run's requests.
  struct OpeningMatch {
    bool holds = false;    // so far the run roughly matches the opening
    uint64_t at = 0;       // index of the opening's next request
    uint64_t matched = 0;  // requests of the run that matched the opening
    uint64_t missed = 0;   // ... that did not, since the last match
    uint64_t missed_in_all = 0;
    uint32_t last_missed = 0;  // size of the last of these
    uint64_t give_up_at = 0;   // requests after which the plan is dropped unless it has been started
  };
  // A script of the plan that has just been started.
  struct Trial {
    int given_up = 0;                     // scripts given up so far
    uint32_t position = 0;                // the entry at which its first cycle began
    uint64_t planned = 0, displaced = 0;  // requests of either kind before it
    // Of the window of last requests: its begin, and the planned requests before it.
    uint64_t window_begin = 0, window_planned = 0;
  };

  uint32_t MatchOpening(uint32_t units);
  bool OpeningHolds() const;
  bool FollowOpening(uint32_t units, bool* by_script);
  void StartFollowing(const std::shared_ptr<const Script>& script, uint32_t position);
  uint32_t LongestAgreement(const Script& script, uint32_t units, uint32_t* last) const;
  bool LivesAgree(const Script& script, uint32_t last, uint32_t length) const;
  void Recognise(uint32_t units);
  void KnowOtherScripts();
  bool Leave();
  void GiveUpTrial();
  void Drop();

  const std::shared_ptr<const SavedPlan> plan_;
  const uint64_t device_bytes_;
  const History* const history_;
  const PageManager* const pages_;
  ScriptSwitcher* const scripts_;
  EngineStats* const stats_;
  PlanSaver* const saver_;

  std::shared_ptr<const SavedPlan> saved_;  // null: no plan, or it is finished with
  OpeningMatch match_;
  bool in_force_ = false;
  bool on_trial_ = false;
  Trial trial_;
  uint64_t eager_until_ = 0;    // requests
  uint64_t expected_peak_ = 0;  // bytes: peak of live memory in the earlier run, if this run begins like it
  bool rejected_ = false;
  uint64_t anchor_ = 0;
};

}  // namespace hotpack
