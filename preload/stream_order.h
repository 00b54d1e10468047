// When a released block may be used again, day-one rule: one stream costs nothing; with more, a release waits.
//
// What has to be shown: the work that may still use a block when it is released is finished, or ordered before, any work
// that its next owner submits.
//
// 1. One stream. As long as the program has created no stream and used no per-thread default stream, all its work of a
//    context is on the legacy default stream. The released block's work is there, the next owner's work will be there,
//    and a stream runs in order. Nothing to do.
// 2. The first stream is created. Before the driver is asked for it (so before any work can be on it), `state_` becomes
//    kSwitching, every context is synchronised, and `state_` becomes kSeveral. A block that was released without waiting
//    had its work submitted before its release. If that release read kOne, it came before the switch, and the
//    synchronisation covers its work. If not, it waits itself (3). A second thread that creates a stream meanwhile waits
//    until the switch is over.
//    A stream capture begins only on a created or per-thread stream; the switch is made before it too, so it never falls
//    into a capture.
// 3. Several streams. cuMemFree: the context is synchronised before the block goes back, as the driver's own cuMemFree may
//    do (cuda.h). cuMemFreeAsync(stream): all uses are ordered before that point of the stream by the call's contract, so
//    waiting for the stream is enough. Nothing that is in the engine's free space has work pending, whoever asks next.
// 4. Per-thread default streams come into being without a call. The hooks of work-submitting functions note the first
//    use (work_hooks.cc) and from then on 3 holds. No synchronisation is needed at that moment: what was released before
//    has its work on the legacy stream, and per-thread default streams wait for work that was submitted to the legacy
//    stream before (CUDA driver API, "Stream synchronization behavior"). The note is written before the work is
//    submitted, and the program orders that before a release, so the release sees it.
//    Streams with CU_STREAM_NON_BLOCKING do not wait for the legacy stream: hence the synchronisation in 2, which still
//    takes place when the first one is created after a per-thread stream has been used.
// 5. Captures. A synchronising call while a stream of the context is capturing fails, and may break the capture. Such
//    releases are put aside (quarantine) and handed over when no capture is active. `captures_` is raised before the
//    driver is asked to begin and `syncing_` while a synchronisation runs; each side looks at the other's counter after
//    it has raised its own (sequentially consistent), so never both at once. Beginning a capture thus may wait for a
//    synchronisation in another thread, which ends when the device is done.
// 6. Several contexts: another context's streams may use a block too, so from the second context on 3 holds as well and
//    cuMemFree synchronises every context that was seen (created, retained, or allocated in).
//
// Without hooks (libhotpack.so alone) streams are not seen: 3 always holds, and captures are asked for at each call.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "runtime/engine.h"
#include "runtime/arena_table.h"

namespace hotpack {

// How a release names its stream.
inline const CUstream kNoStream = reinterpret_cast<CUstream>(~uintptr_t{0});  // cuMemFree: work on any stream

class StreamOrder {
 public:
  // Gives the block at `address` back to its arena, at once or, during a capture, later. `stream`: the stream whose work
  // so far may still be using it, or kNoStream for work on all streams. kInvalidValue: no live block starts there.
  EngineStatus Release(ContextArena* arena, DeviceAddress address, CUstream stream);

  // Hands over what is in quarantine, if no capture is active now. `seen`: a stream that is valid now; without hooks only
  // what waits for this stream is looked at. Cheap when there is nothing.
  void Drain(CUstream seen = kNoStream) {
    if (waiting_count_.load(std::memory_order_relaxed) != 0) DrainSome(seen);
  }

  // Hook of stream creation: call before the stream can exist.
  void SeveralStreams();

  // Hook of context creation, and of the first request in a context: call before the program can submit work to it.
  void NoteContext(CUcontext context);

  // Hooks of captures. Begin: call before the driver is asked. Cancel: the driver refused.
  void BeginCapture();
  void CaptureBegan(CUcontext context, CUstream stream);
  void CancelCapture();
  // After the driver's cuStreamEndCapture or cuStreamDestroy; `over`: the stream is not capturing any more.
  void CaptureMayHaveEnded(CUstream stream, bool over);

  bool AnyCapture() const { return captures_.load() > 0; }

  // True if `stream` is taking part in a capture. Asks the driver only if a capture may be active.
  bool IsCapturing(CUstream stream) const;

  // Waits for all work of `context` (null: the current one). False: a capture is active.
  bool Synchronize(CUcontext context);

  // The context is about to be destroyed: its quarantined blocks (`arena`, may be null) and captures are forgotten.
  void ForgetContext(CUcontext context, const ContextArena* arena);

  // In a forked child: nothing is live any more.
  void ResetAfterFork();

  // Releases that waited for the device (for tests).
  uint64_t Waits() const { return waits_.load(std::memory_order_relaxed); }

 private:
  enum State : int { kOne, kSwitching, kSeveral };
  struct Waiting {
    ContextArena* arena;
    DeviceAddress address;
    CUstream stream;
  };
  struct Capture {
    CUcontext context;
    uint64_t stream;  // StreamKey
  };

  bool Several() const;
  bool EnterSynchronize();
  void LeaveSynchronize() { syncing_.fetch_sub(1); }
  bool SynchronizeContexts();
  bool SynchronizeStream(CUstream stream);
  bool WaitForUse(CUstream stream);
  void Quarantine(const Waiting& waiting);
  size_t TakeBatch(CUstream seen, Waiting* batch, size_t capacity);
  void DrainSome(CUstream seen);

  static constexpr size_t kFixed = 1024;  // then the heap

  std::atomic<int> state_{kOne};
  std::atomic<int> captures_{0};
  std::atomic<int> syncing_{0};
  std::atomic<uint64_t> waits_{0};
  std::atomic<size_t> waiting_count_{0};
  std::mutex mutex_;  // of what follows; never held across a driver call
  Waiting fixed_[kFixed] = {};
  size_t fixed_count_ = 0;
  std::vector<Waiting>* overflow_ = nullptr;
  std::vector<Capture>* began_ = nullptr;       // origin streams of active captures
  std::vector<CUcontext>* contexts_ = nullptr;  // seen and not destroyed
};

// The process's.
StreamOrder& Order();

// Tells streams apart: the handle, and for the per-thread default stream the thread too.
uint64_t StreamKey(CUstream stream);

// Small ordinal of a stream for recordings: 0 for the legacy default stream and for kNoStream. Per-thread default streams
// have one each. Lock-free, no heap.
uint32_t StreamOrdinal(CUstream stream);

// What the engine is told of a request's stream: its ordinal, and whether a stream was named.
inline uint32_t StreamTag(CUstream stream) {
  return StreamOrdinal(stream) | (stream != kNoStream ? kStreamOrdered : 0);
}

}  // namespace hotpack
