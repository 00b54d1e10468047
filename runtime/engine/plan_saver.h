// Decides which scripts are saved for a later run, and when.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "profiler/history.h"
#include "runtime/persist/saved_plan.h"
#include "runtime/script/variants.h"

namespace hotpack {

// A profile's first_ordinal if the script was not found in this run: this value for the saved plan's first script, and
// the values right below it for its other scripts.
inline constexpr uint64_t kOfSavedPlan = UINT64_MAX;
inline bool FoundHere(const Script& script) { return script.profile.first_ordinal < kOfSavedPlan - Variants::kMax; }

// The state of a run that is to be saved.
struct RunToSave {
  std::vector<std::shared_ptr<const Script>> scripts;  // the one that has served most requests first
  uint64_t anchor_of_saved = kNoAnchor;  // a request that entry 0 of the saved plan's script (kOfSavedPlan) represents
  uint64_t live_peak_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t device_bytes = 0;
  uint64_t large_alignment = kBlockUnit;  // EngineOptions
};

class PlanSaver {
 public:
  // --- with the engine's lock -------------------------------------------------------------------------------------
  // Returns whether scripts up to number `newest` should be saved after `iterations` iterations. The interval doubles,
  // because a job that keeps changing has a new plan each time.
  bool Due(uint64_t newest, uint64_t iterations) const { return !IsSaved(newest) && iterations >= next_save_; }
  void NotePosted(uint64_t iterations) { next_save_ = 2 * iterations; }
  bool IsSaved(uint64_t newest) const { return saved_newest_ == newest; }
  void SetSaved(uint64_t newest) { saved_newest_ = newest; }  // the saved plan's beginning is this run's
  void Forget() { saved_newest_ = 0; }                        // this run has departed from the saved plan
  uint64_t saved_newest() const { return saved_newest_; }

  // --- without the lock, thread-safe --------------------------------------------------------------------------------
  // Makes the plan that a later run begins with. Returns null if there are no scripts, or if the first cannot be
  // packed. Reads `history`. Packs scripts with fragments again, for at most three times `pack_limit_ns`. Of many
  // scripts, it omits those that would take longer. O(requests in the history).
  std::shared_ptr<const SavedPlan> Make(RunToSave run, const History& history, int64_t pack_limit_ns);

 private:
  Opening ChooseOpening(RunToSave* run, const History& history);

  uint64_t saved_newest_ = 0;  // number of the newest script that has been saved
  uint64_t next_save_ = 0;     // iterations

  std::mutex mutex_;  // guards the members below
  Opening opening_;   // of this run, made while the history still contained its beginning
  // first_ordinal of the script that the opening belongs to, and of the scripts learned from it.
  uint64_t opening_root_ = 0;
  bool opening_known_ = false;
};

}  // namespace hotpack
