// The engine's figures. docs/statistics.md says what each means.
#pragma once

#include <cstdint>

#include "profiler/profile.h"
#include "runtime/base/heap_count.h"
#include "runtime/base/request_timer.h"
#include "runtime/include/hotpack.h"

namespace hotpack {

// Counts requests, iterations and plans. Guarded by the engine's lock. O(1).
class EngineStats {
 public:
  // `shared`: where the figures are read, possibly by another process; null: stored here. It must outlive this object.
  explicit EngineStats(hotpack_stats* shared) : shared_(shared != nullptr ? shared : &own_) {}

  // --- requests -----------------------------------------------------------------------------------------------------
  uint64_t NotePlanned() { return ++planned_requests_; }  // served by script; returns the new count
  void NoteDynamic() { ++dynamic_requests_; }             // served by best fit
  void NoteDisplaced() { ++displaced_; }                  // ... although the script has a place for it
  void NotePassedThrough() { ++passed_through_; }
  uint64_t planned() const { return planned_requests_; }
  uint64_t dynamic() const { return dynamic_requests_; }
  uint64_t displaced() const { return displaced_; }
  uint64_t passed_through() const { return passed_through_; }
  void AddTime(int64_t nanoseconds) { timer_.Add(nanoseconds); }  // of a request served by script

  // --- plans --------------------------------------------------------------------------------------------------------
  void NotePlan() { ++plans_; }
  void NoteReoptimization() { ++reoptimizations_; }
  void TakePlanBack() { --plans_; }
  uint64_t plans() const { return plans_; }

  // --- iterations; `count`: requests in the history -----------------------------------------------------------------
  void NoteMark() { ++marks_; }
  uint64_t marks() const { return marks_; }  // so far, by hotpack_step or its equivalents
  uint64_t iterations() const { return iterations_; }
  void SetIterations(uint64_t iterations, uint64_t count);
  void AddIterations(uint64_t iterations, uint64_t count) { SetIterations(iterations_ + iterations, count); }
  // Adds the iterations of `period` requests since the last update.
  void AddIterationsSince(uint64_t period, uint64_t count) { AddIterations((count - counted_to_) / period, count); }
  // Recounts all iterations so far, in units of the profile's period.
  void RecountIterations(const Profile& profile, uint64_t count);
  void SkipTo(uint64_t count) { counted_to_ = count; }        // earlier requests are not counted
  void NoteRetained(uint64_t blocks) { retained_ = blocks; }  // live at an iteration's end, and not the script's

  // --- the steady state: from its first iteration on ----------------------------------------------------------------
  void BeginSteady(uint64_t driver_calls);
  void EndSteady() { steady_iteration_ = -1; }
  bool steady() const { return steady_iteration_ >= 0; }

  // Counts the host heap allocations made during its lifetime. Allocations of the request in which the steady state
  // begins count as before the steady state.
  class HeapScope {
   public:
    explicit HeapScope(EngineStats* stats) : stats_(stats), before_(HeapAllocationsOnThisThread()) {}
    ~HeapScope() { stats_->EndHeapScope(HeapAllocationsOnThisThread() - before_); }  // the engine's lock is held
    HeapScope(const HeapScope&) = delete;
    HeapScope& operator=(const HeapScope&) = delete;

   private:
    EngineStats* stats_;
    uint64_t before_;
  };

  // Writes this class's figures. `driver_calls`: the arena's, so far.
  void AddTo(hotpack_stats* stats, uint64_t driver_calls);
  void Publish(const hotpack_stats& stats) { *shared_ = stats; }
  const hotpack_stats& published() const { return *shared_; }

 private:
  uint64_t Requests() const { return planned_requests_ + dynamic_requests_; }
  void EndHeapScope(uint64_t allocations);

  hotpack_stats own_{};
  hotpack_stats* const shared_;
  uint64_t planned_requests_ = 0, dynamic_requests_ = 0, displaced_ = 0, passed_through_ = 0;
  uint64_t plans_ = 0, reoptimizations_ = 0;
  uint64_t marks_ = 0;
  uint64_t iterations_ = 0;
  uint64_t counted_to_ = 0;  // requests when iterations_ was last updated
  uint64_t retained_ = 0;
  uint64_t heap_allocations_ = 0;
  int64_t steady_iteration_ = -1;
  bool steady_began_now_ = false;  // in the current request
  struct Before {                  // counts at the beginning of the steady state
    uint64_t requests = 0, planned = 0, driver_calls = 0, heap_allocations = 0, passed_through = 0;
  } before_;
  RequestTimer timer_;
};

}  // namespace hotpack
