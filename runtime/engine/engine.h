// The allocator of one context: watches requests, finds the hot iteration, plans it, serves it. Interface of the room;
// docs/design.md has the states.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "profiler/notes.h"
#include "runtime/include/hotpack.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/guards.h"
#include "runtime/memory/reuse.h"
#include "runtime/script/load_columns.h"

namespace hotpack {

class PlanSink;     // runtime/persist/saved_plan.h
class TraceWriter;  // profiler/trace_writer.h
struct LaunchNote;  // runtime/persist/recording.h
struct SavedPlan;   // runtime/persist/saved_plan.h

// The limit for one solve where plans come in logical time: the program waits for each.
inline constexpr int64_t kLogicalPlanLimitNs = 50'000'000;

enum class EngineStatus : uint8_t {
  kOk,
  kOutOfMemory,
  kInvalidValue,  // size 0; or an address in the arena that is no live block (a double free)
  kNotOurs,       // the address is outside the arena: the driver's business
  kPassThrough,   // this device cannot be served (no VMM, driver going down): ask the driver
};

// Added to a stream's small ordinal: the request is ordered on that stream (cuMemAllocAsync, cuMemFreeAsync). Recorded.
inline constexpr uint32_t kStreamOrdered = uint32_t{1} << 31;

// What was done so that a request's memory comes after the work of other streams that used it.
struct StreamOrderCost {
  uint64_t waits = 0;       // streams told to wait for an event
  uint64_t events = 0;      // events recorded
  uint64_t host_waits = 0;  // times the host waited for the device
  uint64_t ns = 0;          // nanoseconds of the host's time, all of it
};

struct EngineOptions {
  hotpack_stats* stats = nullptr;  // where the figures are kept (may be shared memory); null: inside the engine
  LoadColumns* load =
      nullptr;  // ... and the load of the plan in force, for a curve; zeros: there is none. null: nowhere
  TraceWriter* trace = nullptr;                // every event is appended here; null: none. Not owned
  bool note_launches = false;                  // NoteLaunch will be called: the recording keeps an index of live blocks
  int64_t plan_time_limit_ns = 1'000'000'000;  // for one solve
  // Plans come in logical time: a request, release or mark that asks for a plan returns when the plan is there, and the
  // time limit counts work (packer/stop.h: WorkClock). The same requests of one thread then have the same figures on
  // every machine.
  bool logical_time = false;
  uint64_t window = 1 << 20;              // requests remembered for iteration detection (bounds memory: 8 B each)
  uint64_t never_hot_requests = 1 << 20;  // by best fit without a plan, after which the driver's pool is compared
  GuardOptions guard;                     // debug mode
  uint64_t managed_limit = 0;  // bytes of managed memory that may back blocks while there is no plan; 0: none
  void (*log)(const char* line) = nullptr;  // a line for the user, without its end; called without a lock; null: none
  std::shared_ptr<const SavedPlan> plan;  // of an earlier run, to begin with; null: none. Forgotten if it does not fit
  PlanSink* sink = nullptr;               // takes plans that are worth keeping; null: nobody. Not owned
};

// Who has what of an arena's memory, in bytes, at one moment.
struct EngineUsage {
  uint64_t held = 0;            // physical memory taken from the device
  uint64_t held_peak = 0;       // the most of it since the beginning or ResetPeak
  uint64_t live = 0;            // in live blocks, each rounded up to 512; no more than `held`
  uint64_t outside_plan = 0;    // ... of these, in blocks that are not served by script
  uint64_t plan = 0;            // height of the last plan; 0: there has been none
  bool followed = false;        // it is being followed
  bool may_shrink = false;      // what is held and not live may be given back (not so in a plain arena)
  bool lost = false;            // ... but the job is somewhere else
  uint64_t divergences = 0;     // times the job left its plan
  uint64_t passed_through = 0;  // requests left to the driver

  uint64_t Idle() const { return held - live; }
};

// Thread-safe: any function from any thread. Never throws, exits or prints. No lock is held across a driver call. If
// the host has no memory for what a function needs, the engine gives up for good: requests are left to the driver, live
// blocks stay where they are and are not handed out again.
class Engine {
 public:
  // `memory` must outlive the engine. Makes no driver call: the arena is reserved at the first request. Throws
  // bad_alloc, alone of all functions here.
  Engine(DeviceMemory* memory, const EngineOptions& options);
  ~Engine();  // stops planning; makes no driver call (the driver may be gone); device memory goes with the context
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `bytes` of device memory, aligned to 512, for work on the stream whose small ordinal is `stream`. On script: no
  // driver call, no heap allocation, O(1). Otherwise may wait for the device and for other threads' growth.
  // *after, if given: what work on the block has to come after, which the caller sees to; unchanged if nothing.
  EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after = nullptr);

  // Gives back the block that starts at `address`. The memory may be handed out again at once. `after`: the point that
  // comes after the block's last use, for whoever gets the memory next; null: all work that is submitted from now on
  // does. On script: O(successors), 1.3 on average; with `after`, O(log released ranges) more.
  EngineStatus Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after = nullptr);

  // All releases up to `tick` come before any work that is submitted from now on.
  void SettleReuse(uint64_t tick);
  // The releases so far, which said nothing of what comes after them, have ticks up to `tick`.
  void StampReleasesSoFar(uint64_t tick);

  // Adds to the figures: what order between streams has cost. Lock-free.
  void NoteStreamOrder(const StreamOrderCost& cost);

  // True if `address` lies in the arena's reservation (any part of it). Lock-free.
  bool Owns(DeviceAddress address) const;

  // The live block that contains `address`: its start, and the bytes asked for, rounded up to 512. False if there is
  // none. `id`, if not null: a number of its own, which no other block of this engine ever has. O(log blocks) for a
  // block's start, O(blocks of the script) for an address inside.
  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id = nullptr);

  // Every live block, and every run of addresses that has memory, ascending. One moment's picture; O(chunks + blocks),
  // with the lock held. Both stay empty before the first request, and in a forked child.
  struct Extent {
    DeviceAddress address;
    uint64_t bytes;
    bool planned;  // of a block: it is served by script
  };
  void List(std::vector<Extent>* blocks, std::vector<Extent>* mapped);

  // EngineUsage::held_peak is what is held now.
  void ResetPeak();

  // The arena's addresses. False: there is no arena yet. Lock-free.
  bool Reservation(DeviceAddress* base, uint64_t* bytes) const;

  // O(blocks outside the script). All zero before the first request, and in a forked child.
  EngineUsage Usage();

  // Gives memory that no block lives in back to the device, at least `wanted` bytes if there is as much: pages that are
  // not in use, then those of free chunks, then of the script's zone; what the script needs is mapped again when it is
  // asked for. Waits for the device; while a stream is capturing, when that is not possible, only pages that are mapped
  // nowhere are given back. Returns the bytes given back. O(chunks + blocks).
  uint64_t Trim(uint64_t wanted = UINT64_MAX);

  void Mark();       // an iteration begins here
  void Interrupt();  // hotpack_interrupt
  void Resume();
  bool WaitPlan(int timeout_ms);  // true when no planning is under way; negative: no limit

  // Debug mode: looks at the gaps of all live blocks now. Bad writes found so far; 0 without the mode. Waits for the
  // device.
  uint64_t CheckGuards();

  // Notes of collectors, into the recording behind the events so far (runtime/persist/recording.h). While nothing is
  // recorded each is a load and a branch, and NoteLaunch answers kNoLaunch. If the host has no memory for one it is
  // lost.
  static constexpr uint64_t kNoLaunch = UINT64_MAX;
  bool IsRecording() const;                                         // lock-free
  uint64_t NoteLaunch(const LaunchNote& note, bool only_if_named);  // its ordinal in the recording
  void NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns);
  void NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread);
  void NoteMemory(const DriverMemory& memory, std::string_view name);
  uint64_t RecordedEvents();

  // What becomes of requests. kCompare: the job has never been hot for millions of them, and the caller is asked to
  // find out whether the driver's own pool would be quicker. kLeave: it would be; requests need not come here any more.
  enum class Service : uint8_t { kServe, kCompare, kLeave };
  Service service() const { return service_.load(std::memory_order_relaxed); }  // lock-free
  // True for one caller of kCompare: *median_ns is what a request served by best fit takes here. Lock-free if false.
  bool BeginComparison(uint64_t* median_ns);
  void LeaveToDriver();  // service() is kLeave from now on. What is live stays until it is released

  void NotePassedThrough();  // an allocation request was left to the driver while this engine's context was current
  hotpack_stats Stats();     // a consistent copy

  // What a later run may begin with. Null: there is no plan yet. Not for the fast path: O(requests so far), and may
  // pack again, for at most the time limit of a solve.
  std::shared_ptr<const SavedPlan> PlanToSave();

  // The process or the context ends: the figures are brought up to date, the trace is closed, a plan that is not saved
  // is given to the sink. No driver call.
  void Finish();

  // The context ends: waits for changes of pages in other threads, ends the planning thread, brings the figures up to
  // date and closes the trace. From here on no call reaches `memory`: requests answer kPassThrough, releases are
  // accepted and do nothing. Makes no driver call. Not in a forked child.
  void Retire();

  // In a forked child: the planning thread is gone and the context is not usable. No later call takes a lock: requests
  // answer kPassThrough, releases are accepted and do nothing, the rest does nothing. Async-signal-safe.
  void AbandonAfterFork();

 private:
  std::atomic<Service> service_{Service::kServe};
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hotpack
