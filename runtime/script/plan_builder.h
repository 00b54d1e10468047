// Makes plans: finds the hot iteration in the history, packs it, and compiles the script. Pure: no state, no lock, no
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "packer/stop.h"
#include "packer/stream_edges.h"
#include "profiler/history.h"
#include "profiler/profile.h"
#include "runtime/memory/arena.h"
#include "runtime/script/script.h"

namespace hotpack {

// One planning job.
struct PlanJob {
  enum class Kind : uint8_t {
    kIteration,  // the hot iteration: to be found, marked, or given as a profile
    kShapes,     // iterations of several shapes (profiler/shapes.h)
    kEnvelope,   // an envelope of iterations that differ (envelope_learner.h)
    kSave,       // no planning: the known scripts are saved
  };
  Kind kind = Kind::kIteration;
  uint64_t end = 0;                        // reads the requests before this ordinal
  uint64_t period = 0;                     // the marked iteration's length; 0: find it
  std::optional<Profile> profile;          // plan this one; nothing is searched
  std::shared_ptr<const Script> known;     // the followed script; null: none
  bool replace = false;                    // plan the period found even if it is the known one, or a shorter one
  bool only_more = false;                  // ... the known one only if more of its requests get places than in `known`
  std::vector<ZoneRange> reserved_ranges;  // of the zone: blocks of other scripts use them for the whole cycle
  bool shapes = false;                     // kIteration: then search for several shapes, too
  uint64_t stretch = 0;  // kShapes: the last requests, in which no script was followed; they are searched separately
  // kEnvelope: the iterations to learn from lie between these ordinals, ascending.
  std::vector<uint64_t> marks;
  std::vector<uint32_t> taken;  // the entries whose places the requests from taken_first on got; kNone: none
  uint64_t taken_first = 0;
  std::vector<std::pair<uint32_t, uint32_t>> met;  // entries whose requests found the others' blocks at their places
  bool may_place = false;                          // a new placement is due
  bool new_fragments = false;                      // kEnvelope: none is followed, so other fragments may be used
};

// Returns the profile that a job names or finds in the history. Returns nothing if no profile is worth a new script.
std::optional<Profile> FindProfile(const History& history, const PlanJob& job);

// Related scripts that guide the packer; each may be null.
struct RelatedScripts {
  // The same requests, packed before: the packer starts from its offsets (Sekiyama 2018, §4.3).
  const Script* previous = nullptr;
  // Begins with the same requests. Blocks that are live where the two scripts part are pinned to their places in this
  // one. So a change of script within an iteration finds everything in its place.
  const Script* sibling = nullptr;
  std::vector<ZoneRange> reserved_ranges;  // pinned from the cycle's beginning to its end
};

// Sets the alignment of blocks of at least kLargeBlock, in bytes.
void AlignLarge(uint64_t large_alignment, Instance* instance);

// Lays out the space of offsets with the fragments in front: fragment, wall of one unit, fragment, wall, ..., zone.
// Walls are blocks that are resident from 0 to `length`, so that no block is placed across them. They are appended to
// the instance. Offsets are congruent to addresses modulo `alignment`.
std::vector<Fragment> LayOut(const std::vector<AddressRange>& fragments, uint64_t alignment, Clock length,
                             Instance* instance, uint32_t* zone_offset);

// Packs and compiles a profile. Returns null if the packer refuses.
// - `max_units`: the largest load that the job has been seen to have, without the blocks that stay. Releases may be
//   permuted only if the load stays near it.
// - `fragments`: memory outside the planned zone that is held whatever the plan. Blocks are placed there if that lowers
//   the zone by at least one chunk of `chunk_bytes`.
// - `cancel`: may be set from another thread.
// - `large_alignment`: PlanSettings
// - `clock`: counts the time limit (PackOptions::clock); null: the machine's clock does.
// - `stream_edges`: whether blocks of several streams are then placed so that few wait for another stream.
std::shared_ptr<const Script> MakeScript(Profile profile, uint64_t max_units,
                                         const std::vector<AddressRange>& fragments, uint64_t chunk_bytes,
                                         int64_t time_limit_ns, const std::atomic<bool>* cancel,
                                         const RelatedScripts& related = {}, WorkClock* clock = nullptr,
                                         uint64_t large_alignment = kBlockUnit,
                                         const StreamEdgeRule& stream_edges = {});

// Returns the limit for a plan's load if the job never needed more than `units`: 1/32 or two chunks more, whichever is
// larger.
inline uint64_t LoadLimit(uint64_t units, uint64_t chunk_bytes) {
  return units + std::max(units / 32, 2 * chunk_bytes / kBlockUnit);
}

// Keeps a learned profile to a load that the job has had. A profile that learned from iterations of different shapes
// may add up lives that never overlapped. `known` is the profile that `learned` began as. If the load of `learned`,
// PeakUnits(), exceeds both `max_units` and the load of `known`, `learned` takes the lives of `known` and keeps only
// its sizes. Returns false if nothing new remains. Changes nothing if the two differ in their requests. O(requests).
bool ClampToKnownLoad(Profile* learned, const Profile& known, uint64_t max_units);

// The state of a run that a plan depends on, in addition to its profile. Copied under the engine's lock.
struct PlanSnapshot {
  uint64_t max_units = 0;               // the largest load so far, without the blocks that stay whatever the plan
  std::vector<AddressRange> fragments;  // free memory that is held whatever the plan; MakeScript's `fragments`
  std::vector<std::shared_ptr<const Script>> scripts;  // scripts that the job changes to and from
};

struct PlanSettings {
  uint64_t chunk_bytes = 0;
  int64_t time_limit_ns = 0;              // for one solve
  bool logical_time = false;              // the limit counts work instead of time (packer/stop.h)
  uint64_t large_alignment = kBlockUnit;  // bytes: of the offsets of blocks of at least kLargeBlock
  StreamEdgeRule stream_edges;
};

// Builds the script for a profile that FindProfile returned for `job`. Returns null in three cases: the script would
// bring nothing new, its lives never overlapped, or the packer refuses. Reads nothing but its arguments. Thread-safe.
std::shared_ptr<const Script> BuildScript(Profile profile, const PlanJob& job, const PlanSnapshot& snapshot,
                                          const PlanSettings& settings, const std::atomic<bool>* cancel);

// Builds the script for one of a job's several shapes. Returns null if the packer refuses. Otherwise like BuildScript.
std::shared_ptr<const Script> BuildShapeScript(Profile profile, const PlanSnapshot& snapshot,
                                               const PlanSettings& settings, const std::atomic<bool>* cancel);

}  // namespace hotpack
