// Which scripts are kept for a later run, and when.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "profiler/history.h"
#include "runtime/persist/saved_plan.h"
#include "runtime/script/variants.h"

namespace hotpack {

// A profile's first_ordinal where the script was not found in this run: that of the saved plan's first script; those of
// its other scripts come right below.
inline constexpr uint64_t kOfSavedPlan = UINT64_MAX;
inline bool FoundHere(const Script& script) { return script.profile.first_ordinal < kOfSavedPlan - Variants::kMax; }

// What is known of a run when it is to be saved.
struct RunToSave {
  std::vector<std::shared_ptr<const Script>> scripts;  // the one that has served most first
  uint64_t anchor_of_saved = kNoAnchor;  // a request that entry 0 of the saved plan's script (kOfSavedPlan) stands for
  uint64_t live_peak_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t device_bytes = 0;
};

class PlanSaver {
 public:
  // --- with the engine's lock -------------------------------------------------------------------------------------
  // Whether scripts up to the number `newest` are to be saved after `iterations` iterations. The interval doubles,
  // because a job that goes on learning has another script each time.
  bool Due(uint64_t newest, uint64_t iterations) const { return !IsSaved(newest) && iterations >= next_save_; }
  void NotePosted(uint64_t iterations) { next_save_ = 2 * iterations; }
  bool IsSaved(uint64_t newest) const { return saved_newest_ == newest; }
  void SetSaved(uint64_t newest) { saved_newest_ = newest; }  // what a later run is given begins as this one does
  void Forget() { saved_newest_ = 0; }                        // this run has left what is saved
  uint64_t saved_newest() const { return saved_newest_; }

  // --- without it, thread-safe ------------------------------------------------------------------------------------
  // The plan that a later run begins with: null without scripts, or if the first cannot be packed. Reads `history`.
  // Packs scripts with holes again, for at most thrice `pack_limit_ns`; of many scripts those that would take longer
  // are left out. O(requests in the history).
  std::shared_ptr<const SavedPlan> Make(RunToSave run, const History& history, int64_t pack_limit_ns);

 private:
  Opening ChooseOpening(RunToSave* run, const History& history);

  uint64_t saved_newest_ = 0;  // number of the newest script that has been saved
  uint64_t next_save_ = 0;     // iterations

  std::mutex mutex_;           // of what follows
  Opening opening_;            // of this run, while the history still had its beginning
  uint64_t opening_root_ = 0;  // first_ordinal of the script that it is of, and of those learned from it
  bool opening_known_ = false;
};

}  // namespace hotpack
