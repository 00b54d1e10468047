// The streams that work is submitted to, each with a number, and the events that were recorded on them.
//
// A number is given out again only when nothing refers to it: the stream is gone and all releases on it are settled
// (come before whatever is submitted from now on). Streams of a context that has ended are gone at once, with their
// work done.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "preload/streams/order_cost.h"
#include "runtime/memory/cuda_driver.h"
#include "runtime/memory/reuse.h"

// The handles that need no look at their first use any more, by hash; read by work_hooks.cc at each call. 0: free.
inline constexpr uint32_t kHotpackHandleBits = 12;
extern "C" uint64_t hotpack_stream_handles[1u << kHotpackHandleBits];

namespace hotpack {

enum class StreamKind : uint8_t {
  kLegacy,  // of a context; waits for, and is waited for by, its blocking and per-thread streams
  kBlocking,
  kNonBlocking,
  kPerThread,  // a thread's own default stream in a context; blocking. Other threads have no name for it
};

// Thread-safe. The lock is never held across a driver call. Zero-initialised: a static object needs no constructor.
class UsedStreams {
 public:
  static constexpr uint32_t kCapacity = 256;

  struct Stream {  // a copy of what is known of one
    uint32_t number;
    CUstream handle;
    CUcontext context;
    StreamKind kind;
    bool gone;      // its handle means nothing any more
    bool finished;  // ... and its work is done
    bool may_end;   // it may be destroyed without a word: its handle is good only while a call names it
  };

  // The number of a stream that was added under this handle; kAllStreams: none was. Lock-free.
  uint32_t Find(CUstream handle) const;
  uint32_t FindLegacy(CUcontext context) const;
  uint32_t FindOwn(CUcontext context) const;  // the calling thread's per-thread default stream

  // Adds a stream. *fresh: the caller orders it after what was before, then calls Joined; until then another thread
  // that adds the same one waits here. kAllStreams: no number is free.
  uint32_t Add(CUstream handle, CUcontext context, StreamKind kind, bool* fresh);
  void Joined(uint32_t number);

  // The handle, or the context's handles, are about to mean nothing: waits for the calls that other threads make with
  // them right now. Of a stream that is gone the events stay; of a context they do not.
  void Remove(CUstream handle);
  void ForgetContext(CUcontext context);
  // What is gone and has no release after `tick` frees its number.
  void Recycle(uint64_t tick);

  // The stream may be destroyed without a word. The handle is good now.
  void SetMayEnd(uint32_t number);
  // Another stream may have got the handle since the number was given: it knows of nothing then. The handle is good
  // now. Without the driver's word for it (cuStreamGetId, CUDA 12.0) any stream but a default one counts as another
  // one.
  void Identify(const CudaDriver& driver, uint32_t number);
  // Whether one of the streams is capturing, or may be: the driver is asked of each that cannot have ended.
  bool AnyCapturing(const CudaDriver& driver);

  // Copies of all streams that have a number; at most kCapacity. Ascending.
  size_t List(Stream* streams) const;
  Stream Get(uint32_t number) const;

  // Records an event on the stream; it then stands for all releases up to `tick`, read before the call. A per-thread
  // stream: the calling thread's own. Returns the event, which may be recorded again later (then it stands for more);
  // null: the stream is gone, or the driver refused.
  CUevent Record(const CudaDriver& driver, uint32_t number, uint64_t tick);
  // The earliest event there is that stands for releases of the stream up to `tick` at least; null.
  CUevent EventAfter(uint32_t number, uint64_t tick) const;
  CUevent LatestEvent(uint32_t number) const;  // recorded last; null
  // The stream's coming work waits for the event, one of stream `from`. The same; true if `from` went with its context.
  bool Wait(const CudaDriver& driver, uint32_t number, uint32_t from, CUevent event);
  // The stream's coming work waits for the event, which is of no stream (preload/streams/context_events.h).
  bool WaitFor(const CudaDriver& driver, uint32_t number, CUevent event);
  // The host waits for the latest event of the stream; true also if there is none.
  bool WaitOnHost(const CudaDriver& driver, uint32_t number);
  // The host waits for all work of the stream; true also if the stream is gone (it has left an event).
  bool Synchronize(const CudaDriver& driver, uint32_t number);

  // A block was released on the stream at `tick`.
  void NoteRelease(uint32_t number, uint64_t tick);
  uint64_t LastRelease(uint32_t number) const { return slots_[number].last_release.load(std::memory_order_acquire); }
  // Another stream had to wait for this one: its next releases are worth an event each.
  void NoteWanted(uint32_t number) { slots_[number].wanted.store(kWanted, std::memory_order_relaxed); }
  bool TakeWanted(uint32_t number);

  // Whether `stream`'s coming work is known to come after the releases of `other` up to `tick`; and noting that.
  bool Knows(uint32_t stream, uint32_t other, uint64_t tick) const;
  void NoteKnown(uint32_t stream, uint32_t other, uint64_t tick);
  bool KnowsAll(uint32_t stream, uint64_t tick) const;
  void NoteKnownAll(uint32_t stream, uint64_t tick);

  void ResetAfterFork();

 private:
  enum class State : uint8_t { kFree, kJoining, kUsed, kGone };
  static constexpr int kEvents = 8;
  static constexpr uint32_t kPerThreadCapacity = kCapacity / 2;  // they are never gone: nobody tells us
  static constexpr int kWanted = 64;                             // releases
  static constexpr uint64_t kBusy = ~uint64_t{0};
  struct Slot {
    State state;
    StreamKind kind;
    bool finished;
    bool may_end;
    uint64_t id;  // the driver's; 0: not asked for yet
    CUstream handle;
    CUcontext context;
    uint64_t thread;  // of a per-thread stream
    CUevent events[kEvents];
    uint64_t ticks[kEvents];  // 0: not recorded yet; kBusy: being recorded
    uint32_t next_event;
    uint32_t last_event;  // recorded last, of those with a tick
    uint32_t users;       // calls under way with the handle
    std::atomic<uint64_t> last_release;
    std::atomic<int> wanted;
    std::atomic<uint64_t> known_all;
    std::atomic<uint64_t> generation;  // raised when the number goes to another stream
  };
  void Publish(const Slot& slot, uint32_t number);
  void Unpublish(CUstream handle);
  class Use;
  uint32_t FindSlot(CUstream handle, CUcontext context, StreamKind kind) const;

  mutable std::mutex mutex_;
  uint32_t count_ = 0;  // slots [0, count_) have been used
  uint32_t per_thread_ = 0;
  Slot slots_[kCapacity] = {};
  std::atomic<uint64_t> known_[kCapacity][kCapacity] = {};
  std::atomic<uint32_t> numbers_[1u << kHotpackHandleBits] = {};  // beside hotpack_stream_handles
  std::atomic<uint32_t> first_legacy_{0};                         // number + 1 of the first context's; 0: none
  std::atomic<CUcontext> first_context_{nullptr};
};

}  // namespace hotpack
