// Begins a run with the plan of an earlier one, on trial.
//
//   waiting ── the opening says: the first iteration begins ──► on trial ── a cycle, and half of it planned ──► kept
//    │ ▲ │                                                       ▲ │  └─ lost, or hardly planned ──► dropped
//    │ └─│── it goes on otherwise ───────────────────────────────│─┘
//    │   └── the opening is another: 16 to 64 requests are the script's, and live as long as the script says
//    └────── no match for long, or a plan of this run comes first ──► dropped
//
// A wrong match does no harm to correctness: the follower is right for any order of requests (docs/correctness.md).
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
  // `plan`: null: there is none, and nothing here does anything. `device_bytes`: the device's memory. The others
  // outlive this.
  WarmStart(std::shared_ptr<const SavedPlan> plan, uint64_t device_bytes, const History* history,
            const PageManager* pages, ScriptSwitcher* scripts, EngineStats* stats, PlanSaver* saver);

  // Requests are compared with the plan.
  bool matching() const { return saved_ != nullptr; }
  // A script of the plan was taken up a short while ago.
  bool on_trial() const { return on_trial_; }
  // Places of the script get their pages at once: in a run's first iteration nothing is carried.
  bool InFirstIteration() const { return history_->Count() <= eager_until_; }
  // Bytes that may be held in the first iteration without moving pages that it needs again; 0: unknown.
  uint64_t ExpectedPeak() const;
  // A request that entry 0 of the plan's script stands for.
  uint64_t anchor() const { return anchor_; }

  bool in_force() const { return in_force_; }  // a script of the plan has been taken up, and not been given up

  // While matching(): the next request is for `units`. Returns false if it is to be served dynamically whatever the
  // script says. O(scripts * log requests).
  bool Follow(uint32_t units);
  void WatchTrial();  // on trial, after each request that was not simply served
  void EndTrial();    // on trial, a cycle has ended
  // True once after the plan turned out to be of no use.
  bool TakeRejected();

 private:
  // The plan's opening against what the run asks for.
  struct OpeningMatch {
    bool holds = false;    // so far the run asks for what the opening says, more or less
    uint64_t at = 0;       // of the opening's requests: which one is next
    uint64_t matched = 0;  // requests of the run that were the opening's
    uint64_t missed = 0;   // ... that were not, since the last that was
    uint64_t missed_in_all = 0;
    uint32_t last_missed = 0;  // what the last of these asked for
    uint64_t give_up_at = 0;   // requests after which the plan is dropped if it has not been taken up
  };
  // A script of the plan that has just been taken up.
  struct Trial {
    int given_up = 0;                               // scripts so far
    uint32_t position = 0;                          // the entry that it began with, in its first cycle
    uint64_t planned = 0, displaced = 0;            // requests of either kind before it
    uint64_t window_begin = 0, window_planned = 0;  // of its last requests: since when, and planned before
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

  std::shared_ptr<const SavedPlan> saved_;  // null: no plan, or it is done with
  OpeningMatch match_;
  bool in_force_ = false;
  bool on_trial_ = false;
  Trial trial_;
  uint64_t eager_until_ = 0;    // requests
  uint64_t expected_peak_ = 0;  // bytes: what was live at most in the earlier run, if this one begins as it did
  bool rejected_ = false;
  uint64_t anchor_ = 0;
};

}  // namespace hotpack
