// Plans in the background: finds the hot iteration in the history, packs it, compiles the script. On its own thread, so
// that the job never waits for a solve.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "packer/stop.h"
#include "profiler/history.h"
#include "profiler/profile.h"
#include "runtime/arena.h"
#include "runtime/script.h"

namespace hotpack {

struct PlanJob {
  uint64_t end = 0;                // look at the requests before this ordinal
  uint64_t period = 0;             // the marked iteration's length; 0: find it
  std::optional<Profile> profile;  // plan this, nothing is to be found
  std::shared_ptr<const Script> known;  // the one being served; null: none
  bool replace = false;                 // plan the period found even if it is the known one, or a shorter one
  bool save = false;                    // nothing is to be planned: the plan there is is to be saved
  std::vector<ZonePlace> walls;         // nothing is to be put there: blocks of other scripts lie there all the while
  uint64_t stretch = 0;                 // requests at the end that no script was followed in: they are looked at by themselves
  bool shapes = false;                  // look for iterations of several shapes too (profiler/shapes.h)
  bool shapes_only = false;             // ... and for nothing else
};

// The profile that a job names or finds in the history; nothing if there is none that is worth a new script.
std::optional<Profile> FindProfile(const History& history, const PlanJob& job);

// Scripts that a new one should be like, or null.
struct Kin {
  const Script* old = nullptr;     // the same requests, packed before: the packer starts from there (Sekiyama 2018, §4.3)
  const Script* beside = nullptr;  // begins with the same requests: what is live where they part is pinned where it lies
                                   // there, so that a change of script half way finds everything in its place
  std::vector<ZonePlace> walls;    // pinned from the cycle's beginning to its end
};

// Packs and compiles. Null if the packer refuses. `most_units`: the largest load that the job has been seen to have beside
// what stays; releases are given leave to permute only if the load stays near it. `spare`: memory that is held beside the planned zone whatever the plan;
// blocks are put there where that lowers the zone by a chunk of `chunk_bytes` or more. `cancel` may be set from another thread.
// `clock`: the time limit is of this one (PackOptions::clock); null: of the machine's.
std::shared_ptr<const Script> MakeScript(Profile profile, uint64_t most_units, const std::vector<AddressRange>& spare,
                                         uint64_t chunk_bytes, int64_t time_limit_ns, const std::atomic<bool>* cancel,
                                         const Kin& kin = {}, WorkClock* clock = nullptr);

// What a plan's load may be where the job was never seen to need more than `units`: a little more, or two chunks.
inline uint64_t NearlyNoMore(uint64_t units, uint64_t chunk_bytes) {
  return units + std::max(units / 32, 2 * chunk_bytes / kUnitBytes);
}

// A profile that has learned from iterations of different shapes may add up lives that never were together. If its load,
// PeakUnits(), is above `most_units` and above that of the profile it began as, `known`, it keeps the lives of that one and
// takes the sizes alone. False: nothing is new then. Both have the same requests, else nothing is changed. O(requests).
bool KeepNearLoad(Profile* learned, const Profile& known, uint64_t most_units);

// One thread, started with the first job; at most one job at a time. Thread-safe.
class Planner {
 public:
  // Does a job, on the planner's thread; `cancel`: end with what there is.
  using Work = std::function<void(const PlanJob&, const std::atomic<bool>* cancel)>;

  // on_demand: a job begins only when a thread waits for it. So what the poster still does before it waits is done before
  // the job, in every run alike.
  explicit Planner(Work work, bool on_demand = false) : work_(std::move(work)), on_demand_(on_demand) {}
  ~Planner();  // cancels and joins

  bool Post(PlanJob job);  // false: busy, the job is dropped
  bool Busy() const { return busy_.load(std::memory_order_acquire); }
  void Hurry();                   // the job that is being done is to end with what it has
  bool WaitIdle(int timeout_ms);  // negative: no limit
  void Abandon();                 // in a forked child: there is no thread
  void Detach();                  // no more jobs; the thread ends by itself, soon. The planner must live for ever then

 private:
  void Loop();
  void StartThread();
  bool MayBegin() const { return job_.has_value() && (!on_demand_ || waiters_ > 0); }  // with the mutex

  Work work_;
  const bool on_demand_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<PlanJob> job_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> cancel_{false};
  bool stop_ = false;
  int waiters_ = 0;
  std::thread thread_;
};

}  // namespace hotpack
