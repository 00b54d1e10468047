// Private pools: memory that a captured graph (torch.cuda.graph) or a torch.cuda.MemPool keeps to itself.
//
// A graph's kernels contain addresses. Memory given during its capture must have no other owner as long as the graph
// may be launched. The capture itself may free and reuse the same memory, in captured order. Hence:
//
// 1. Each pool has its own segments from the driver (cuMemAlloc, allowed while a stream is capturing if the thread's
//    capture mode is relaxed).
// 2. It serves requests from them by best fit, on the stream that had the memory before.
// 3. It returns the segments when PyTorch has released the pool and the last of its blocks.
// 4. Nothing here is planned, because it is requested only once.
//
//   segment   [ block, stream 7 | free, stream 7 | block, stream 7 |      free, fresh      ]
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/torch/hotpack_torch.h"

namespace hotpack_torch {

using PoolId = std::pair<unsigned long long, unsigned long long>;  // c10::cuda::MempoolId_t
using StreamFilter = std::function<bool(void*)>;  // returns true for streams whose requests go to the pool

// Segments outside the arena. (Under the preload the driver's function is hooked, and they lie inside the arena.)
struct PoolBytes {
  uint64_t segments = 0;  // a count
  uint64_t held = 0, held_peak = 0;
};

// Thread-safe, with one lock. Requests take it only while a pool is open, releases only while a pool has blocks. It is
// held while the filter asks the driver about a stream and while a segment is allocated (cuMemAlloc). It is not held
// while a segment is returned, which waits for the device.
class GraphPools {
 public:
  // From Begin to End the pool serves the device's requests whose stream the filter accepts.
  void Begin(int device, PoolId id, StreamFilter filter);
  void End(int device, PoolId id);
  // PyTorch no longer uses the pool. Called as often as Begin.
  void Release(int device, PoolId id);

  // Returns false if no open pool serves the request. Else *pointer is the block, null if the device is out of memory.
  bool Allocate(int device, size_t bytes, void* stream, void** pointer) {
    return open_count_.load(std::memory_order_acquire) != 0 && AllocateInOpen(device, bytes, stream, pointer);
  }
  // Returns false if it is no block of a pool.
  bool Free(void* pointer, void* stream) {
    return block_count_.load(std::memory_order_acquire) != 0 && FreeBlock(pointer, stream);
  }
  // Notes that the block is used on another stream than its own. Its memory is kept until its pool ends. Returns false
  // if it is no block of a pool.
  bool RecordUse(void* pointer) { return block_count_.load(std::memory_order_acquire) != 0 && NoteUse(pointer); }

  // Puts aside a release on a capturing stream, of a block of no pool, until no pool is open. Returns false if it is
  // not such a release.
  bool Defer(void* pointer, size_t bytes, int device, void* stream);

  PoolBytes Bytes(int device) const;
  void ResetPeak(int device);
  std::vector<hotpack_torch_segment> Segments(int device) const;
  // Returns start and bytes of the block that begins at `pointer`. Returns false if no pool has one.
  bool Find(void* pointer, size_t* bytes) const;

 private:
  struct Segment;
  struct Pool;
  struct Piece {  // of a segment, [address, address + bytes)
    uint64_t bytes;
    void* stream;  // last used on; meaningless while fresh
    bool fresh;    // free, and never used
    bool free;
    bool kept;  // used on other streams
  };
  struct Segment {
    int device;
    uint64_t bytes;
    bool counted;  // in bytes_
    uint64_t live = 0;
    std::map<uint64_t, Piece> pieces;  // by address; cover the segment
  };
  struct Pool {
    PoolId id;
    int device;
    int uses = 0;
    std::map<uint64_t, Segment> segments;  // by address
  };
  struct Open {
    Pool* pool;
    StreamFilter filter;
    bool announced;  // hotpack knows that a stream may be capturing
  };
  struct Deferred {
    void* pointer;
    size_t bytes;
    int device;
    void* stream;
  };

  bool AllocateInOpen(int device, size_t bytes, void* stream, void** pointer);
  bool FreeBlock(void* pointer, void* stream);
  bool NoteUse(void* pointer);
  Pool* FindPool(int device, PoolId id);
  void* Take(Pool* pool, uint64_t bytes, void* stream);
  void* Split(Pool* pool, Segment* segment, uint64_t address, uint64_t bytes, void* stream);
  bool Grow(Pool* pool, uint64_t bytes);
  std::vector<uint64_t> TakeIdle(Pool* pool);  // segments to return
  void GiveBack(int device, const std::vector<uint64_t>& segments);
  void EndOne(std::list<Open>::iterator open);

  mutable std::mutex mutex_;
  std::list<Pool> pools_;
  std::list<Open> open_;  // latest first
  std::unordered_map<uint64_t, Pool*> blocks_;
  std::vector<Deferred> deferred_;
  std::unordered_map<int, PoolBytes> bytes_;
  std::atomic<size_t> open_count_{0}, block_count_{0};
};

// The one of the process. Never destroyed, since blocks come back until the very end.
GraphPools& Pools();

}  // namespace hotpack_torch
