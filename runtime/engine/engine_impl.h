// The engine: the path of a request and of a release, and the order of steps at an iteration's end. Its parts have
// files of their own. Calls go downwards only:
//
//   Engine::Impl ─► WarmStart, PlanSaver, PlanScheduler ─► ScriptSwitcher, EnvelopeServer ─► PageManager
//                                                                                              └─► DynamicBlocks
//              └──► SpillPolicy, EngineStats, FastPath, DriverComparison (leaves)
//
// One lock (mutex_) guards all of it. Lock order: PageManager's changes of pages, the engine's lock, the plan worker's.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "packer/stream_edges.h"
#include "profiler/history.h"
#include "runtime/base/adaptive_mutex.h"
#include "runtime/base/node_pool.h"
#include "runtime/engine/caller_figures.h"
#include "runtime/engine/driver_comparison.h"
#include "runtime/engine/dynamic_blocks.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/engine_request.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/envelope_server.h"
#include "runtime/engine/fast_path.h"
#include "runtime/engine/owned_range.h"
#include "runtime/engine/page_manager.h"
#include "runtime/engine/plan_saver.h"
#include "runtime/engine/plan_scheduler.h"
#include "runtime/engine/script_switcher.h"
#include "runtime/engine/spill_policy.h"
#include "runtime/engine/warm_start.h"
#include "runtime/memory/guards.h"
#include "runtime/memory/release_stamps.h"
#include "runtime/persist/recording.h"
#include "runtime/persist/saved_plan.h"

namespace hotpack {

// Returns what the history notes of a request's stream. Of very many streams, all beyond a number share one.
inline uint16_t StreamHint(uint32_t stream) {
  if ((stream & kStreamOrdered) == 0) return 0;
  return static_cast<uint16_t>(std::min<uint32_t>((stream & ~kStreamOrdered) + 1, kAnyStream - 1));
}

//   observing ── a plan's iteration begins ──► settling ── an iteration later, all pages mapped ──► steady
//       ▲  │                                    ▲ ▲  │ ▲                                              │
//       │  └─ a saved plan's begins ─► trial ───┘ │  └─┼── requests match nothing ──► lost ◄──────────┘
//       └───────────── it did not fit ───┘        │    └──── they match again ─────────┘ │
//                                                 └─ its iteration is seen ── parked ◄───┘ for longer than an iteration
enum class EngineState : uint8_t {
  kObserving,  // no script is followed: best fit serves, and the history is searched
  kTrial,      // a saved plan's script is followed, and may not fit
  kSettling,   // a script is followed: its pages or its plan may still change
  kSteady,     // a script is followed: all its pages are mapped, and no better plan is due
  kLost,       // a script is followed, but the position of the job in it is unknown
  kParked,     // no script is followed; the last one waits for its iteration
  kEnvelope,   // the iterations differ, and fit in an envelope, which is followed
  kDisabled,   // nothing is served, for good
};

class Engine::Impl {
 public:
  // `service`, `steady`: the engine's own, kept outside.
  Impl(DeviceMemory* memory, const EngineOptions& options, std::atomic<Service>* service, std::atomic<bool>* steady);
  ~Impl() = default;

  inline EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after);
  inline EngineStatus Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  void SettleReuse(uint64_t tick);
  void StampReleasesSoFar(uint64_t tick);
  void AddTo(uint64_t hotpack_stats::*figure, uint64_t count) { caller_figures_.Add(figure, count); }
  bool Owns(DeviceAddress address) const { return owned_.Has(address) || OwnsOutsideArena(address); }
  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id);
  void ListPieces(DeviceAddress address, uint64_t bytes, std::vector<MappedExtent>* pieces);
  bool Reservation(DeviceAddress* base, uint64_t* bytes) const { return owned_.Get(base, bytes); }
  EngineUsage Usage();
  void List(std::vector<Extent>* blocks, std::vector<Extent>* mapped);
  void ResetPeak();
  uint64_t Trim(uint64_t wanted);
  void Mark();
  void ExpectMarks();
  void Interrupt();
  void Resume();
  // In logical time, waits until the plan worker has finished the caller's job. Requires that the lock is not held.
  void WaitLogical() {
    if (options_.logical_time && scheduler_.Busy()) WaitPlan(-1);
  }
  bool WaitPlan(int timeout_ms) { return abandoned() || scheduler_.WaitIdle(timeout_ms); }
  uint64_t CheckGuards() { return guards_ && !abandoned() ? guards_->CheckLive() : 0; }
  bool BeginComparison(uint64_t* median_ns);
  void LeaveToDriver() { comparison_.LeaveToDriver(); }
  void NotePassedThrough();
  hotpack_stats Stats();
  std::shared_ptr<const SavedPlan> PlanToSave(int64_t pack_limit_ns);
  int64_t plan_time_limit_ns() const { return options_.plan_time_limit_ns; }
  void Finish();
  void Retire();
  void GiveUp(bool context_ends = false);  // serves nothing from now on
  uint64_t NoteLaunch(const LaunchNote& note, bool only_if_named);
  void NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns);
  void NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread);
  void NoteMemory(const DriverMemory& memory, std::string_view name);
  uint64_t RecordedEvents();
  bool recording() const { return recording_.on(); }
  void AbandonAfterFork();
  bool abandoned() const { return abandoned_.load(); }
  bool immortal() const { return immortal_; }

 private:
  // engine.cc: requests and releases. Rare cases are kept out of line: inlined, they would cost the common case
  // registers.
  inline EngineStatus AllocateNow(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after);
  [[gnu::noinline]] EngineStatus AllocateTimed(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                               ReuseAfter* after);
  [[gnu::noinline]] EngineStatus AllocateNext(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                              ReuseAfter* after) noexcept;
  [[gnu::noinline]] EngineStatus AllocateElse(uint64_t bytes, uint32_t stream, DeviceAddress* address,
                                              ReuseAfter* after) noexcept;
  EngineStatus AllocateLocked(const EngineRequest& request, DeviceAddress* address) noexcept;
  [[gnu::noinline]] void AfterLast() noexcept;
  void AfterLastLocked() noexcept;
  EngineStatus EndRelease(DeviceAddress address, uint64_t units, const ReuseAfter* after) noexcept;
  [[gnu::noinline]] EngineStatus ReleaseNext(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept;
  [[gnu::noinline]] EngineStatus ReleaseSlow(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept;
  [[gnu::noinline]] void TakeStamps(DeviceAddress address, uint32_t units, ReuseAfter* after) noexcept;
  [[gnu::noinline]] void PutStamps(DeviceAddress address, uint64_t units, const ReuseAfter& after) noexcept;
  EngineStatus AllocateSlow(EngineLock& lock, EngineRequest request, DeviceAddress* address);
  EngineStatus OpenArena(EngineLock& lock);
  EngineStatus ServeByScript(EngineLock& lock, EngineRequest& request, DeviceAddress* address);
  bool MayFollowScript(EngineLock& lock, const EngineRequest& request);
  void ChangeEnvelope();
  EngineStatus ServeByEnvelope(EngineLock& lock, const EngineRequest& request, DeviceAddress* address);
  EngineStatus PlaceDynamic(EngineLock& lock, const EngineRequest& request, DeviceAddress* address);
  bool FailsAgain(const EngineRequest& request) const;
  EngineStatus Retry(EngineLock& lock, const EngineRequest& request, DeviceAddress* address);
  EngineStatus Grow(EngineLock& lock, const EngineRequest& request, bool* foreign, DeviceAddress* address);
  EngineStatus ReleaseDynamic(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  DynamicBlock BlockOf(const EngineRequest& request);
  void NoteDynamic();
  GrowthPolicy Policy() const;
  void EndIteration(EngineLock& lock);
  void UpdateState();
  EngineState StateNow() const;
  void ReportRejected(EngineLock& lock);
  void Record(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, DeviceAddress address = 0);

  // Addresses that Owns() covers and OwnedRange::Has() does not: managed memory, and the whole arena in debug mode.
  [[gnu::noinline]] bool OwnsOutsideArena(DeviceAddress address) const;
  [[gnu::noinline]] EngineStatus ReleaseOutsideArena(DeviceAddress address, uint32_t stream, const ReuseAfter* after);

  // engine_debug.cc: guard gaps and poison.
  DeviceAddress GiveGuarded(DeviceAddress outer, uint64_t bytes);
  EngineStatus ReleaseGuarded(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  GuardedRequest NameRequest(DeviceAddress outer);

  // engine_queries.cc: figures, and the plan for a later run.
  void FlushStats();
  hotpack_no_plan_reason WhyNoPlan() const;
  void MaybeSave();
  void Save(int64_t pack_limit_ns);

  DeviceMemory* const memory_;
  const EngineOptions options_;
  AdaptiveMutex mutex_;
  OwnedRange owned_;
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> attention_{false};           // the next request must be timed, or must not be served
  bool immortal_ = false;                        // must not be destroyed
  EngineState state_ = EngineState::kObserving;  // updated at the end of each slow request
  std::atomic<bool>* const steady_;              // written with it
  FastPath fast_;
  int interrupts_ = 0;
  CallerFigures caller_figures_;
  History history_;
  NodePool nodes_;
  const std::unique_ptr<Guards> guards_;  // null: no debug mode
  SpillPolicy spill_;
  EngineStats stats_;
  DynamicBlocks blocks_;
  ScriptSwitcher scripts_;
  PageManager pages_;
  EnvelopeServer envelope_;
  ReleaseStamps stamps_;  // empty while only one stream is used
  Recording recording_;
  DriverComparison comparison_;
  PlanSaver saver_;
  WarmStart warm_;
  PlanScheduler scheduler_;  // last, so that its thread ends before anything it reads is destroyed
};

}  // namespace hotpack
