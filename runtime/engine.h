// The allocator of one context: watches requests, finds the hot iteration, plans it, serves it. Interface of the room;
// docs/design.md has the states.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device_memory.h"
#include "runtime/include/hotpack.h"

namespace hotpack {

class PlanSink;     // runtime/saved_plan.h
class TraceWriter;  // profiler/trace_writer.h
struct SavedPlan;   // runtime/saved_plan.h

enum class EngineStatus : uint8_t {
  kOk,
  kOutOfMemory,
  kInvalidValue,  // size 0; or an address in the arena that is no live block (a double free)
  kNotOurs,       // the address is outside the arena: the driver's business
  kPassThrough,   // this device cannot be served (no VMM, driver going down): ask the driver
};

// Added to a stream's small ordinal: the request is ordered on that stream (cuMemAllocAsync, cuMemFreeAsync). Recorded.
inline constexpr uint32_t kStreamOrdered = uint32_t{1} << 31;

struct EngineOptions {
  hotpack_stats* stats = nullptr;       // where the figures are kept (may be shared memory); null: inside the engine
  TraceWriter* trace = nullptr;         // every event is appended here; null: none. Not owned
  int64_t plan_time_limit_ns = 1'000'000'000;  // for one solve
  uint64_t window = 1 << 20;            // requests remembered for iteration detection (bounds memory: 16 B each)
  std::shared_ptr<const SavedPlan> plan;  // of an earlier run, to begin with; null: none. Forgotten if it does not fit
  PlanSink* sink = nullptr;             // takes plans that are worth keeping; null: nobody. Not owned
};

// Thread-safe: any function from any thread. Never throws, exits or prints. No lock is held across a driver call.
class Engine {
 public:
  // `memory` must outlive the engine. Makes no driver call: the arena is reserved at the first request.
  Engine(DeviceMemory* memory, const EngineOptions& options);
  ~Engine();  // stops planning; makes no driver call (the driver may be gone); device memory goes with the context
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `bytes` of device memory, aligned to 512, for work on the stream whose small ordinal is `stream`. On script: no
  // driver call, no heap allocation, O(1). Otherwise may wait for the device and for other threads' growth.
  EngineStatus Allocate(uint64_t bytes, uint32_t stream, DeviceAddress* address);

  // Gives back the block that starts at `address`. The memory may be handed out again at once, so the caller makes
  // sure that later work is ordered after the block's last use. On script: O(successors), 1.3 on average.
  EngineStatus Release(DeviceAddress address, uint32_t stream);

  // True if `address` lies in the arena's reservation (any part of it). Lock-free.
  bool Owns(DeviceAddress address) const;

  // The live block that contains `address`: its start, and the bytes asked for, rounded up to 512. False if there is none.
  // O(blocks of the script).
  bool FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes);

  void Mark();       // an iteration begins here
  void Interrupt();  // hotpack_interrupt
  void Resume();
  bool WaitPlan(int timeout_ms);  // true when no planning is under way; negative: no limit

  void NotePassedThrough();       // an allocation request was left to the driver while this engine's context was current
  hotpack_stats Stats();          // a consistent copy

  // What a later run may begin with. Null: there is no plan yet. Not for the fast path: O(requests so far), and may pack
  // again, for at most the time limit of a solve.
  std::shared_ptr<const SavedPlan> PlanToSave();

  // The process or the context ends: the figures are brought up to date, the trace is closed, a plan that is not saved is
  // given to the sink. No driver call.
  void Finish();

  // In a forked child: the planning thread is gone and the context is not usable. No later call takes a lock: requests
  // answer kPassThrough, releases are accepted and do nothing, the rest does nothing. Async-signal-safe.
  void AbandonAfterFork();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hotpack
