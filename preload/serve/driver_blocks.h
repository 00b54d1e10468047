// Blocks of hotpack_malloc that the driver serves: hotpack is off or records, the arena is full, the job never repeats,
// or an order that a request needs is not possible now. Their callers rely on the same as those of an arena's blocks
// (hotpack_free_pooled, hotpack_record_use), of which the driver's pools know nothing:
//
//   - Each stream has a pool of the driver's own to itself. What is released on it is given to no other stream.
//   - A pooled release is kept from the driver, since streams that nobody has named may still be using the block: a
//     driver that runs out of memory takes what its pools have idle, as soon as the stream of the release is done with
//     it. The stream's next request of about that size gets the block. The driver gets it after the host has waited for
//     all work.
//   - A block's other users are remembered. At its release the stream waits for them before the driver is told.
//   - On a capturing stream the driver's pool would make a graph node, which is no memory that a program may keep. Such
//     a block comes from cuMemAlloc, and goes back by cuMemFree when no capture is active.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "preload/streams/stream_order.h"
#include "runtime/memory/cuda_driver.h"

namespace hotpack {

// Thread-safe. mutex_ is held while a pool is made, and across no other driver call. May throw bad_alloc.
class DriverBlocks {
 public:
  // `bytes` for work on `stream`, in the current context. The driver's answer.
  CUresult Allocate(const CudaDriver& driver, CUdeviceptr* address, size_t bytes, CUstream stream);
  // Gives the block back on `stream`. An address that is none of these blocks is handed on to the driver.
  CUresult Free(const CudaDriver& driver, CUdeviceptr address, CUstream stream, ReleaseKind kind);
  // Work on `stream` uses the block that starts at `address`. False: there is none.
  bool RecordUse(CUdeviceptr address, CUstream stream);
  // Gives the idle memory of the pools back to the device. Waits for it; does nothing while that is not possible.
  // Returns whether there was any.
  bool Trim(const CudaDriver& driver);
  // Bytes of released blocks that the driver has not been told of, of all devices.
  uint64_t IdleBytes() const { return idle_bytes_.load(std::memory_order_relaxed); }
  // False as long as no request came here: then there is nothing to look for.
  bool Any() const { return any_.load(std::memory_order_acquire); }

  void ForgetContext(CUcontext context);
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
    std::multimap<size_t, CUdeviceptr> idle;  // by bytes: released, and not told to the driver
  };
  struct Waiting {  // for the end of a capture
    CUdeviceptr address;
    CUstream stream;
    ReleaseKind kind;
    Block block;
  };
  struct State {
    std::unordered_map<CUdeviceptr, Block> blocks;
    std::vector<Pool> pools;
    std::vector<Waiting> waiting;
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
  void GiveBackWaiting(const CudaDriver& driver);
  State& Get();

  std::atomic<bool> any_{false};
  std::atomic<size_t> waiting_count_{0};
  std::atomic<uint64_t> idle_bytes_{0};
  std::mutex trimming_;  // before mutex_; held while the host waits: another thread's request finds what was given back
  std::mutex mutex_;
  State* state_ = nullptr;
};

// The process's. Nothing to destroy at exit.
extern DriverBlocks process_driver_blocks;
inline DriverBlocks& BlocksOfDriver() { return process_driver_blocks; }

}  // namespace hotpack
