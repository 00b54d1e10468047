// The engine's state. One lock (mutex_) guards all of it; growth_ serialises changes of pages, which are made without
// mutex_. Order of locks: growth_, then mutex_, then the planner's own.
//
//   observing ── a plan is ready, the iteration's end is seen ──► serving (transition) ── one iteration ──► steady
//       ▲                                                            │
//       └──────────── lost for longer than an iteration: parked ─────┘   (a parked plan is taken up again when its
//                                                                         iteration's end is seen)
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>

#include "profiler/history.h"
#include "profiler/shapes.h"
#include "runtime/arena.h"
#include "runtime/driver_comparison.h"
#include "runtime/engine.h"
#include "runtime/follower.h"
#include "runtime/guards.h"
#include "runtime/lock.h"
#include "runtime/node_pool.h"
#include "runtime/plan_saver.h"
#include "runtime/planning.h"
#include "runtime/recording.h"
#include "runtime/release_stamps.h"
#include "runtime/request_timer.h"
#include "runtime/saved_plan.h"
#include "runtime/saved_progress.h"
#include "runtime/spill_policy.h"
#include "runtime/stream_order_totals.h"
#include "runtime/variants.h"

namespace hotpack {

class Engine::Impl {
 public:
  // `service`: where the engine's is kept.
  Impl(DeviceMemory* memory, const EngineOptions& options, std::atomic<Service>* service);
  ~Impl() = default;

  inline EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after);
  inline EngineStatus Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  void SettleReuse(uint64_t tick);
  void StampReleasesSoFar(uint64_t tick);
  void NoteStreamOrder(const StreamOrderCost& cost) { stream_order_.Add(cost); }
  bool Owns(DeviceAddress address) const { return InArena(address) || OwnsBeside(address); }
  // The common case of Owns. False for everything in debug mode, so that every release takes the long way.
  bool InArena(DeviceAddress address) const {
    DeviceAddress base = owned_base_.load(std::memory_order_acquire);
    return base != 0 && address - base < owned_bytes_.load(std::memory_order_relaxed);
  }
  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id);
  bool Reservation(DeviceAddress* base, uint64_t* bytes) const;
  EngineUsage Usage();
  void List(std::vector<Extent>* blocks, std::vector<Extent>* mapped);
  void ResetPeak();
  uint64_t Trim(uint64_t wanted);
  void Mark();
  void Interrupt();
  void Resume();
  // In logical time the caller waits here for what it asked the planner for. Without the lock.
  void WaitLogical() {
    if (options_.logical_time && planner_.Busy()) WaitPlan(-1);
  }
  bool WaitPlan(int timeout_ms) { return abandoned() || planner_.WaitIdle(timeout_ms); }
  uint64_t CheckGuards() { return guards_ && !abandoned() ? guards_->CheckLive() : 0; }
  bool BeginComparison(uint64_t* median_ns);
  void LeaveToDriver() { comparison_.LeaveToDriver(); }
  void NotePassedThrough();
  hotpack_stats Stats();
  std::shared_ptr<const SavedPlan> PlanToSave(int64_t pack_limit_ns);
  int64_t plan_time_limit_ns() const { return options_.plan_time_limit_ns; }
  void Finish();
  void Retire();
  void GiveUp();
  uint64_t NoteLaunch(const LaunchNote& note, bool only_if_named);
  void NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns);
  void NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread);
  void NoteMemory(const DriverMemory& memory, std::string_view name);
  uint64_t RecordedEvents();
  bool recording() const { return is_recording_.load(std::memory_order_relaxed); }
  void AbandonAfterFork();
  bool abandoned() const { return abandoned_.load(); }
  bool immortal() const { return immortal_; }

 private:
  using Lock = std::unique_lock<hotpack::Lock>;
  static constexpr uint64_t kUnmonitored = UINT64_MAX;

  // A block that is not served by script (where it lies does not matter: dynamic zone, a retired zone, a hole).
  struct DynamicBlock {
    uint64_t bytes = 0;               // of addresses, a multiple of 512
    uint32_t units = 0;               // asked for
    uint32_t entry = kNone;           // the script's entry that it stands for; kNone: none
    uint64_t ordinal = kUnmonitored;  // its request
    uint64_t taken_up = 0;            // taken_up_ when it was placed: `entry` is that script's
    uint64_t trace_id = 0;
    bool foreign = false;             // it lies, at least in part, where the script has places
  };
  struct Want {
    uint64_t bytes;     // asked for
    uint32_t units;
    uint32_t stream;
    ReuseAfter* after;
    uint64_t ordinal = kUnmonitored;
    uint32_t entry = kNone;
    bool displaced = false;
  };

  // engine.cc: requests and releases. What is rare is kept out of line: it would cost the common case its registers.
  [[gnu::noinline]] EngineStatus AllocateTimed(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after);
  [[gnu::noinline]] EngineStatus AllocateNext(Want want, DeviceAddress* address) noexcept;
  EngineStatus AllocateLocked(const Want& want, DeviceAddress* address) noexcept;
  [[gnu::noinline]] void AfterLast() noexcept;
  void AfterLastLocked() noexcept;
  [[gnu::noinline]] EngineStatus ReleaseSlow(DeviceAddress address, uint32_t stream, const ReuseAfter* after) noexcept;
  [[gnu::noinline]] void TakeStamps(DeviceAddress address, uint32_t units, ReuseAfter* after) noexcept;
  [[gnu::noinline]] void PutStamps(DeviceAddress address, uint64_t units, const ReuseAfter& after) noexcept;
  EngineStatus AllocateSlow(Lock& lock, Want want, DeviceAddress* address);
  EngineStatus ServeByScript(Lock& lock, Want& want, DeviceAddress* address);
  EngineStatus PlaceDynamic(Lock& lock, const Want& want, DeviceAddress* address);
  EngineStatus ReleaseDynamic(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  void CountLive(uint32_t units) {
    live_units_ += units;
    if (live_units_ > live_peak_units_) live_peak_units_ = live_units_;
  }
  void Record(EventKind kind, uint64_t id, uint64_t bytes, uint32_t stream, DeviceAddress address = 0);
  void UpdateFast();

  // Addresses that Owns() covers and InArena() does not: managed memory, and in debug mode the arena.
  [[gnu::noinline]] bool OwnsBeside(DeviceAddress address) const;
  [[gnu::noinline]] EngineStatus ReleaseBeside(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  inline EngineStatus AllocateNow(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after);

  // engine_detect.cc: jobs that are not hot
  void PlanAndNote(const PlanJob& job, const std::atomic<bool>* cancel);
  uint64_t DetectionInterval(uint64_t count) const;
  void DetectSoon(uint64_t count);
  void AfterDynamic();

  // engine_debug.cc: guard gaps and poison
  DeviceAddress GiveGuarded(DeviceAddress outer, uint64_t bytes);
  EngineStatus ReleaseGuarded(DeviceAddress address, uint32_t stream, const ReuseAfter* after);
  RequestName NameRequest(DeviceAddress outer);

  // engine_pages.cc: everything that changes pages
  class PageScope;
  EngineStatus OpenArena(Lock& lock);
  bool Spill(Lock& lock, uint64_t bytes, DeviceAddress* address);
  EngineStatus Grow(Lock& lock, const Want& want, bool* foreign, DeviceAddress* address);
  uint64_t LiveAndPart(uint64_t divisor) const;
  uint64_t OwnPlaceCosts(const Want& want) const;
  bool MapOwnPlace(PageScope& scope, const Want& want, uint64_t create_up_to, DeviceAddress* address);
  bool MayWait() const;
  uint64_t CreateForEntryUpTo() const;
  std::vector<Follower::Range> WithoutPages() const;
  bool TakeHole(uint32_t units, uint32_t age, DeviceAddress* address);
  bool PlaceInZone(const Want& want, bool anywhere, DeviceAddress* address);
  EngineStatus MapEntry(Lock& lock, uint32_t entry);
  void MakeRoom(Lock& lock);
  bool PlaceInHole(const Want& want, DeviceAddress* address);
  void MapWhatIsFree(PageScope& scope);
  void Housekeep(Lock& lock);
  uint64_t CreateUpTo() const;
  void MarkMappedEntries();
  uint64_t Chunks(const std::vector<AddressRange>& ranges) const;
  std::vector<AddressRange> EmptyInZone(uint64_t chunks) const;
  void TakeFromZone(const std::vector<AddressRange>& empty, PageWork* work);
  void NoteReserved();
  AddressRange EntryRange(uint32_t entry) const;
  bool InZone(const AddressRange& range) const { return range.begin - zone_.begin < zone_.bytes; }
  bool InReservation(DeviceAddress address) const { return base_ != 0 && address - base_ < arena_.bytes(); }
  bool HasPages(const AddressRange& range) const;
  uint32_t OffsetOf(DeviceAddress address) const { return static_cast<uint32_t>((address - base_) / kUnitBytes); }
  DeviceAddress AddressOf(uint32_t offset) const { return base_ + offset * kUnitBytes; }

  // engine_trim.cc: giving back
  uint64_t GiveBack(Lock& lock, uint64_t wanted);
  void MaybeTrimIdle(Lock& lock);

  // engine_plan.cc: plans and iterations
  void MaybeDetect();
  bool Post(PlanJob job, uint64_t refines = 0);
  void Plan(const PlanJob& job, const std::atomic<bool>* cancel);
  void PlanIteration(const PlanJob& job, Profile profile, const std::atomic<bool>* cancel);
  std::vector<AddressRange> SpareMemory(uint64_t period, uint64_t* most_units);
  std::vector<std::shared_ptr<const Script>> ScriptsBeside(uint64_t number);
  bool PlanFits(const Script& script);
  size_t PlanEach(const HistoryTail& tail, const std::vector<Shape>& shapes, const std::atomic<bool>* cancel);
  uint64_t PartOfHistory() const;
  void LookForShapes();
  void NoteBoundary();
  void PlanShapes(const PlanJob& job, bool periodic, const std::atomic<bool>* cancel);
  void NoteLife(uint32_t age);
  bool Outlived() const;
  void EndIteration(Lock& lock);
  bool SomethingOverstays() const;
  std::vector<ZonePlace> FindWalls() const;
  void BeginSteady();

  // engine_switch.cc: which script is followed
  bool TryActivate(uint32_t units);
  bool TailMatches(const Script& script, uint32_t units) const;
  uint32_t BestPhase(const Script& script) const;
  bool HolesHavePages(const Script& script) const;
  Variant* AddVariant(std::shared_ptr<const Script> script, uint64_t refines);
  void Activate(uint32_t position = 0);
  void CountIterations(const Profile& profile);
  bool FitsZone(const Script& script) const;
  bool TakeUp(Variant* variant, uint32_t position);
  bool TakeZone(const Script& script);
  std::vector<Follower::Range> LeaveInPlace(const Script& next);
  bool HoldsHoles(const Script& script) const;
  void FreeHoles(const std::vector<AddressRange>& live);
  void TakeHoles();
  void FreeOutside(const AddressRange& range);
  DynamicBlock ToDynamic(uint32_t entry) const;
  void RetireScript();
  void WaitFor(const std::shared_ptr<const Script>& script);
  void MaybePark();
  void MaybeSwitch(uint64_t newest);
  void FollowPredicted();
  bool SwitchTo(Variant* next, uint32_t position);

  // engine_saved.cc: the plan of an earlier run, and what is saved of this one's
  void BeginSaved();
  bool FollowSaved(uint32_t units);
  uint32_t MatchOpening(uint32_t units);
  bool FollowOpening(uint32_t units, bool* by_script);
  bool OpeningHolds() const;
  uint64_t ExpectedPeak() const;
  bool RecogniseSaved(uint32_t units);
  void TakeUpSaved(const std::shared_ptr<const Script>& script, uint32_t position);
  bool LivesAgree(const Script& script, uint32_t last, uint32_t length) const;
  uint32_t LongestAgreement(const Script& script, uint32_t units, uint32_t* last) const;
  void WatchTrial();
  void EndTrial();
  bool LeaveSaved();
  void GiveUpTrial();
  void KnowOtherScripts();
  void DropSaved();
  void TellNotUsed(Lock& lock);
  void MaybeSave();
  std::vector<std::shared_ptr<const Script>> ScriptsByUse() const;
  void Save(int64_t pack_limit_ns);

  // engine_notes.cc
  void EndRecording();

  // engine_stats.cc
  // Adds the host heap allocations made while it lives. Those of the request that ends in the first steady iteration's
  // beginning belong to what was before.
  class HeapScope;
  void FlushStats();
  uint64_t Requests() const { return planned_ + others_; }
  uint64_t Divergences() const { return divergences_ + (follower_.active() ? follower_.divergences() : 0); }

  DeviceMemory* memory_;
  EngineOptions options_;
  std::mutex growth_;
  hotpack::Lock mutex_;
  std::atomic<DeviceAddress> owned_base_{0};
  std::atomic<uint64_t> owned_bytes_{0};
  std::atomic<DeviceAddress> guarded_base_{0};  // of the arena in debug mode, instead of owned_base_
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> is_recording_{false};  // recording_.on(), for whoever has no lock
  StreamOrderTotals stream_order_;
  std::atomic<bool> attention_{false};  // the next request is to be timed, or none is to be served

  // The common case: a script is followed, nothing else is going on.
  bool fast_ = false;
  bool fast_release_ = false;
  bool immortal_ = false;   // must not be destroyed
  bool broken_ = false;     // this device cannot be served
  bool page_work_ = false;  // pages are being changed without the lock: the zone must stay
  int mapping_entries_ = 0; // claimed entries whose pages are still to be mapped: the script must stay
  int interrupts_ = 0;
  DeviceAddress base_ = 0;  // of the arena
  AddressRange zone_;       // of the script being followed
  std::vector<AddressRange> holes_;  // that it uses, ascending
  Follower follower_;
  History history_;
  Arena arena_;

  const std::unique_ptr<Guards> guards_;  // null: no debug mode
  SpillPolicy spill_;
  uint64_t device_gave_ = 0;  // bytes the arena held when the device refused more; 0: it never did

  // planning
  std::shared_ptr<const Script> current_;  // the one followed
  std::shared_ptr<const Script> pending_;  // to be taken up at the end of its iteration
  uint64_t divergences_at_post_ = 0;
  bool hurried_ = false;                   // the planner's job was told to end
  uint64_t pending_refines_ = 0;           // number of the script whose requests it repeats; 0: none
  uint64_t job_refines_ = 0;               // the same of the job under way
  uint64_t pending_since_ = 0;             // requests
  Variants variants_;                      // the scripts known
  uint64_t script_number_ = 0;             // of the variant followed, or followed last
  uint64_t taken_up_ = 0;                  // times a script was
  uint64_t longest_period_ = 0;            // of the scripts followed so far
  uint64_t zone_used_ = 0;                 // bytes of the zone that scripts have used: the highest of them
  uint64_t ended_at_ = 0;                  // requests when an iteration last ended
  uint32_t phase_ = 0;                     // the entry that the iteration under way began with
  uint64_t boundary_ = 0;                  // requests before the iteration under way
  uint64_t boundary_before_ = kUnmonitored;  // ... before the one that was taken to have ended there; or none
  uint64_t switches_ = 0;                  // from one script to another that was known
  uint64_t switch_work_ = 0;               // entries of scripts taken up by these
  uint64_t next_detection_ = 64;           // requests
  uint64_t divergences_at_detection_ = 0;
  uint64_t fruitless_ = 0;                 // searches in a row that came to nothing
  uint64_t detections_ = 0, planning_ns_ = 0;
  static constexpr uint64_t kLeastNews = 64;  // requests that are worth a look at the history
  uint64_t next_shapes_ = 0;               // requests before the next look for other shapes
  uint64_t looked_at_ = 0;                 // ... before the last one
  uint64_t divergences_at_look_ = 0;
  uint64_t shapes_interval_ = kLeastNews;  // requests between looks for other shapes
  bool shapes_found_ = false;              // by the last look
  uint64_t outlived_ = 0;                  // blocks that lived longer than the script's cycle
  uint64_t outlived_at_detection_ = 0;
  uint64_t next_outlived_ = 0;             // marks until the iteration is looked at again for their sake
  uint64_t displaced_at_end_ = 0;          // of the last iteration
  uint64_t marks_ = 0;
  uint64_t last_mark_ = 0;                 // requests before it
  uint64_t marked_length_ = 0;             // requests between the last two
  uint64_t divergences_at_mark_ = 0;
  uint64_t lost_since_ = 0;

  // iterations
  uint64_t iterations_ = 0;
  uint64_t iterations_from_ = 0;  // requests when iterations_ was last brought up to date
  bool steady_ = false;           // steady_iteration_ has begun
  bool settled_ = false;          // the script's pages are all mapped, others given back
  bool fresh_zone_ = false;       // the next plan is not to use the zone that is there
  uint64_t divergences_at_end_ = 0;  // of the last iteration
  uint64_t diverged_until_ = 0;      // requests before the end of the last iteration that diverged
  uint64_t activated_at_ = 0;     // requests before the script was taken up
  uint64_t zone_searches_ = 0;    // of PlaceInZone since then
  bool room_due_ = false;         // a plan found no addresses
  int room_tries_ = 0;
  bool bulk_map_due_ = false;     // the script has just been taken up
  bool grew_ = false;             // pages changed since the last trim
  bool grew_now_ = false;         // ... in this iteration
  uint64_t idle_requests_ = 0;    // since the script was parked or the monitoring interrupted

  // the plan of an earlier run
  std::shared_ptr<const SavedPlan> saved_;  // null: none, or it is done with
  SavedGuide guide_;
  bool saved_in_force_ = false;    // its script has been taken up, and not been dropped
  bool on_trial_ = false;          // ... a short while ago
  SavedTrial trial_;
  uint64_t eager_until_ = 0;       // requests; its places get their pages at once
  uint64_t expected_peak_ = 0;     // bytes: what was live at most in the earlier run, if this one begins as it did
  bool tell_not_used_ = false;
  uint64_t saved_anchor_ = 0;      // a request that its script's entry 0 stands for
  PlanSaver saver_;

  // figures
  uint64_t live_units_ = 0, live_peak_units_ = 0;
  uint64_t planned_ = 0, others_ = 0,  // requests served by script, and not
            displaced_ = 0, passed_through_ = 0;
  uint64_t divergences_ = 0;  // of scripts no longer followed
  uint64_t plans_ = 0, reoptimizations_ = 0;
  uint64_t reserved_peak_ = 0, reserved_steady_ = 0;
  uint64_t held_peak_ = 0;  // since ResetPeak
  int64_t steady_iteration_ = -1;
  uint64_t requests_before_ = 0, planned_before_ = 0, calls_before_ = 0, heap_before_ = 0, passed_before_ = 0;
  uint64_t heap_allocations_ = 0;
  bool steady_began_now_ = false;
  uint64_t next_trace_id_ = 0;
  uint32_t carried_ = 0;
  uint64_t retained_ = 0;
  uint64_t plan_height_ = 0, plan_lower_bound_ = 0, period_ = 0;
  RequestTimer timer_;          // of requests on script
  DriverComparison comparison_;
  hotpack_stats own_stats_{};
  NodePool nodes_;
  Recording recording_;
  std::pmr::map<DeviceAddress, DynamicBlock> dynamic_{&nodes_};
  ReleaseStamps stamps_{&nodes_};  // empty as long as one stream is used

  // Last, so that its thread ends before what it reads is gone.
  Planner planner_;
};

}  // namespace hotpack
