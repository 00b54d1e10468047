// Decides which script is followed: starts one when its iteration begins, changes to another, leaves one that the job
// has left.
// - A script is known once it was followed, or found as one of several shapes (variants.h).
// - A script that was just planned is pending until its iteration begins.
// - A followed script that the job has left for longer than an iteration is parked: it waits again, without memory.
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

// Needs the engine's lock. Makes no driver call and never releases the lock.
class ScriptSwitcher {
 public:
  // `load`: where the load of the script in force is stored; null: nowhere. All arguments must outlive this object.
  ScriptSwitcher(const History* history, PageManager* pages, DynamicBlocks* blocks, EngineStats* stats, FastPath* fast,
                 LoadColumns* load)
      : history_(history), pages_(pages), blocks_(blocks), stats_(stats), fast_(fast), load_(load) {}

  // The script followed now, if any.
  Follower& follower() { return follower_; }
  const Follower& follower() const { return follower_; }
  bool Follows() const { return follower_.active() && !follower_.lost(); }  // and the job does what the script says
  bool parked() const { return number_ > 0 && !follower_.active(); }
  // The script followed now or last; null: there was none.
  const std::shared_ptr<const Script>& current() const { return current_; }
  uint64_t number() const { return number_; }  // of the variant of `current`; 0: none
  uint64_t epoch() const { return epoch_; }    // times that a script was started
  Variants& variants() { return variants_; }
  const Variants& variants() const { return variants_; }
  // Returns the known scripts, the one that has served most requests first. Without any, returns the pending one.
  std::vector<std::shared_ptr<const Script>> ScriptsByUse() const;
  // Returns the scripts that the job changes to and from, except the one with that number. Empty if it has never
  // changed.
  std::vector<std::shared_ptr<const Script>> OtherScripts(uint64_t number) const;
  uint64_t switches() const { return switches_; }  // from one known script to another

  // --- a pending script ----------------------------------------------------------------------------------------------
  const std::shared_ptr<const Script>& pending() const { return pending_.script; }  // null: none
  uint64_t pending_replans() const { return pending_.replans; }
  uint64_t pending_since() const { return pending_.since; }  // requests before it became pending
  // `replans`: number of the script that it replaces; 0: none.
  void SetPending(std::shared_ptr<const Script> script, uint64_t replans);
  void DropPending() { pending_.script.reset(); }
  enum class Activation : uint8_t {
    kWaits,         // its iteration does not begin now
    kActivated,     // it is followed
    kReplanNeeded,  // memory outside the zone that it counts on is gone
  };
  // Starts the pending script if its iteration begins with the next request, for `units`. O(requests compared).
  Activation TryActivate(uint32_t units);
  bool waits_for_capture() const { return waits_for_capture_; }  // the pending script could have started otherwise
  // Follows the pending script: the next request is its entry `position`. If there are no addresses, no script is
  // followed.
  void Activate(uint32_t position);
  // Returns true once after a script found no addresses for its zone: PageManager::ReclaimAddresses may help.
  bool TakeReclaimDue();

  // --- one script for another ---------------------------------------------------------------------------------------
  // Changes to another script if that one has the same requests as the job: in all of the current iteration, or in the
  // last requests if none of them matched the followed script. `newest`: ordinal of the last request.
  void MaybeSwitch(uint64_t newest);
  // Call when an iteration has ended. Follows another script if that one came next each of the last times.
  void FollowPredicted();
  // The next plan will not use the current zone.
  void LeaveZone() { fresh_zone_ = true; }
  bool leaves_zone() const { return fresh_zone_; }

  // --- leaving ------------------------------------------------------------------------------------------------------
  // Stops following. Blocks at the script's places live on, in ordinary memory.
  void Retire();
  // Retires the script, which then waits without memory until its iteration is seen again.
  void Park();
  // Call for each monitored request while the script is parked. If the requests are those of the script's beginning, so
  // far, places the next one where the script has it, in free memory of the last zone. So it is not in the way when the
  // script starts. Returns false if it cannot. O(log ranges).
  bool PlaceAtHome(uint32_t units, DeviceAddress* address);
  enum class Loss : uint8_t { kNotLost, kJustLost, kParked };
  // Call after each request. Parks a script that has been lost for longer than an iteration.
  Loss NoteLoss();
  // Forgets a saved plan's script that did not fit, as if it had never been followed.
  void Forget();
  void ForgetAll();  // follows no script, and knows none

  // --- iterations ---------------------------------------------------------------------------------------------------
  // Counts an ended iteration of the script. Returns whether a request was displaced in it.
  bool EndIteration();
  // A request was displaced although none left the script: the job may be shifted by a period. Continues at the period
  // that fits best.
  void Realign();
  void CloseIteration();
  uint64_t iteration_begin() const { return iteration_begin_; }  // requests before the current iteration
  uint64_t Divergences() const { return divergences_ + (follower_.active() ? follower_.divergences() : 0); }
  bool diverged() const { return Divergences() != divergences_at_end_; }  // in the current iteration
  // Returns whether blocks from before the script, or from an iteration that diverged, still have memory of their own.
  bool InFirstCycle() const;
  uint64_t requests_followed() const { return history_->Count() - activated_at_; }
  // Returns ranges of the zone where blocks of other scripts lay during all of the ended iteration.
  std::vector<ZoneRange> FindReservedRanges() const;
  // Returns whether a foreign block has lain at one of the script's places for longer than the whole cycle.
  bool SomethingOverstays() const;

  // --- lives longer than the cycle ----------------------------------------------------------------------------------
  void RecordLifetime(uint32_t age);  // a block was released `age` requests after its request
  uint64_t overlong_lives() const { return overlong_lives_; }
  uint64_t overlong_at_start() const { return overlong_at_start_; }  // the count when the script was started

  void AddTo(hotpack_stats* stats) const;
  uint64_t PlanBytes() const;  // height of the plan plus its fragments; 0: none

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
  bool waits_for_capture_ = false;
  uint32_t head_ = 0;  // while parked: the last requests are the script's first ones, so many
  bool fresh_zone_ = false;
  bool reclaim_due_ = false;
  int reclaim_tries_ = 0;        // in a row
  uint64_t longest_period_ = 0;  // of the scripts followed so far
  uint64_t switches_ = 0;
  uint64_t switch_work_ = 0;      // entries of the scripts switched to
  uint64_t lost_since_ = 0;       // requests; 0: not lost
  uint64_t activated_at_ = 0;     // requests before the script was started
  uint64_t iteration_begin_ = 0;  // requests
  // Requests before the iteration taken to have ended there; kUnmonitored: none.
  uint64_t previous_begin_ = kUnmonitored;
  uint64_t last_end_ = 0;            // requests when an iteration last ended
  uint32_t phase_ = 0;               // the entry at which the current iteration began
  uint64_t displaced_at_end_ = 0;    // of the last iteration
  uint64_t divergences_ = 0;         // of scripts no longer followed
  uint64_t divergences_at_end_ = 0;  // of the last iteration
  uint64_t diverged_until_ = 0;      // requests before the end of the last iteration that diverged
  uint64_t overlong_lives_ = 0, overlong_at_start_ = 0;
};

}  // namespace hotpack
