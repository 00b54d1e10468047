// Order between streams: decides when released memory may be used again.
//
// Invariant: work that may still use a block at its release is finished, or ordered before all work that the block's
// next owner submits. The host waits only where a rule below says so. Thread-safe. "Legacy stream": a context's legacy
// default stream.
//
// 1. One stream. While work goes to the legacy stream only, the stream's own order is enough. Nothing is recorded.
// 2. First use of a stream.
//    - Work hooks (work_hooks.cc) see each stream before its first work is submitted.
//    - The stream gets a number and waits for the *floor*: an event that stands for all that is settled. That is the
//      last barrier's (3), or else the legacy stream's of when a second stream appeared. A wait for all work would be
//      a wait that the program did not make, also for a receive that only this stream's work can answer.
//    - `simple_` and `state_` change to "several" before that event is recorded. A release that read "one" had
//      submitted its work before, so the event covers that work.
//    - Barriers that are being made may miss the stream. It then waits for all streams (*join*).
// 3. Several streams. Each release has a tick, which the engine keeps with the memory (runtime/memory/reuse.h). At the
//    next request there, the engine returns what has to come before.
//      | release                        | uses of the block come before the release on                             |
//      |--------------------------------|--------------------------------------------------------------------------|
//      | cuMemFreeAsync(S)              | S (the call's contract), and the streams named by hotpack_record_use     |
//      | cuMemFree                      | any stream                                                               |
//      | hotpack_free_pooled(S), pooled | any stream; S itself needs no order                                      |
//    - A request on stream T: for each release on S ≠ T, T waits for an event of S that was recorded after the release.
//      T remembers which releases it comes after.
//    - A release on "any stream": T waits for all used streams. After a pooled release on S, a request on S waits for
//      nothing.
//    - The event is recorded at the release, unless a plan serves whose blocks did not change streams lately. Otherwise
//      it is recorded when it is needed, and stands for later work as well.
//    - A request without stream (cuMemAlloc): its memory may be used on any stream. So all used streams wait for all
//      used streams through the context's legacy stream (*barrier*), unless a barrier was made since the release.
//      Streams used later join (2) after the barrier.
// 4. Per-thread default streams have no name in other threads, and need not join. They and the legacy stream wait for
//    each other, as do all streams that are not CU_STREAM_NON_BLOCKING (CUDA driver API, "Stream synchronization
//    behavior"). An event on the legacy stream stands for them all, and the legacy stream waits for the barrier.
// 5. A destroyed stream leaves an event that was recorded before its end. Its number is reused once all releases on it
//    come before a barrier.
// 6. Captures. hotpack records no event on a capturing stream, and makes none wait. While a stream is capturing,
//    hotpack submits nothing to the legacy stream: the implicit dependency would break the capture.
//    - Before the first capture begins, an event is recorded on each used stream.
//    - Releases during a capture go into quarantine, and to the engine when no capture is active. So memory in the
//      engine's free space was released before the capture and has its event.
//    - A request during a capture waits for these events: on its stream, or on the host if it names none.
//    - `captures_` is raised before the driver is asked to begin; `syncing_` while events are recorded or the host
//      waits. Each side raises its own counter and then reads the other's (sequentially consistent), so both never
//      proceed at once. Beginning a capture may thus wait for another thread's synchronisation.
// 7. Several contexts. Each has a legacy stream. Barriers cover all contexts seen, since any may have used the memory.
// 8. If the driver refuses an event, or numbers run out, the host waits for all contexts seen. If a capture forbids
//    that, the request is not served.
//
// Without hooks (libhotpack.so alone) streams are not seen. Every release waits for its stream, a pooled one for all
// contexts, and each call asks the driver for captures. Exception:
//
// 9. The program has promised (hotpack_keep_streams) to name every stream that gets a block and to announce captures.
//    - A release on "any stream" (pooled, or with a user that cannot record) is ordered by an event of each whole
//      context (ContextEvents). The event also covers unnamed and ended streams.
//    - That event is recorded as in 3. The host waits where the driver has no such events.
//    - Streams have no floor (2). All releases before the second stream was named share one tick, `past_tick_`. It
//      applies to all memory until that work is done.
//    - What a stream comes after is known only as long as its handle is the same stream's (UsedStreams::Identify).
//    - A recorded use gets its event at the release, as long as the program answers for that stream's handle.
//    - Recording a context's event, or waiting on the host, would invalidate an unannounced capture. So before either,
//      all named streams are asked whether they capture.
//    - If one does, or on a capturing stream, a request whose memory would have to wait is not served.
//      preload/serve/driver_blocks.h serves it instead.
//    - A pooled release during a capture reaches the engine at once, unless it has users: its stream needs no event.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "preload/process/driver_access.h"
#include "preload/process/options.h"
#include "preload/streams/context_events.h"
#include "preload/streams/crossing_blocks.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/used_streams.h"
#include "runtime/engine/engine.h"
#include "runtime/process/arena_table.h"

// Set by work_hooks.cc. Constantly 0 without hooks (standalone.cc).
extern "C" int hotpack_per_thread_stream_used;

namespace hotpack {

// In place of a stream's handle: any stream.
inline const CUstream kNoStream = reinterpret_cast<CUstream>(~uintptr_t{0});

// A key that tells streams apart: the handle, and for the per-thread default stream also the thread.
uint64_t StreamKey(CUstream stream);

// Returns a small ordinal of a stream for recordings: 0 for the legacy default stream and for kNoStream. Each
// per-thread default stream has its own. Lock-free, no heap.
uint32_t StreamOrdinal(CUstream stream);

// Returns the engine's tag of a request's stream: its ordinal, and whether a stream was named.
inline uint32_t StreamTag(CUstream stream) { return stream == kNoStream ? 0 : StreamOrdinal(stream) | kStreamOrdered; }

// Which work may still use a block at its release.
enum class ReleaseKind : uint8_t {
  kOrdered,  // work before this point of the named stream (cuMemFreeAsync); any work if no stream is named
  kPooled,   // any submitted work; the named stream needs no order (hotpack_free_pooled)
};

class StreamOrder {
 public:
  // Gives the block at `address` back to its arena: at once, or later during a capture. `stream`: the named stream, or
  // kNoStream for work on all streams. Returns kInvalidValue if no live block starts there.
  EngineStatus Release(ContextArena* arena, DeviceAddress address, CUstream stream, ReleaseKind kind);

  // hotpack_keep_streams. Has an effect only before the first request.
  void KeepStreams();
  // Returns true if streams are known only from the program's promise. Events of whole contexts then keep the order
  // (9.).
  bool ByContexts() const { return !kHooksPresent && kept_.load(std::memory_order_relaxed); }
  // Returns true after hotpack_keep_streams, effective or not. Private pools then serve the memory of graphs.
  bool Promised() const { return promised_.load(std::memory_order_relaxed); }
  // hotpack_except_stream: excludes this stream from the promise. It may be destroyed unannounced.
  void StreamMayEnd(CUstream stream);
  // Gives the stream a number if it has none. Called when a request, a release or a use names it.
  void Named(CUstream stream) {
    if (kept_.load(std::memory_order_relaxed) && reinterpret_cast<uintptr_t>(stream) > 1 &&
        streams_.Find(stream) == kAllStreams) [[unlikely]]
      FirstUse(stream);
  }

  // Notes that a request names the stream. Cheap.
  void Asked(CUstream stream) {
    if (stream != nullptr && stream != CU_STREAM_LEGACY && stream != kNoStream) several_ask_.store(true);
  }

  // Returns true as long as only the legacy stream was used, and nothing was captured or recorded. Releases then
  // concern the engine alone, and none is in quarantine.
  bool OneStream() const {
    return simple_.load() && __atomic_load_n(&hotpack_per_thread_stream_used, __ATOMIC_RELAXED) == 0;
  }

  // Orders work that is submitted to `stream` of the arena's context from now on (kNoStream: to any stream) after
  // `after`. Returns false if that is not possible now.
  bool OrderReuse(ContextArena* arena, CUstream stream, const ReuseAfter& after) {
    return after.empty() || (after.LatestTick() <= settled_.load(std::memory_order_acquire)) ||
           OrderAfter(arena, stream, after);
  }

  // Records that work on `stream` uses the live block at `address`, in addition to the stream that its release will
  // name. Forgotten with the release.
  void RecordUse(DeviceAddress address, CUcontext context, CUstream stream);

  // Releases quarantined blocks to their arenas if no capture is active. `seen`: a stream that is valid now. Without
  // hooks only the blocks that wait for this stream are checked. Cheap when there are none.
  void Drain(CUstream seen = kNoStream) {
    if (waiting_count_.load(std::memory_order_relaxed) != 0 || GraphBlocks().AnyFreed()) DrainSome(seen);
  }

  // Hook of work: call before work is submitted to the stream, perhaps for the first time.
  void FirstUse(CUstream stream);
  // Hook of work that may wait for the host (cuStreamWaitValue, batched memory operations): call before it is
  // submitted. From then on every release records an event, because an event recorded later would wait for that work
  // too.
  void HostWait();
  // Hook of stream destruction: call before the driver call.
  void DestroyStream(CUstream stream);

  // Hook of context creation and of the first request in a context: call before the program can submit work to it.
  void NoteContext(CUcontext context);

  // Hooks of captures. Begin: call before the driver call. Cancel: call if the driver refused.
  void BeginCapture(CUstream stream);
  void CaptureBegan(CUcontext context, CUstream stream);
  void CancelCapture();
  // Call after the driver's cuStreamEndCapture or cuStreamDestroy. `over`: the stream is no longer capturing.
  void CaptureMayHaveEnded(CUstream stream, bool over);

  // Returns true if an announced capture, or one that hooks saw, is active.
  bool AnyCapture() const { return captures_.load() > 0; }

  // Returns true if `stream` takes part in a capture. Asks the driver only if a capture may be active.
  bool IsCapturing(CUstream stream) const;

  // Returns true if no known capture is active. An unannounced one may begin at any moment.
  bool MayWait() {
    const bool may = EnterSynchronize();
    if (may) LeaveSynchronize();
    return may;
  }

  // Waits for all work of `context` (null: the current one), and of all contexts if there are several. Returns false if
  // a capture is active.
  bool Synchronize(CUcontext context);

  // The same, for at most about so many microseconds. Queries events of the contexts. Waits without a limit where the
  // driver has no such events.
  DeviceWait SynchronizeWithin(CUcontext context, uint64_t microseconds);

  // Call before the context is destroyed. Forgets its streams, captures and quarantined blocks (of `arena`, may be
  // null).
  void ForgetContext(CUcontext context, const ContextArena* arena);

  // In a forked child: forgets everything.
  void ResetAfterFork();

 private:
  enum State : int { kOne, kSeveral, kSynchronous };
  struct Waiting {
    ContextArena* arena;
    DeviceAddress address;
    CUstream stream;
  };
  struct Capture {
    CUcontext context;
    uint64_t stream;  // StreamKey
  };
  class NoCapture;

  // stream_order.cc: releases and requests
  ReuseAfter StampOf(Engine* engine, CUstream stream, DeviceAddress address, ReleaseKind kind);
  // Returns true if any stream may get the memory of a release: several ask for memory, and no plan says which one.
  bool AskedOffPlan(const Engine* engine) const {
    return GetOptions().release_events && several_ask_.load(std::memory_order_relaxed) && !engine->Steady();
  }
  void TakeUses(DeviceAddress address, ReuseAfter* after);
  bool HasUses(DeviceAddress address);
  uint32_t NumberOf(CUstream stream, CUcontext context);
  uint32_t AddStream(CUstream stream, CUcontext context, StreamKind kind);
  bool OrderAfter(ContextArena* arena, CUstream stream, const ReuseAfter& after);
  bool AsksNothing(uint32_t stream, const ReuseAfter& after) const;
  bool OrderStream(uint32_t stream, const ReuseAfter& after);
  bool OrderOnHost(const ReuseAfter& after, uint64_t tick);
  void BecomeSynchronous();

  // stream_contexts.cc: order by events of whole contexts (9.)
  bool OrderByContexts(CUstream stream, uint32_t number, const ReuseAfter& after);
  bool WaitForContexts(uint32_t stream, uint64_t needed);
  bool RecordContexts(uint64_t tick);
  bool WaitOnHostForContexts(uint64_t needed);
  void FindContexts();
  void StampPast();
  void TrySettlePast();
  std::vector<uint32_t> UsersOf(CUcontext context, CUstream stream);
  bool RecordNow(uint32_t stream);
  bool AsksCapturing(CUstream stream) const;

  // stream_edges.cc: driver calls
  bool Edge(uint32_t from, uint64_t tick, uint32_t to);
  bool Join(uint32_t stream, uint64_t tick);
  bool JoinDuringCapture(uint32_t stream, uint64_t tick);
  bool Barrier();
  bool Gather(const CudaDriver& driver, const UsedStreams::Stream& stream, uint32_t hub, uint64_t tick);
  bool WaitOnHost();
  void RecordAll(uint64_t tick);
  void RecordUsed();
  void RecordAtRelease(Engine* engine, DeviceAddress address);
  bool ComeAfterFloor(uint32_t stream);
  void RaiseFloor(uint32_t stream, uint64_t tick);
  uint64_t CaptureTick() const;
  void Settle(uint64_t tick);
  bool SynchronizeContexts();
  bool SynchronizeOne(CUcontext context);
  std::vector<CUcontext> ContextsWith(CUcontext context);
  bool SynchronizeStream(CUstream stream);
  bool EnterSynchronize();
  void LeaveSynchronize() { syncing_.fetch_sub(1); }

  // stream_captures.cc
  EngineStatus ReleaseLater(ContextArena* arena, DeviceAddress address, CUstream stream);
  void Quarantine(const Waiting& waiting);
  size_t TakeBatch(CUstream seen, Waiting* batch, size_t capacity);
  void DrainSome(CUstream seen);

  void NotSimple();
  // streams and captures are seen
  bool Seen() const { return kHooksPresent || kept_.load(std::memory_order_relaxed); }

  // What is settled comes before all events of the stream with at least this tick. kAllStreams: of any stream.
  struct Floor {
    uint32_t stream = kAllStreams;
    uint64_t tick = 0;
  };

  static constexpr size_t kFixed = 1024;  // then the heap

  UsedStreams streams_;
  ContextEvents context_events_;
  CrossingBlocks crossing_;
  std::atomic<uint64_t> tick_{1};     // of the last release; the first has 2
  std::atomic<uint64_t> settled_{0};  // releases up to it come before all work submitted from now on
  std::atomic<bool> kept_{false};     // without hooks: KeepStreams
  std::atomic<bool> promised_{false};
  std::atomic<uint64_t> found_devices_{0};  // FindContexts: bit d belongs to device d
  std::atomic<bool> simple_{true};  // false for good after the first stream, capture, use, or release that had to wait
  std::atomic<bool> leaving_{false};    // a thread is setting `simple_` to false, or has done so
  std::atomic<bool> left_{false};       // `simple_` is false for good
  std::atomic<uint64_t> past_tick_{0};  // 9.: releases up to it were not stamped; 0: none, or all settled
  std::atomic<int> state_{kOne};
  std::atomic<bool> host_waits_{false};
  std::atomic<bool> several_ask_{false};  // a stream other than the legacy one has asked for memory
  std::atomic<int64_t> next_record_{0};   // RecordAtRelease: not before this time
  std::atomic<int> barriers_{0};          // being made
  std::atomic<int> captures_{0};
  std::atomic<int> syncing_{0};
  std::atomic<bool> beginning_{false};     // a thread is recording the events of 6.
  std::atomic<uint64_t> capture_tick_{0};  // these events stand for releases up to this tick
  std::atomic<size_t> waiting_count_{0};
  std::atomic<size_t> use_count_{0};
  std::mutex mutex_;  // guards the members below; never held across a driver call
  Floor floor_;
  Waiting fixed_[kFixed] = {};
  size_t fixed_count_ = 0;
  std::vector<Waiting>* overflow_ = nullptr;
  std::vector<Capture>* began_ = nullptr;                                     // origin streams of active captures
  std::vector<CUcontext>* contexts_ = nullptr;                                // seen and not destroyed
  std::unordered_map<DeviceAddress, std::vector<uint32_t>>* uses_ = nullptr;  // of hotpack_record_use
};

// The one of the process. Its only nontrivial members are mutexes, whose destructors do nothing.
extern StreamOrder process_order;
inline StreamOrder& Order() { return process_order; }

}  // namespace hotpack
