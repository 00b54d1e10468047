// When released memory may be used again: work of its next owner comes after the work of the last one.
//
// What has to be shown: the work that may still use a block when it is released is finished, or ordered before, any
// work that its next owner submits. Nothing of this makes the host wait, but for the cases that say so.
//
// 1. One stream. As long as nothing was submitted to another stream than the legacy default stream, the released
//    block's work is there, the next owner's work will be there, and a stream runs in order. Nothing to do, nothing is
//    noted.
// 2. A stream's first use. Work hooks (work_hooks.cc) see each stream that work is submitted to, before its first work
//    is. The stream is given a number and *joins*: it waits for events that are recorded, now, on all streams used so
//    far. So whatever it does comes after all releases that were made before. From the first one on the process has
//    several streams (`simple_`, `state_`), which is written before those events are recorded: a release that read
//    "one" submitted its work before, so the events cover it.
// 3. Several streams. A release has a tick. Of cuMemFreeAsync(S), all uses come before that point of S (the call's
//    contract), and so do the uses that were told of by hotpack_record_use on the streams told; of cuMemFree they may
//    be on any stream. The engine keeps this with the memory (runtime/memory/reuse.h) and says at the next request
//    there what has to come before:
//      - a request that names stream T: for each release on S ≠ T an event of S that was recorded after it is waited
//        for by T. Which releases T is known to come after is remembered; an event is recorded when it is needed, or,
//        on streams that were needed lately, at the release. A release on "any stream": T waits for all used streams.
//    Of a pooled release (hotpack_free_pooled) on S the uses may be on any stream, too, but S itself needs no order: a
//    request on S gets nothing to wait for, one on T ≠ S what a release on "any stream" gives.
//      - a request without stream (cuMemAlloc): what it is given may be used anywhere, so all used streams wait for all
//        used streams, by way of the legacy stream of the context (*barrier*), unless one was made since the release.
//        Streams used later join (2), after the barrier.
// 4. Per-thread default streams have no name in other threads. Their context's legacy stream waits for them, and they
//    for it (CUDA driver API, "Stream synchronization behavior"), like all streams that are not CU_STREAM_NON_BLOCKING:
//    an event on the legacy stream stands for them all, and what waits for the barrier is the legacy stream. Hence they
//    need not join.
// 5. A stream that is destroyed leaves an event behind that was recorded before. A number is given out again when all
//    releases on it come before a barrier.
// 6. Captures. No event of ours is recorded on, or waited for by, a capturing stream, and nothing is submitted to the
//    legacy stream while a stream is capturing (it would be an implicit dependency, which breaks the capture).
//    - Before the first capture begins, an event is recorded on each used stream.
//    - Releases while a capture is active are put aside (quarantine) and handed over when none is. So what is in the
//      engine's free space was released before, and has its event.
//    - A request meanwhile waits for these events: on its stream, or, without stream, on the host.
//    `captures_` is raised before the driver is asked to begin and `syncing_` while events or synchronisations are
//    under way; each side looks at the other's counter after it has raised its own (sequentially consistent), so never
//    both at once. Beginning a capture may thus wait for another thread's synchronisation.
// 7. Several contexts: the same, with a legacy stream in each; barriers cover all contexts that were seen, since any of
//    them may have used the memory.
// 8. When the driver refuses an event, or there are more streams than numbers, the host waits: for all contexts that
//    were seen. If that is not possible either (a capture), the request is not served.
//
// Without hooks (libhotpack.so alone) streams are not seen: every release waits for its stream, a pooled one for all
// contexts, and captures are asked for at each call.
//
// 9. Unless the program has promised (hotpack_keep_streams) to name every stream that gets a block and to announce
//    captures. Then
//    - A release on "any stream" (pooled, or of a user that cannot be told to record) is ordered by an event of each
//      whole context (ContextEvents): it covers streams that were never named and streams that have ended. Recorded
//      when it is needed, or at the release if the block's memory went to another stream before (CrossingBlocks). The
//      host waits where the driver has no such events.
//    - A stream needs not join (2): what was released before the second stream was named has one tick, `past_tick_`,
//      which counts for all memory until that work is done.
//    - What a stream is known to come after is its own only as long as the handle is (UsedStreams::Identify).
//    - A use that was told of is recorded at the release, as long as the program answers for that stream's handle.
//    - Before an event of a context is recorded, or the host waits, all named streams are asked whether they capture:
//      either would invalidate a capture that nobody has announced. Then, and on a capturing stream, a request whose
//      memory would have to wait is not served (preload/serve/driver_blocks.h has another place for it).
//    - A pooled release during a capture is handed over at once, unless it has users: its own stream needs no event.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "preload/process/driver_access.h"
#include "preload/streams/context_events.h"
#include "preload/streams/crossing_blocks.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/used_streams.h"
#include "runtime/engine/engine.h"
#include "runtime/process/arena_table.h"

// Set by work_hooks.cc; constantly 0 without hooks (standalone.cc).
extern "C" int hotpack_per_thread_stream_used;

namespace hotpack {

// How a request or a release names its stream.
inline const CUstream kNoStream = reinterpret_cast<CUstream>(~uintptr_t{0});  // any stream

// Tells streams apart: the handle, and for the per-thread default stream the thread too.
uint64_t StreamKey(CUstream stream);

// Small ordinal of a stream for recordings: 0 for the legacy default stream and for kNoStream. Per-thread default
// streams have one each. Lock-free, no heap.
uint32_t StreamOrdinal(CUstream stream);

// What the engine is told of a request's stream: its ordinal, and whether a stream was named.
inline uint32_t StreamTag(CUstream stream) { return stream == kNoStream ? 0 : StreamOrdinal(stream) | kStreamOrdered; }

// Which work may still use a block when it is released.
enum class ReleaseKind : uint8_t {
  kOrdered,  // work that comes before this point of the stream that is named (cuMemFreeAsync), or any if none is
  kPooled,   // any that was submitted; the stream that is named needs no order (hotpack_free_pooled)
};

class StreamOrder {
 public:
  // Gives the block at `address` back to its arena, at once or, during a capture, later. `stream`: the stream that is
  // named, or kNoStream for work on all streams. kInvalidValue: no live block starts there.
  EngineStatus Release(ContextArena* arena, DeviceAddress address, CUstream stream, ReleaseKind kind);

  // hotpack_keep_streams. Before the first request; later it has no effect.
  void KeepStreams();
  // True if the program's word is all that is known of streams, and order is kept by events of whole contexts (9.).
  bool ByContexts() const { return !kHooksPresent && kept_.load(std::memory_order_relaxed); }
  // hotpack_keep_streams was called, with or without an effect: private pools serve what graphs use.
  bool Promised() const { return promised_.load(std::memory_order_relaxed); }
  // hotpack_except_stream: the promise does not hold for this one, which may be destroyed without a word.
  void StreamMayEnd(CUstream stream);
  // A request, a release or a use names the stream: if it has no number yet, it gets one.
  void Named(CUstream stream) {
    if (kept_.load(std::memory_order_relaxed) && reinterpret_cast<uintptr_t>(stream) > 1 &&
        streams_.Find(stream) == kAllStreams) [[unlikely]]
      FirstUse(stream);
  }

  // Nothing but the legacy stream has been used so far, nothing captured, nothing recorded: a release is the engine's
  // alone, and nothing waits for being handed over.
  bool OneStream() const {
    return simple_.load() && __atomic_load_n(&hotpack_per_thread_stream_used, __ATOMIC_RELAXED) == 0;
  }

  // Work that is submitted to `stream` of the arena's context from now on (kNoStream: to any) comes after `after`.
  // False: not possible now.
  bool OrderReuse(ContextArena* arena, CUstream stream, const ReuseAfter& after) {
    return after.empty() || (after.LatestTick() <= settled_.load(std::memory_order_acquire)) ||
           OrderAfter(arena, stream, after);
  }

  // The live block at `address` is used by work on `stream`, beside the stream that its release will name. Forgotten
  // with the release.
  void RecordUse(DeviceAddress address, CUcontext context, CUstream stream);

  // Hands over what is in quarantine, if no capture is active now. `seen`: a stream that is valid now; without hooks
  // only what waits for this stream is looked at. Cheap when there is nothing.
  void Drain(CUstream seen = kNoStream) {
    if (waiting_count_.load(std::memory_order_relaxed) != 0 || GraphBlocks().AnyFreed()) DrainSome(seen);
  }

  // Hook of work: the stream is about to be used, perhaps for the first time.
  void FirstUse(CUstream stream);
  // Hook of work that may wait for the host (cuStreamWaitValue, batched memory operations): it is about to be
  // submitted. Events are recorded at every release from now on: one that is recorded later would wait for that work
  // too.
  void HostWait();
  // Hook of stream destruction: call before the driver is asked.
  void DestroyStream(CUstream stream);

  // Hook of context creation, and of the first request in a context: call before the program can submit work to it.
  void NoteContext(CUcontext context);

  // Hooks of captures. Begin: call before the driver is asked. Cancel: the driver refused.
  void BeginCapture(CUstream stream);
  void CaptureBegan(CUcontext context, CUstream stream);
  void CancelCapture();
  // After the driver's cuStreamEndCapture or cuStreamDestroy; `over`: the stream is not capturing any more.
  void CaptureMayHaveEnded(CUstream stream, bool over);

  // A capture is active that has been announced, or seen by hooks.
  bool AnyCapture() const { return captures_.load() > 0; }

  // True if `stream` is taking part in a capture. Asks the driver only if a capture may be active.
  bool IsCapturing(CUstream stream) const;

  // No capture is active, as far as is known. (One that nobody announces may begin at any moment.)
  bool MayWait() {
    const bool may = EnterSynchronize();
    if (may) LeaveSynchronize();
    return may;
  }

  // While it lives, no thread begins a capture that hooks see. Captures that are active go on. False: one is just
  // beginning.
  class CaptureHold {
   public:
    explicit CaptureHold(StreamOrder* order) : order_(order), ok_(order->HoldCaptures()) {}
    ~CaptureHold() {
      if (ok_) order_->LeaveSynchronize();
    }
    CaptureHold(const CaptureHold&) = delete;
    CaptureHold& operator=(const CaptureHold&) = delete;
    explicit operator bool() const { return ok_; }

   private:
    StreamOrder* const order_;
    const bool ok_;
  };

  // Waits for all work of `context` (null: the current one), and, if there are several, of all contexts. False: a
  // capture is active.
  bool Synchronize(CUcontext context);

  // The context is about to be destroyed: its quarantined blocks (`arena`, may be null), streams and captures are
  // forgotten.
  void ForgetContext(CUcontext context, const ContextArena* arena);

  // In a forked child: nothing is live any more.
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
  ReuseAfter StampOf(CUstream stream, DeviceAddress address, ReleaseKind kind);
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

  // stream_edges.cc: what is said to the driver
  bool Edge(uint32_t from, uint64_t tick, uint32_t to);
  bool Join(uint32_t stream, uint64_t tick);
  bool JoinDuringCapture(uint32_t stream, uint64_t tick);
  bool Barrier();
  bool Gather(const CudaDriver& driver, const UsedStreams::Stream& stream, uint32_t hub, uint64_t tick);
  bool WaitOnHost();
  void RecordAll(uint64_t tick);
  uint64_t CaptureTick() const;
  void Settle(uint64_t tick);
  bool SynchronizeContexts();
  bool SynchronizeOne(CUcontext context);
  bool SynchronizeStream(CUstream stream);
  bool EnterSynchronize();
  bool HoldCaptures();
  void LeaveSynchronize() { syncing_.fetch_sub(1); }

  // stream_captures.cc
  EngineStatus ReleaseLater(ContextArena* arena, DeviceAddress address, CUstream stream);
  void Quarantine(const Waiting& waiting);
  size_t TakeBatch(CUstream seen, Waiting* batch, size_t capacity);
  void DrainSome(CUstream seen);

  void NotSimple();
  bool Seen() const { return kHooksPresent || kept_.load(std::memory_order_relaxed); }  // streams and captures are

  static constexpr size_t kFixed = 1024;  // then the heap

  UsedStreams streams_;
  ContextEvents context_events_;
  CrossingBlocks crossing_;
  std::atomic<uint64_t> tick_{1};     // of the last release; the first has 2
  std::atomic<uint64_t> settled_{0};  // releases up to it come before whatever is submitted from now on
  std::atomic<bool> kept_{false};     // without hooks: KeepStreams
  std::atomic<bool> promised_{false};
  std::atomic<uint64_t> found_devices_{0};  // FindContexts: bit d, of device d
  std::atomic<bool> simple_{true};    // false for good with the first stream, capture, use, or release that had to wait
  std::atomic<bool> leaving_{false};  // a thread is at the end of `simple_`, or it is over
  std::atomic<bool> left_{false};     // ... it is over
  std::atomic<uint64_t> past_tick_{0};  // 9.: releases up to here were not stamped; 0: none, or they are settled
  std::atomic<int> state_{kOne};
  std::atomic<bool> host_waits_{false};
  std::atomic<int> captures_{0};
  std::atomic<int> syncing_{0};
  std::atomic<bool> beginning_{false};     // a thread is at the events of 6.
  std::atomic<uint64_t> capture_tick_{0};  // these events stand for releases up to here
  std::atomic<size_t> waiting_count_{0};
  std::atomic<size_t> use_count_{0};
  std::mutex mutex_;  // of what follows; never held across a driver call
  Waiting fixed_[kFixed] = {};
  size_t fixed_count_ = 0;
  std::vector<Waiting>* overflow_ = nullptr;
  std::vector<Capture>* began_ = nullptr;                                     // origin streams of active captures
  std::vector<CUcontext>* contexts_ = nullptr;                                // seen and not destroyed
  std::unordered_map<DeviceAddress, std::vector<uint32_t>>* uses_ = nullptr;  // hotpack_record_use
};

// The process's. Its only nontrivial members are mutexes, whose destructors do nothing.
extern StreamOrder process_order;
inline StreamOrder& Order() { return process_order; }

}  // namespace hotpack
