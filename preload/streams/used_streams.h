// The streams that work is submitted to, each with a number, and the events recorded on them.
//
// 1. A number is reused only when nothing refers to it: the stream is gone, and all releases on it are settled (come
//    before all work submitted from now on).
// 2. Streams of an ended context are gone at once, and their work is done.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "preload/streams/event_ring.h"
#include "preload/streams/order_cost.h"
#include "runtime/memory/cuda_driver.h"
#include "runtime/memory/reuse.h"

// Handles that need no further check at their use, by hash. work_hooks.cc reads them at each call. 0: free.
inline constexpr uint32_t kHotpackHandleBits = 12;
extern "C" uint64_t hotpack_stream_handles[1u << kHotpackHandleBits];

namespace hotpack {

enum class StreamKind : uint8_t {
  kLegacy,  // one per context; it and the context's blocking and per-thread streams wait for each other
  kBlocking,
  kNonBlocking,
  kPerThread,  // a thread's own default stream in a context; blocking. Other threads have no name for it
};

// Thread-safe. The lock is never held across a driver call. Zero-initialised: a static object needs no constructor.
class UsedStreams {
 public:
  static constexpr uint32_t kCapacity = 256;

  struct Stream {  // a copy of one stream's entry
    uint32_t number;
    CUstream handle;
    CUcontext context;
    StreamKind kind;
    bool gone;      // its handle is not valid any more
    bool finished;  // ... and its work is done
    bool may_end;   // it may be destroyed unannounced: its handle is valid only while a call names it
  };

  // Returns the number of the stream that was added under this handle, kAllStreams if none was. Lock-free.
  uint32_t Find(CUstream handle) const;
  uint32_t FindLegacy(CUcontext context) const;
  // Returns the number of the first context's legacy stream, kAllStreams if there is none.
  uint32_t FirstLegacy() const { return first_legacy_.load(std::memory_order_acquire) - 1; }
  uint32_t FindOwn(CUcontext context) const;  // the calling thread's per-thread default stream

  // Adds a stream and returns its number, kAllStreams if none is free. *fresh: the caller orders the stream after all
  // earlier work, then calls Joined. Until then other threads that add the same stream wait here.
  uint32_t Add(CUstream handle, CUcontext context, StreamKind kind, bool* fresh);
  void Joined(uint32_t number);

  // Call before the handle, or the context's handles, become invalid. Waits for the calls that other threads make with
  // them right now. Events of a removed stream stay; those of a context do not.
  void Remove(CUstream handle);
  void ForgetContext(CUcontext context);
  // Frees the numbers of gone streams without a release after `tick`.
  void Recycle(uint64_t tick);

  // Marks that the stream may be destroyed unannounced. The handle must be valid now.
  void SetMayEnd(uint32_t number);
  // Checks whether another stream has got the handle since the number was given. If so, nothing is known of it. The
  // handle must be valid now. Without cuStreamGetId (CUDA 12.0) any stream but a default one counts as another stream.
  void Identify(const CudaDriver& driver, uint32_t number);
  // Returns true if a stream is or may be capturing. Asks the driver for each stream that cannot have ended.
  bool AnyCapturing(const CudaDriver& driver);

  // Writes copies of all numbered streams, at most kCapacity, ascending. Returns their number.
  size_t List(Stream* streams) const;
  Stream Get(uint32_t number) const;

  // Records an event on the stream and returns it; it stands for all releases up to `tick`, read before the call. A
  // per-thread stream: the calling thread's own. The event may be recorded again later; then it stands for more.
  // Returns null if the stream is gone or the driver refused.
  CUevent Record(const CudaDriver& driver, uint32_t number, uint64_t tick);
  // Returns the earliest event that stands for at least the stream's releases up to `tick`; null if there is none.
  // `stands_for`: up to which tick; null: not wanted.
  CUevent EventAfter(uint32_t number, uint64_t tick, uint64_t* stands_for = nullptr) const;
  // Returns true if the stream's work before its releases up to `tick` is known to be finished.
  bool Finished(uint32_t number, uint64_t tick) const;
  // Returns the event whose recording was begun last; waits until that is done. Null if there is none.
  CUevent LatestEvent(uint32_t number) const;
  // Makes the stream's coming work wait for an event of stream `from`. Returns true also if `from` ended with its
  // context.
  bool Wait(const CudaDriver& driver, uint32_t number, uint32_t from, CUevent event);
  // Makes the stream's coming work wait for an event of no stream (preload/streams/context_events.h).
  bool WaitFor(const CudaDriver& driver, uint32_t number, CUevent event);
  // The host waits for the stream's latest event. Returns true also if there is none.
  bool WaitOnHost(const CudaDriver& driver, uint32_t number);
  // The host waits for all work of the stream. Returns true also if the stream is gone: it has left an event.
  bool Synchronize(const CudaDriver& driver, uint32_t number);

  // Notes that a block was released on the stream at `tick`.
  void NoteRelease(uint32_t number, uint64_t tick);
  uint64_t LastRelease(uint32_t number) const { return slots_[number].last_release.load(std::memory_order_acquire); }
  // Notes that another stream had to wait for this one. Its next releases record an event each.
  void NoteWanted(uint32_t number) { slots_[number].wanted.store(kWanted, std::memory_order_relaxed); }
  bool TakeWanted(uint32_t number);

  // Returns whether `stream`'s coming work is known to come after the releases of `other` up to `tick`. NoteKnown notes
  // it.
  bool Knows(uint32_t stream, uint32_t other, uint64_t tick) const;
  void NoteKnown(uint32_t stream, uint32_t other, uint64_t tick);
  bool KnowsAll(uint32_t stream, uint64_t tick) const;
  void NoteKnownAll(uint32_t stream, uint64_t tick);

  void ResetAfterFork();

 private:
  enum class State : uint8_t { kFree, kJoining, kUsed, kGone };
  static constexpr uint32_t kPerThreadCapacity = kCapacity / 2;  // never gone: their end is not reported
  static constexpr int kWanted = 64;                             // releases
  struct Slot {
    State state;
    StreamKind kind;
    bool finished;
    bool may_end;
    uint64_t id;  // the driver's; 0: not read yet
    CUstream handle;
    CUcontext context;
    uint64_t thread;  // of a per-thread stream
    EventRing ring;
    uint32_t users;  // calls in progress with the handle
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
  std::atomic<uint32_t> numbers_[1u << kHotpackHandleBits] = {};  // parallel to hotpack_stream_handles
  std::atomic<uint32_t> first_legacy_{0};                         // number + 1 of the first context's; 0: none
  std::atomic<CUcontext> first_context_{nullptr};
};

}  // namespace hotpack
