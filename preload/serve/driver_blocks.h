// Blocks of hotpack_malloc that the driver serves. Reasons: hotpack is off or records, the arena is full, the job never
// repeats, or the order that a request needs is not possible now. Callers rely on the rules of arena blocks
// (hotpack_free_pooled, hotpack_record_use), which the driver's pools do not know. Hence:
//
// 1. Each stream has a driver pool of its own. Memory released on a stream goes to no other stream.
// 2. A pooled release is kept from the driver, since unnamed streams may still use the block. (A driver that runs out
//    of memory takes its pools' idle memory as soon as the releasing stream is done with it.) The stream's next request
//    of about that size gets the block. The driver gets it after the host has waited for all work.
// 3. A block's other users are recorded. At its release the stream waits for them before the driver gets the block.
// 4. On a capturing stream the driver's pool would make a graph node, which is no memory that a program may keep. Such
//    a block comes from cuMemAlloc. It returns by cuMemFree when no capture is active.
//    So do all blocks where a program without hooks may copy between devices that cannot access each other's memory.
// 5. No capture begins in the middle of a release, where it is announced or hooks see it begin. Otherwise a stream that
//    was found not capturing could be captured when it gets its event, and the releasing stream would join the graph.
//    Without hooks the driver's call that begins it comes some time after the announcement. So from there on a release
//    that needs a driver call waits for the end of all captures.
// 6. A pool ends with its context, as streams do. Its idle blocks outlive it until a thread with a context can give
//    them back: the driver's pools are a device's.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/streams/stream_order.h"
#include "runtime/memory/cuda_driver.h"

namespace hotpack {

// Thread-safe. mutex_ is held across the creation of a pool and across no other driver call. May throw bad_alloc.
class DriverBlocks {
 public:
  // Allocates `bytes` for work on `stream` in the current context. Returns the driver's result.
  CUresult Allocate(const CudaDriver& driver, CUdeviceptr* address, size_t bytes, CUstream stream);
  // Gives the block back on `stream`. Addresses of other blocks pass through to the driver.
  CUresult Free(const CudaDriver& driver, CUdeviceptr address, CUstream stream, ReleaseKind kind);
  // Records that work on `stream` uses the block that starts at `address`. Returns false if there is none.
  bool RecordUse(CUdeviceptr address, CUstream stream);
  // Gives the pools' idle memory back to the device, and waits for the device. Does nothing while waiting is not
  // possible. Returns whether there was any.
  bool Trim(const CudaDriver& driver);
  // Returns the bytes of released blocks that the driver does not know of yet, over all devices.
  uint64_t IdleBytes() const { return idle_bytes_.load(std::memory_order_relaxed); }
  // While the result lives, no release is under way. For hooks that begin a capture, also where hotpack is off, and
  // for announcements of one.
  [[nodiscard]] std::unique_lock<std::mutex> HoldReleases() { return std::unique_lock(giving_back_); }
  // Returns false until the first request came here. Then there is no block to search.
  bool Any() const { return any_.load(std::memory_order_acquire); }

  // The context has ended. Destroys its pools. Live blocks stay the program's: the driver keeps their memory until
  // they are released.
  void ForgetContext(const CudaDriver& driver, CUcontext context);
  void ResetAfterFork();

 private:
  struct Block {
    CUcontext context;
    size_t bytes;
    bool plain;  // of cuMemAlloc
    std::vector<CUstream> users;
  };
  struct Pool {
    CUcontext context;
    CUstream stream;
    CUmemoryPool pool;
    std::multimap<size_t, CUdeviceptr> idle;  // by bytes: released, but not yet to the driver
  };
  struct Waiting {  // until a capture ends
    CUdeviceptr address;
    CUstream stream;
    ReleaseKind kind;
    Block block;
  };
  struct State {
    std::unordered_map<CUdeviceptr, Block> blocks;
    std::vector<Pool> pools;
    std::vector<Waiting> waiting;
    std::vector<std::pair<CUdeviceptr, size_t>> ended;  // idle blocks of pools that have ended, and their bytes
  };

  Pool* FindPool(CUcontext context, CUstream stream);
  CUmemoryPool PoolOf(const CudaDriver& driver, CUcontext context, CUstream stream);
  CUresult Ask(const CudaDriver& driver, CUdeviceptr* address, CUstream stream, Block* block);
  bool TakeIdle(CUdeviceptr* address, CUstream stream, Block* block);
  bool KeepIdle(CUdeviceptr address, CUstream stream, const Block& block);
  bool GiveBack(const CudaDriver& driver, CUdeviceptr address, CUstream stream, ReleaseKind kind, const Block& block,
                CUresult* result);
  bool WaitForUsers(const CudaDriver& driver, const Block& block, CUstream stream);
  bool WaitFor(const CudaDriver& driver, CUcontext context, CUstream user, CUstream stream);
  std::vector<CUcontext> Contexts();
  bool GiveBackIdle(const CudaDriver& driver, const Pool& pool, size_t bytes, CUdeviceptr address);
  void GiveBackWaiting(const CudaDriver& driver);
  bool GiveBackEnded(const CudaDriver& driver);
  State& Get();

  std::atomic<bool> any_{false};
  std::atomic<size_t> waiting_count_{0}, ended_count_{0};
  std::atomic<uint64_t> idle_bytes_{0};
  // Locked before mutex_. Held while the host waits, so that another thread's request finds the returned memory.
  std::mutex trimming_;
  std::mutex giving_back_;  // locked before mutex_; held across the driver calls of a release
  std::mutex mutex_;
  State* state_ = nullptr;
};

// The one of the process. Nothing is destroyed at exit.
extern DriverBlocks process_driver_blocks;
inline DriverBlocks& BlocksOfDriver() { return process_driver_blocks; }

}  // namespace hotpack
