// The allocator of one context: watches requests, finds the hot iteration, plans it, and serves it. This is the
// interface of runtime/engine; docs/design.md has the states.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "packer/stream_edge_rule.h"
#include "profiler/notes.h"
#include "runtime/base/current_figures.h"
#include "runtime/include/hotpack.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/extent_table.h"
#include "runtime/memory/guards.h"
#include "runtime/memory/reuse.h"
#include "runtime/script/load_columns.h"

namespace hotpack {

class PlanSink;     // runtime/persist/saved_plan.h
class TraceWriter;  // profiler/trace_writer.h
struct LaunchNote;  // runtime/persist/recording.h
struct SavedPlan;   // runtime/persist/saved_plan.h

// The limit for one solve if plans come in logical time: the program waits for each.
inline constexpr int64_t kLogicalPlanLimitNs = 50'000'000;

enum class EngineStatus : uint8_t {
  kOk,
  kOutOfMemory,
  kInvalidValue,  // size 0, or an address in the arena that is no live block (a double free)
  kNotOurs,       // the address is outside the arena: a matter for the driver
  kPassThrough,   // this device cannot be served (no VMM, driver shutting down): ask the driver
};

// Flag added to a stream's small ordinal: the request is ordered on that stream (cuMemAllocAsync, cuMemFreeAsync).
// Recorded.
inline constexpr uint32_t kStreamOrdered = uint32_t{1} << 31;

struct EngineOptions {
  hotpack_stats* stats = nullptr;  // where the figures are stored (may be shared memory); null: inside the engine
  // Where the load of the plan in force is stored, for a curve (zeros: no plan); null: nowhere.
  LoadColumns* load = nullptr;
  CurrentFigures* current = nullptr;           // stored with `stats`; null: nowhere
  TraceWriter* trace = nullptr;                // every event is appended here; null: none. Not owned
  bool note_launches = false;                  // NoteLaunch will be called: the recording needs an index of live blocks
  int64_t plan_time_limit_ns = 1'000'000'000;  // for one solve
  // Plans come in logical time: a request, release or mark that asks for a plan returns once the plan is ready. The
  // time limit counts work (packer/stop.h: WorkClock). So the same requests of one thread give the same figures on
  // every machine.
  bool logical_time = false;
  StreamEdgeRule stream_edges;  // plans that make few waits between streams (packer/stream_edges.h)
  uint64_t window = 1 << 20;    // requests remembered for iteration detection (bounds memory: 8 B each)
  // Requests served by best fit without a plan, after which the driver's pool is compared.
  uint64_t never_hot_requests = 1 << 20;
  // Blocks of at least 1 MiB begin at multiples of this many bytes: a power of two from 512 to the size of a chunk. Not
  // in debug mode, nor in managed memory.
  uint64_t large_alignment = 512;
  GuardOptions guard;  // debug mode
  // How long, in microseconds, a request waits for work on idle pages that could move; UINT64_MAX: no limit.
  uint64_t page_wait_us = UINT64_MAX;
  // Jobs whose iterations differ are served by an envelope, if they mark their iterations. Not in a plain arena, where
  // its addresses would be taken from best fit.
  bool envelopes = true;
  uint64_t managed_limit = 0;  // bytes of managed memory that may back blocks while there is no plan; 0: none
  // For the user, one line without its end; called without a lock; null: no lines.
  void (*log)(const char* line) = nullptr;
  std::shared_ptr<const SavedPlan> plan;  // of an earlier run, to begin with; null: none. Dropped if it does not fit,
                                          // or its offsets are not aligned
  PlanSink* sink = nullptr;               // takes plans that are worth saving; null: none. Not owned
};

// How an arena's memory is used, in bytes, at one moment.
struct EngineUsage {
  uint64_t held = 0;          // physical memory taken from the device
  uint64_t held_peak = 0;     // the maximum of `held` since the beginning or ResetPeak
  uint64_t live = 0;          // in live blocks, each rounded up to 512; no more than `held`
  uint64_t outside_plan = 0;  // ... of these, in blocks that are not served by script
  uint64_t plan = 0;          // height of the last plan; 0: there was none
  // Of what is neither live nor given back: whole handles without a live block, which any request can have. In a plain
  // arena, which cannot join pieces: all of it.
  uint64_t returnable = 0;
  bool followed = false;        // the last plan is being followed
  bool may_shrink = false;      // memory held but not live may be given back (not in a plain arena)
  bool lost = false;            // the plan is followed, but the position of the job in it is unknown
  uint64_t divergences = 0;     // times the job left its plan
  uint64_t passed_through = 0;  // requests left to the driver

  uint64_t Idle() const { return held - live; }
};

// Thread-safe: any function may be called from any thread. Never throws, exits or prints, except that the constructor
// may throw bad_alloc. Holds no lock across a driver call. If the host has no memory for what a function needs, the
// engine stops serving for good: requests are left to the driver, and live blocks stay where they are and are not
// handed out again.
class Engine {
 public:
  // `memory` must outlive the engine. Makes no driver call: the first request reserves the arena. Throws bad_alloc; no
  // other function here does.
  Engine(DeviceMemory* memory, const EngineOptions& options);
  ~Engine();  // stops planning. Makes no driver call (the driver may be gone); device memory goes with the context
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Allocates `bytes` of device memory, aligned to 512, for work on the stream whose small ordinal is `stream`. *after,
  // if not null: the points that work on the block must come after. The caller ensures that order; unchanged if there
  // are none. On script: no driver call, no heap allocation, O(1). Otherwise it may wait for the device and for growth
  // in other threads.
  EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address, ReuseAfter* after = nullptr);

  // Gives back the block that starts at `address`. The memory may be handed out again at once. `after`: a point after
  // the block's last use, for the next user of the memory; null: all work submitted from now on comes after it. On
  // script: O(successors), 1.3 on average; with `after`, O(log released ranges) more.
  EngineStatus Release(DeviceAddress address, uint32_t stream, const ReuseAfter* after = nullptr);

  // Declares that all releases up to `tick` come before any work that is submitted from now on.
  void SettleReuse(uint64_t tick);
  // Gives ticks up to `tick` to the releases so far, which named no point after them.
  void StampReleasesSoFar(uint64_t tick);

  // Adds to a figure whose events the caller sees and the engine does not: AddTo(&hotpack_stats::cross_stream, 1).
  // Lock-free.
  void AddTo(uint64_t hotpack_stats::*figure, uint64_t count);

  // Returns whether `address` lies anywhere in the arena's reservation. Lock-free.
  bool Owns(DeviceAddress address) const;

  // Finds the live block that contains `address`: its start, and the bytes asked for, rounded up to 512. Returns false
  // if there is none. `id`, if not null: a number that no other block of this engine ever has. O(log blocks) for a
  // block's start; O(blocks of the script) for an address inside.
  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id = nullptr);

  // Lists the physical memory below [address, address + bytes), ascending, as long as it has pages: while a live block
  // covers the range, its pages stay. Empty if the range is not of the reservation, or the arena is plain. O(pieces).
  void ListPieces(DeviceAddress address, uint64_t bytes, std::vector<MappedExtent>* pieces);

  // Lists every live block, and every run of addresses that has memory, ascending: a snapshot of one moment. O(chunks +
  // blocks), with the lock held. Both lists stay empty before the first request, and in a forked child.
  struct Extent {
    DeviceAddress address;
    uint64_t bytes;
    bool planned;  // of a block: it is served by script
  };
  void List(std::vector<Extent>* blocks, std::vector<Extent>* mapped);

  // Sets EngineUsage::held_peak to the bytes held now.
  void ResetPeak();

  // Returns the arena's addresses. Returns false if there is no arena yet. Lock-free.
  bool Reservation(DeviceAddress* base, uint64_t* bytes) const;

  // Returns the current usage. All zero before the first request, and in a forked child. O(blocks outside the script).
  EngineUsage Usage();

  // Gives memory without live blocks back to the device: at least `wanted` bytes if that many are free. Returns the
  // bytes given back. Takes pages that are not in use first, then those of free chunks, then those of the script's
  // zone. Pages that the script needs are mapped again on demand. Waits for the device. While a stream is capturing,
  // that is not possible: then only unmapped pages are given back. O(chunks + blocks).
  uint64_t Trim(uint64_t wanted = UINT64_MAX);

  void Mark();         // an iteration begins here
  void ExpectMarks();  // marks will come, the first at the first iteration's end
  void Interrupt();    // hotpack_interrupt
  void Resume();
  bool WaitPlan(int timeout_ms);  // true when no planning is under way; negative: no limit

  // Debug mode: checks the gaps of all live blocks now. Returns the bad writes found so far; 0 without the mode. Waits
  // for the device.
  uint64_t CheckGuards();

  // Notes of collectors, written into the recording after the events so far (runtime/persist/recording.h). While
  // nothing is recorded each costs a load and a branch, and NoteLaunch returns kNoLaunch. A note is lost if the host
  // has no memory for it.
  static constexpr uint64_t kNoLaunch = UINT64_MAX;
  bool IsRecording() const;                                         // lock-free
  uint64_t NoteLaunch(const LaunchNote& note, bool only_if_named);  // returns its ordinal in the recording
  void NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns);
  void NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread);
  void NoteMemory(const DriverMemory& memory, std::string_view name);
  uint64_t RecordedEvents();

  // How requests are served.
  //   kServe    by this engine
  //   kCompare  by this engine. The job has not been hot for millions of requests: the caller should find out whether
  //             the driver's own pool is faster
  //   kLeave    the driver's pool is faster: requests need not come here any more
  enum class Service : uint8_t { kServe, kCompare, kLeave };
  Service service() const { return service_.load(std::memory_order_relaxed); }  // lock-free
  // Returns true while a plan is followed, all its pages are mapped and no better one is due. Lock-free.
  bool Steady() const { return steady_.load(std::memory_order_relaxed); }
  // Returns true for one caller of kCompare. *median_ns: the time of a request served by best fit here. Lock-free if
  // false.
  bool BeginComparison(uint64_t* median_ns);
  void LeaveToDriver();  // sets service() to kLeave. Live blocks stay until they are released

  void NotePassedThrough();  // an allocation request was left to the driver while this engine's context was current
  hotpack_stats Stats();     // a consistent copy

  // Returns the plan that a later run may begin with; null: there is none yet. Not for the fast path: O(requests so
  // far), and it may pack again, for at most the time limit of a solve.
  std::shared_ptr<const SavedPlan> PlanToSave();

  // The process or the context ends: updates the figures, closes the trace, and gives a plan not yet saved to the sink.
  // Makes no driver call.
  void Finish();

  // The context ends: waits for changes of pages in other threads, ends the planning thread, updates the figures and
  // closes the trace. After that no call reaches `memory`: requests return kPassThrough, releases are accepted and do
  // nothing. Makes no driver call. Not to be called in a forked child.
  void Retire();

  // In a forked child: the planning thread is gone and the context is not usable. After that no call takes a lock:
  // requests return kPassThrough, releases are accepted and do nothing, other functions do nothing. Async-signal-safe.
  void AbandonAfterFork();

 private:
  std::atomic<Service> service_{Service::kServe};
  std::atomic<bool> steady_{false};
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hotpack
