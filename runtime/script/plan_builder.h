// Makes plans: finds the hot iteration in the history, packs it, compiles the script. Pure: no state, no lock, no
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "packer/stop.h"
#include "profiler/history.h"
#include "profiler/profile.h"
#include "runtime/memory/arena.h"
#include "runtime/script/script.h"

namespace hotpack {

// What is to be planned.
struct PlanJob {
  enum class Kind : uint8_t {
    kIteration,  // the hot iteration: found, marked, or given as a profile
    kShapes,     // iterations of several shapes (profiler/shapes.h)
    kSave,       // nothing: the scripts there are are saved
  };
  Kind kind = Kind::kIteration;
  uint64_t end = 0;                        // reads the requests before this ordinal
  uint64_t period = 0;                     // the marked iteration's length; 0: find it
  std::optional<Profile> profile;          // plan this: nothing is to be found
  std::shared_ptr<const Script> known;     // the followed script; null: none
  bool replace = false;                    // plan the period found even if it is the known one, or a shorter one
  std::vector<ZoneRange> reserved_ranges;  // ranges of the zone that blocks of other scripts have all the while
  bool shapes = false;                     // kIteration: then look for several shapes, too
  uint64_t stretch = 0;  // shapes: the last requests, in which no script was followed, searched by themselves
};

// The profile that a job names or finds in the history; nothing if there is none that is worth a new script.
std::optional<Profile> FindProfile(const History& history, const PlanJob& job);

// Scripts that a new one should be like, or null.
struct RelatedScripts {
  const Script* old = nullptr;  // the same requests, packed before: the packer starts from there (Sekiyama 2018, §4.3)
  const Script* beside =
      nullptr;  // begins with the same requests: what is live where they part is pinned where it lies
                // there, so that a change of script half way finds everything in its place
  std::vector<ZoneRange> reserved_ranges;  // pinned from the cycle's beginning to its end
};

// Packs and compiles. Null if the packer refuses. `max_units`: the largest load that the job has been seen to have
// beside what stays; releases are given leave to permute only if the load stays near it. `spare`: memory that is held
// beside the planned zone whatever the plan; blocks are put there where that lowers the zone by a chunk of
// `chunk_bytes` or more. `cancel` may be set from another thread. `clock`: the time limit is of this one
// (PackOptions::clock); null: of the machine's.
std::shared_ptr<const Script> MakeScript(Profile profile, uint64_t max_units, const std::vector<AddressRange>& spare,
                                         uint64_t chunk_bytes, int64_t time_limit_ns, const std::atomic<bool>* cancel,
                                         const RelatedScripts& kin = {}, WorkClock* clock = nullptr);

// What a plan's load may be where the job was never seen to need more than `units`: a little more, or two chunks.
inline uint64_t LoadLimit(uint64_t units, uint64_t chunk_bytes) {
  return units + std::max(units / 32, 2 * chunk_bytes / kBlockUnit);
}

// A profile that has learned from iterations of different shapes may add up lives that never were together. If its
// load, PeakUnits(), is above `max_units` and above that of the profile it began as, `known`, it keeps the lives of
// that one and takes the sizes alone. False: nothing is new then. Both have the same requests, else nothing is changed.
// O(requests).
bool ClampToKnownLoad(Profile* learned, const Profile& known, uint64_t max_units);

// What of a run a plan depends on, besides its profile: copied under the engine's lock.
struct PlanSnapshot {
  uint64_t max_units = 0;               // the largest load so far, without the blocks that stay whatever the plan
  std::vector<AddressRange> fragments;  // free memory that is held whatever the plan; MakeScript's `spare`
  std::vector<std::shared_ptr<const Script>> scripts;  // that the job changes to and from
};

struct PlanSettings {
  uint64_t chunk_bytes = 0;
  int64_t time_limit_ns = 0;  // for one solve
  bool logical_time = false;  // the limit counts work instead of time (packer/stop.h)
};

// The script for a profile that FindProfile has returned for `job`. Returns null if it would be no news, if its lives
// never were together, or if the packer refuses. Reads nothing but its arguments; thread-safe.
std::shared_ptr<const Script> BuildScript(Profile profile, const PlanJob& job, const PlanSnapshot& snapshot,
                                          const PlanSettings& settings, const std::atomic<bool>* cancel);

// The script for one of a job's several shapes. Returns null if the packer refuses. As BuildScript.
std::shared_ptr<const Script> BuildShapeScript(Profile profile, const PlanSnapshot& snapshot,
                                               const PlanSettings& settings, const std::atomic<bool>* cancel);

}  // namespace hotpack
