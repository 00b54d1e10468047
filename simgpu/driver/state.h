// The state of the simulated driver: one object, one lock. Nothing in it ever waits. Work is finished at its submission
// (copies have moved their bytes); only the checker remembers what the host may not know yet.
#pragma once

#include <cuda.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checker/checker.h"
#include "simgpu/checker/order.h"
#include "simgpu/driver/memory_map.h"
#include "simgpu/driver/written.h"

namespace simgpu {

struct Capture;
struct Graph;
struct GraphExec;
struct UserObject;
struct Library;
struct Kernel;

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  int order = 0;                     // its number in Driver::order
  std::shared_ptr<Capture> capture;  // null: not capturing
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  Clock moment;
  double milliseconds = 0;           // when it was recorded
  std::shared_ptr<Capture> capture;  // recorded while capturing: a fork
};

struct Context {
  int device = 0;
  unsigned flags = 0;
  bool primary = false;
  bool alive = true;
  Context* parent = nullptr;  // of a green context: its device's primary one
  unsigned part = 0;          // of a green context: its multiprocessors
  std::vector<int> green_groups;
  uint64_t id = 0;
  int group = 0;  // in Driver::order
  Stream* legacy = nullptr;
  std::unordered_map<uint64_t, Stream*> per_thread;  // by thread
  std::map<int, uint64_t> limits;
  std::unordered_set<const Context*> peers;  // whose memory of cuMemAlloc this one can use
};

// A memory pool (cuMemAllocAsync). Freed blocks stay in `cached` until the host synchronises. Then bytes beyond
// `release_threshold` are returned to the device.
struct Pool {
  int device = 0;
  bool is_default = false;
  uint64_t max_bytes = 0;
  uint64_t release_threshold = 0;
  uint64_t access = 0;  // a bit for each other device that can use its memory
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  uint64_t reuse[4] = {0, 1, 1, 1};  // by CUmemPool_attribute, CU_MEMPOOL_ATTR_REUSE_…
  struct Cached {
    uint64_t base;
    int stream;    // the freeing one's number in Driver::order; -1: none, cuMemFree
    Clock moment;  // of that stream
  };
  std::multimap<uint64_t, Cached> cached;  // by reserved size
};

struct Device {
  int ordinal = 0;
  Physical physical;
  Context* primary = nullptr;
  int primary_retains = 0;
  unsigned primary_flags = 0;
  Pool default_pool;
  Pool* pool = nullptr;
  // In virtual time: when each copy engine has done its work so far. An engine does it in the order of submission.
  uint64_t copies_in_free = 0, copies_out_free = 0;
};

// What captures forbid: as before SIMGPU_CAPTURES existed; what the documentation forbids; also each call that may be
// "potentially unsafe" (cuda.h, cuThreadExchangeStreamCaptureMode), which the documentation does not list.
enum class CaptureRule : uint8_t { kLenient, kDocumented, kStrict };

// Which calls need a current context: none, those whose documentation says so, also those of virtual memory.
enum class ContextRule : uint8_t { kNone, kDocumented, kStrict };

struct Driver {
  std::mutex mutex;
  std::vector<Device> devices;
  Order order;
  MemoryMap memory;
  Written written;
  const bool keep_values;          // no write is forgotten: `written` stays empty
  const bool drop_large;           // writes of kLargeWrite and more leave zeros in device memory
  const bool peers;                // devices can use each other's memory
  const bool check_access;         // ... and are held to it (peer.h)
  const ContextRule context_rule;  // which calls for memory need a current context
  const CaptureRule capture_rule;  // which calls a capture forbids
  Checker checker;
  std::unordered_set<Context*> contexts;
  std::unordered_set<Stream*> streams;
  std::unordered_set<Event*> events;
  std::unordered_set<Pool*> pools;
  std::unordered_set<Pool*> ended_pools;  // destroyed; blocks are still in use, or their release may still run
  std::unordered_map<Handle*, std::unique_ptr<Handle>> handles;
  std::unordered_map<Library*, std::unique_ptr<Library>> libraries;  // modules too
  std::unordered_set<Kernel*> kernels;
  std::unordered_map<Graph*, std::unique_ptr<Graph>> graphs;
  std::unordered_map<GraphExec*, std::unique_ptr<GraphExec>> graph_execs;
  std::unordered_map<UserObject*, std::unique_ptr<UserObject>> user_objects;
  std::vector<std::weak_ptr<Capture>> captures;
  uint64_t next_id = 1;
  uint64_t compute_free = 0;  // in virtual time, if kernels run one at a time

  Driver();
  ~Driver();
  uint64_t NextId() { return next_id++; }
};

Driver& TheDriver();  // made at the first call, never destroyed

// The meaning of the NULL stream in a call: of the plain entry points, or of those with _ptsz and _ptds.
enum class DefaultStream : uint8_t { kLegacy, kPerThread };

// The calling thread's stack of contexts. Trivial, so that it works while the thread's other objects are destroyed.
struct ContextStack {
  static constexpr int kMax = 256;
  Context* contexts[kMax];
  int size;
};
ContextStack& ThreadContexts();
bool PushContext(Context* context);  // false: too many
Context* PopContext();               // null: none
Context* CurrentContext();
CUresult NoContextError();  // of a call in a thread without a context, or with one that has ended
Context* CreateContext(Driver& d, int device, unsigned flags);
void DestroyContext(Driver& d, Context* context);  // frees its blocks
// The context that owns what is allocated with `context` current: a green one's parent.
inline Context* OwnerOf(Context* context) { return context->parent != nullptr ? context->parent : context; }
// Calls visit(group) for the context, and for its green ones, ended ones too: what holds for a primary one holds for
// them (cuda.h, cuCtxSynchronize, cuCtxRecordEvent).
template <typename Visit>
void ForFamily(const Context& context, Visit visit) {
  visit(context.group);
  for (const int group : context.green_groups) visit(group);
}
Context* RetainPrimary(Driver& d, int device);
void ReleasePrimary(Driver& d, int device);  // it is retained
void ForgetPrimary(Driver& d, int device);   // its primary context is about to end, and its blocks there with it

CUresult FindStream(Driver& d, CUstream handle, DefaultStream variant, Stream** stream);
Stream* CreateStream(Driver& d, Context* context, unsigned flags, int priority, StreamKind kind);

// Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a capture that forbids unsafe calls (cuMemAlloc, …) concerns this
// thread. The capture is then invalid (cuStreamBeginCapture, CUstreamCaptureMode).
CUresult CheckUnsafeCall(Driver& d);
// The same for calls of which the documentation leaves open whether they are unsafe. SIMGPU_CAPTURES=strict: they are.
CUresult CheckStrictlyUnsafeCall(Driver& d);
// Returns the error of work for the stream, a wait for it or a query of it: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for a
// legacy stream while a blocking stream of its context captures; those captures are then invalid, whatever their modes
// and threads (CUDA programming guide, "Prohibited and unhandled operations"). CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
// for a stream of an invalid capture.
CUresult CheckStreamUse(Driver& d, Stream* stream);
bool AnyCapture(Driver& d, Context* context);
// Invalidates every capture with a stream of the context, whatever its mode and thread. Returns false if there is none.
bool InvalidateCaptures(Driver& d, Context* context);

// Host synchronisations.
void HostSawFamily(Driver& d, const Context* context);
void HostSawContext(Driver& d, Context* context);
void TrimPools(Driver& d);  // after each: returns freed pool memory beyond the threshold

// Memory.
// Trim pools if necessary; null: out of memory. AllocateIn: on a device other than the context's.
Allocation* AllocateOnDevice(Driver& d, Context* context, uint64_t bytes);
Allocation* AllocateIn(Driver& d, int device, Context* context, uint64_t bytes);
// Gives a block back to its pool. `stream`: the freeing one; null: cuMemFree, which orders nothing.
CUresult FreeToPool(Driver& d, Allocation* allocation, Stream* stream);
// Called when the device is out of memory: returns all that its pools keep. The driver waits for the freeing streams.
void EmptyPools(Driver& d, int device);
// Returns the pool's blocks that the host knows to be free, until at most `keep` bytes are reserved.
void TrimPool(Driver& d, Pool* pool, uint64_t keep);

// Copies and sets bytes now; the checker knows already. CUDA_ERROR_INVALID_VALUE where there is no memory.
CUresult MoveBytes(Driver& d, uint64_t to, uint64_t from, uint64_t bytes);
// The effect on bytes of kernels and of calls of shimmed libraries: see written.h. A kernel got this address; a library
// wrote this range.
void HandedToKernel(Driver& d, uint64_t address);
void WrittenByLibrary(Driver& d, uint64_t address, uint64_t bytes);
CUresult FillBytes(Driver& d, uint64_t to, const void* pattern, unsigned pattern_bytes, uint64_t bytes);

}  // namespace simgpu
