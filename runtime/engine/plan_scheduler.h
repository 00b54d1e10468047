// Decides when the history is searched and when a script is planned again, and hands finished plans over.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/history.h"
#include "profiler/shapes.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/envelope_server.h"
#include "runtime/engine/page_manager.h"
#include "runtime/engine/rest_watch.h"
#include "runtime/engine/script_switcher.h"
#include "runtime/engine/spill_policy.h"
#include "runtime/script/envelope_learner.h"
#include "runtime/script/plan_builder.h"
#include "runtime/script/plan_worker.h"

namespace hotpack {

// Needs the engine's lock unless noted. Jobs run on the worker's thread in three steps: it copies, with the lock, what
// a plan depends on; it builds without the lock; it hands the script over with the lock.
class PlanScheduler {
 public:
  // The engine's parts. All must outlive this object.
  struct Parts {
    AdaptiveMutex* mutex;  // the engine's lock
    const History* history;
    PageManager* pages;
    DynamicBlocks* blocks;
    ScriptSwitcher* scripts;
    EngineStats* stats;
    SpillPolicy* spill;
    EnvelopeServer* envelope;
  };
  // `save` does a job of kind kSave. `on_demand`: as PlanWorker's; plans then come in logical time.
  PlanScheduler(const Parts& parts, int64_t time_limit_ns, bool on_demand, StreamEdgeRule stream_edges,
                std::function<void()> save);

  // --- without the lock ---------------------------------------------------------------------------------------------
  bool Busy() const { return worker_.Busy(); }
  bool WaitIdle(int timeout_ms) { return worker_.WaitIdle(timeout_ms); }  // negative: no limit
  void Abandon() { worker_.Abandon(); }                                   // in a forked child
  // Accepts no more jobs. This object must never be destroyed after that.
  void Detach() { worker_.Detach(); }

  // --- with the lock -------------------------------------------------------------------------------------------------
  // Call after each monitored request that did not take the short path. Searches the history each time it has grown by
  // a sixteenth. While a script is followed, searches only after the job has left it. O(1).
  void MaybeDetect();
  // Of requests below this ordinal, MaybeDetect has nothing to do while an envelope is followed.
  uint64_t EnvelopePatience() const {
    constexpr uint64_t kIterations = 4, kFew = 64;  // so many requests without a mark, and a few
    return last_mark_ + kIterations * longest_marked_ + kFew;
  }
  void DetectSoon();  // the job has left its plan: something else may repeat from now on
  // An iteration begins here. One marked iteration suffices for a plan (Sekiyama 2018, §4.1).
  void Mark();
  // Marks will come. Until the first one, or 2^16 requests if none comes, nothing is searched or planned: the first
  // iteration's loops would be planned otherwise, each a few times.
  void ExpectMarks();
  // Calls ScriptSwitcher::TryActivate. Plans the pending script again if its memory is gone.
  void TryActivate(uint32_t units);
  // The script has no place for a request that it expects.
  void NoteUnplanned() { unplanned_ = true; }
  // An iteration has ended. `displaced`: a request was displaced in it. Plans the script again if that may help.
  // Returns whether the next iteration may have another plan.
  bool Improve(bool displaced);
  bool PostSave();  // returns false if the worker is busy

  void AddTo(hotpack_stats* stats) const;
  // Returns why there is no plan to serve by, provided that no request was served by one. O(1).
  hotpack_no_plan_reason WhyNoPlan() const;

 private:
  static constexpr uint64_t kMinNewRequests = 64;  // minimum worth a search
  static constexpr uint64_t kPatience = 8;         // at first: iterations in a row that are served partly

  bool Post(PlanJob job, uint64_t replans = 0);
  void PostEnvelope();
  bool NoteRest(uint64_t count);
  bool Marked(uint64_t count) const;
  bool LoopOfIteration(const Script* script) const;
  uint64_t DetectionInterval(uint64_t count) const;
  uint64_t PartOfHistory() const;
  void ScanForShapes();
  bool LivesExceedCycle() const;
  void NoteServed(bool whole);

  // On the worker's thread, without the lock.
  void Run(const PlanJob& job, const std::atomic<bool>* cancel);
  void PlanIteration(const PlanJob& job, Profile profile, const std::atomic<bool>* cancel);
  void PlanShapes(const PlanJob& job, bool periodic, const std::atomic<bool>* cancel);
  size_t PlanEach(const HistoryTail& tail, const std::vector<Shape>& shapes, const std::atomic<bool>* cancel);
  void LearnEnvelope(const PlanJob& job, const std::atomic<bool>* cancel);
  bool FitsDevice(const Script& script);
  PlanSettings Settings() const;

  PlanSnapshot Snapshot(uint64_t cycle) const;

  const Parts parts_;
  const int64_t time_limit_ns_;
  const bool on_demand_;
  const StreamEdgeRule stream_edges_;
  const std::function<void()> save_;

  uint64_t next_detection_ = kMinNewRequests;  // requests
  uint64_t failed_searches_ = 0;               // in a row
  uint64_t detections_ = 0, planning_ns_ = 0;
  uint64_t divergences_at_detection_ = 0;
  uint64_t overlong_at_detection_ = 0;
  uint64_t partly_served_ = 0;       // iterations in a row in which a request was displaced, or had no place
  uint64_t served_in_whole_ = 0;     // ... in a row in which none was
  uint64_t patience_ = kPatience;    // with iterations that are served partly
  bool unplanned_ = false;           // in the current one, a request had no place
  bool partly_served_long_ = false;  // ... for long enough that the history may show better lives
  uint64_t next_shape_scan_ = 0;     // requests
  uint64_t last_shape_scan_ = 0;
  uint64_t shape_scan_interval_ = kMinNewRequests;
  bool shapes_found_ = false;  // the last scan found some
  uint64_t divergences_at_scan_ = 0;
  bool marks_expected_ = false;  // before the first one
  uint64_t last_mark_ = 0;       // requests before it, or before marks were expected
  uint64_t marked_length_ = 0;   // requests between the last two
  uint64_t longest_marked_ = 0;  // ... at most, lately: a short iteration says little about the next one
  uint64_t placements_ = 0;      // of the envelope
  RestWatch rest_;               // of the envelope
  uint64_t divergences_at_mark_ = 0;
  uint64_t next_overlong_ = 0;  // marks until lives that exceed the cycle are planned for again
  uint64_t job_replans_ = 0;    // number of the script whose requests the current job has; 0: none
  uint64_t divergences_at_post_ = 0;
  bool finish_requested_ = false;  // of the current job
  bool planning_ = false;          // the current job has found what to plan
  bool too_large_ = false;         // the last plan does not fit the device

  std::optional<EnvelopeLearner> learner_;  // the worker's own, after the first job of kind kEnvelope

  // Last, so that its thread ends before anything it reads is destroyed.
  PlanWorker worker_;
};

}  // namespace hotpack
