// What one run leaves to the next: its scripts, and how it began.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/history.h"
#include "runtime/script/script.h"

namespace hotpack {

// The first requests of a run, and which entry of the script each of them was. Optimizer state that arrives in the
// middle of the first iteration is told from the iteration's own requests by this, and so is the first of these from
// the weights.
//
//   weights             first iteration, optimizer state in the middle   from here on the script's own order
//   w0 w1 ... wk        e5 e6 e7 s0 s1 e8 s2 e9 ... en-1 e0 e1 ...
//   kNone, kNone, ...   5  6  7  kNone  8 kNone 9 ...                  <- entries
struct Opening {
  std::vector<uint32_t> units;    // of each request
  std::vector<uint32_t> entries;  // of the script; kNone: none, to be served dynamically
  uint32_t script = 0;            // which one: an index
  // How many requests come before the first of the script. Known also where the requests themselves are not.
  uint64_t before = 0;
  bool empty() const { return units.empty(); }
};

struct SavedPlan {
  std::vector<std::shared_ptr<const Script>> scripts;  // without holes; first the one that the opening is of
  Opening opening;
  // For people, and to judge by whether the plan can be meant for this device.
  std::string program;  // path of the program that it was made for
  std::string device;   // name of the device
  uint64_t device_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t live_peak_bytes = 0;  // of that run
  uint64_t created_ns = 0;       // since 1970-01-01 UTC
  uint32_t tool_version = 0;     // HOTPACK_VERSION of the writer
};

// Who takes plans that are to be kept, and hears that one is of no use. Called without any lock of the engine.
class PlanSink {
 public:
  virtual ~PlanSink() = default;
  // On the planner's thread, or on the one that ends the process or the context; from several threads at a time.
  virtual void Save(const SavedPlan& plan) = 0;
  // The plan that the engine began with does not fit what is asked for. At most once; on a thread of the job.
  virtual void OnRejected() = 0;
};

inline constexpr uint64_t kMaxOpening = 1 << 18;  // requests: 2 MiB of a file

inline constexpr uint64_t kNoAnchor = UINT64_MAX;

// How the run began whose first requests `tail` holds (tail.first == 0), as seen from its request `anchor`, which is an
// occurrence of the script's entry 0; or, if that is far from it or not known (kNoAnchor), from the first cycle that is
// the script's request by request. Goes back from there and leaves out what was not released in time; where requests
// are missing or inserted it looks for the place again. Ends a cycle after the last that was not in the script's order,
// or at kMaxOpening, or some cycles after it began; empty if the script begins only there. O(requests × log entries) as
// a rule.
Opening FindOpening(const HistoryTail& tail, const Script& script, uint64_t anchor);

// The same script with all its blocks in one zone: holes are addresses of one run. Packs again, for at most
// `time_limit_ns`; where that is no better the holes are put above the zone. Null: the packer refuses.
std::shared_ptr<const Script> WithoutHoles(const std::shared_ptr<const Script>& script, int64_t time_limit_ns);

}  // namespace hotpack
