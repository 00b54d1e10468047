// What one run saves for the next: its scripts, and how the run began.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/history.h"
#include "runtime/script/script.h"

namespace hotpack {

// The first requests of a run, and the script's entry that each of them was. It separates the iteration's own requests
// from optimizer state that arrives within the first iteration, and the first of them from the weights.
//
//   weights             first iteration, optimizer state in the middle   from here on the script's own order
//   w0 w1 ... wk        e5 e6 e7 s0 s1 e8 s2 e9 ... en-1 e0 e1 ...
//   kNone, kNone, ...   5  6  7  kNone  8 kNone 9 ...                  <- entries
struct Opening {
  std::vector<uint32_t> units;    // of each request
  std::vector<uint32_t> entries;  // of the script; kNone: none, to be served dynamically
  uint32_t script = 0;            // index of the script
  // The requests before the script's first one. Known even if these requests themselves are not.
  uint64_t before = 0;
  bool empty() const { return units.empty(); }
};

struct SavedPlan {
  std::vector<std::shared_ptr<const Script>> scripts;  // without fragments; first the one that the opening belongs to
  Opening opening;
  // For people, and to check whether the plan is meant for this device.
  std::string program;  // path of the program that it was made for
  std::string device;   // name of the device
  uint64_t device_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t live_peak_bytes = 0;  // of the run that made it
  // Of the run that began without this plan: most held, most live. 0: unknown. Only `hotpack run` fills them in.
  uint64_t held_without_bytes = 0;
  uint64_t live_without_bytes = 0;
  uint64_t created_ns = 0;    // since 1970-01-01 UTC
  uint32_t tool_version = 0;  // HOTPACK_VERSION of the writer
};

// Receives plans to be saved, and the event that a plan was rejected. Called without any lock of the engine.
class PlanSink {
 public:
  virtual ~PlanSink() = default;
  // Called on the planner's thread, or on the thread that ends the process or the context; possibly on several at a
  // time.
  virtual void Save(const SavedPlan& plan) = 0;
  // The plan that the engine began with does not fit the job's requests. Called at most once, on a thread of the job.
  virtual void OnRejected() = 0;
};

// Returns whether all blocks of at least 1 MiB begin at multiples of `large_alignment`, in bytes.
bool IsAligned(const SavedPlan& plan, uint64_t large_alignment);

inline constexpr uint64_t kMaxOpening = 1 << 18;  // requests: 2 MiB of a file

inline constexpr uint64_t kNoAnchor = UINT64_MAX;

// Finds how a run began. `tail` holds its first requests (tail.first == 0).
// 1. Starts at the request `anchor`, an occurrence of the script's entry 0. If that is far away or unknown (kNoAnchor),
//    starts at the first cycle that equals the script request by request.
// 2. Goes back from there. Omits blocks that were not released in time. Searches for the position again where requests
//    are missing or inserted.
// 3. Ends one cycle after the last request that was not in the script's order, at kMaxOpening, or some cycles after its
//    beginning, whichever is first.
// Returns an empty opening if the script begins only there. Usually O(requests × log entries).
Opening FindOpening(const HistoryTail& tail, const Script& script, uint64_t anchor);

// Returns the same script with all its blocks in one zone, because fragments are addresses of one run. Packs again, for
// at most `time_limit_ns`. If that is no better, the fragments are put above the zone. Returns null if the packer
// refuses.
std::shared_ptr<const Script> WithoutFragments(const std::shared_ptr<const Script>& script, int64_t time_limit_ns,
                                               uint64_t large_alignment = kBlockUnit);

}  // namespace hotpack
