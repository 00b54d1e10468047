// Which script is followed: taking one up when its iteration begins, changing to another, leaving the one that the job
// has left.
//
// A script is known once it was followed, or found as one of several shapes (variants.h). One that was just planned
// waits (pending) until its iteration begins. A followed script that the job has left for longer than an iteration is
// parked: it waits again, without memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/history.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/fast_path.h"
#include "runtime/engine/page_manager.h"
#include "runtime/script/follower.h"
#include "runtime/script/load_columns.h"
#include "runtime/script/script.h"
#include "runtime/script/variants.h"

namespace hotpack {

// Needs the engine's lock. Makes no driver call and never drops the lock.
class ScriptSwitcher {
 public:
  // `load`: where the load of the script in force is kept; null: nowhere. All arguments outlive this.
  ScriptSwitcher(const History* history, PageManager* pages, DynamicBlocks* blocks, EngineStats* stats, FastPath* fast,
                 LoadColumns* load)
      : history_(history), pages_(pages), blocks_(blocks), stats_(stats), fast_(fast), load_(load) {}

  // The script followed now, or none.
  Follower& follower() { return follower_; }
  const Follower& follower() const { return follower_; }
  bool Follows() const { return follower_.active() && !follower_.lost(); }  // and the job does as it says
  bool parked() const { return number_ > 0 && !follower_.active(); }
  // The script followed, or followed last; null: there has been none.
  const std::shared_ptr<const Script>& current() const { return current_; }
  uint64_t number() const { return number_; }  // of the variant of `current`; 0: none
  uint64_t epoch() const { return epoch_; }    // times a script was taken up
  Variants& variants() { return variants_; }
  const Variants& variants() const { return variants_; }
  // The scripts known, the one that has served most first; with none, the one that waits.
  std::vector<std::shared_ptr<const Script>> ScriptsByUse() const;
  // Those that the job changes to and from, but for the one with that number. Empty if it has changed to none.
  std::vector<std::shared_ptr<const Script>> OtherScripts(uint64_t number) const;
  uint64_t switches() const { return switches_; }  // from one known script to another

  // --- a script that waits for its iteration ------------------------------------------------------------------------
  const std::shared_ptr<const Script>& pending() const { return pending_.script; }  // null: none
  uint64_t pending_replans() const { return pending_.replans; }
  uint64_t pending_since() const { return pending_.since; }  // requests before it
  // `replans`: number of the script that it is to replace; 0: none.
  void SetPending(std::shared_ptr<const Script> script, uint64_t replans);
  void DropPending() { pending_.script.reset(); }
  enum class Activation : uint8_t {
    kWaits,         // its iteration does not begin now
    kActivated,     // it is followed
    kReplanNeeded,  // the memory next to the zone that it counts on is gone
  };
  // The next request is for `units`. O(requests compared).
  Activation TryActivate(uint32_t units);
  // Follows the pending script; the next request is its entry `position`. If there are no addresses, nothing is
  // followed.
  void Activate(uint32_t position);
  // True once after a script found no addresses for its zone: PageManager::ReclaimAddresses may help.
  bool TakeReclaimDue();

  // --- one script for another ---------------------------------------------------------------------------------------
  // Changes to another script if that is known to ask for what the job has asked for: for all of the iteration under
  // way, or for the last requests, if nothing the script says was found for a while. `newest`: ordinal of the last
  // request.
  void MaybeSwitch(uint64_t newest);
  // An iteration has ended. Where another one has come after it each of the last times, it is that one's turn now.
  void FollowPredicted();
  // The next plan is not to use the zone there is.
  void LeaveZone() { fresh_zone_ = true; }
  bool leaves_zone() const { return fresh_zone_; }

  // --- leaving ------------------------------------------------------------------------------------------------------
  // Nothing is followed any more. Blocks at the script's places live on, in ordinary memory.
  void Retire();
  // The script waits without memory until its iteration is seen again.
  void Park();
  enum class Loss : uint8_t { kNotLost, kJustLost, kParked };
  // After each request. A script that has been lost for longer than an iteration is parked.
  Loss NoteLoss();
  // The script was a saved plan's and did not fit: forgotten, as if it had never been followed.
  void Forget();

  // --- iterations ---------------------------------------------------------------------------------------------------
  // An iteration of the script has ended: counts it. Returns whether a request was displaced in it.
  bool EndIteration();
  // Displaced although no request left the script: the job may be a period off. Goes on at the period that fits best.
  void Realign();
  void CloseIteration();
  uint64_t iteration_begin() const { return iteration_begin_; }  // requests before the iteration under way
  uint64_t Divergences() const { return divergences_ + (follower_.active() ? follower_.divergences() : 0); }
  bool diverged() const { return Divergences() != divergences_at_end_; }  // in the iteration under way
  // Whether blocks from before the script, or from an iteration that diverged, still have memory of their own.
  bool InFirstCycle() const;
  uint64_t requests_followed() const { return history_->Count() - activated_at_; }
  // Blocks of other scripts that have been in the zone for all of the iteration that ended.
  std::vector<ZoneRange> FindReservedRanges() const;
  // Whether a block that is not the script's has been at one of its places for longer than the whole cycle.
  bool SomethingOverstays() const;

  // --- lives longer than the cycle ----------------------------------------------------------------------------------
  void RecordLifetime(uint32_t age);  // a block was released `age` requests after it was asked for
  uint64_t overlong_lives() const { return overlong_lives_; }
  uint64_t overlong_at_start() const { return overlong_at_start_; }  // of the script

  void AddTo(hotpack_stats* stats) const;
  uint64_t PlanBytes() const;  // the height of the plan, its holes added; 0: none

 private:
  bool TailMatches(const Script& script, uint32_t units) const;
  uint32_t BestPhase(const Script& script) const;
  Variant* AddVariant(std::shared_ptr<const Script> script, uint64_t replans);
  bool StartFollowing(Variant* variant, uint32_t position);
  bool SwitchTo(Variant* next, uint32_t position);
  std::vector<Follower::Range> LeaveInPlace(const Script& next);
  DynamicBlock ToDynamic(uint32_t entry) const;
  AddressRange PlaceOf(const Follower::Range& range) const;

  const History* const history_;
  PageManager* const pages_;
  DynamicBlocks* const blocks_;
  EngineStats* const stats_;
  FastPath* const fast_;
  LoadColumns* const load_;

  Follower follower_;
  std::shared_ptr<const Script> current_;
  Variants variants_;
  uint64_t number_ = 0;
  uint64_t epoch_ = 0;
  struct Pending {
    std::shared_ptr<const Script> script;
    uint64_t replans = 0;
    uint64_t since = 0;
  } pending_;
  bool fresh_zone_ = false;
  bool reclaim_due_ = false;
  int reclaim_tries_ = 0;        // in a row
  uint64_t longest_period_ = 0;  // of the scripts followed so far
  uint64_t switches_ = 0;
  uint64_t switch_work_ = 0;                // entries of the scripts switched to
  uint64_t lost_since_ = 0;                 // requests; 0: not lost
  uint64_t activated_at_ = 0;               // requests before the script was taken up
  uint64_t iteration_begin_ = 0;            // requests
  uint64_t previous_begin_ = kUnmonitored;  // requests before the iteration that was taken to have ended there; or none
  uint64_t last_end_ = 0;                   // requests when an iteration last ended
  uint32_t phase_ = 0;                      // the entry that the iteration under way began with
  uint64_t displaced_at_end_ = 0;           // of the last iteration
  uint64_t divergences_ = 0;                // of scripts no longer followed
  uint64_t divergences_at_end_ = 0;         // of the last iteration
  uint64_t diverged_until_ = 0;             // requests before the end of the last iteration that diverged
  uint64_t overlong_lives_ = 0, overlong_at_start_ = 0;
};

}  // namespace hotpack
