// Private pools: memory that a captured graph (torch.cuda.graph) or a torch.cuda.MemPool keeps to itself.
//
// A graph's kernels have addresses in them, so what was given during its capture must belong to nobody else as long as
// the graph may be launched; the capture itself may give and take the same memory again and again, in captured order.
// So each pool has segments of its own from the driver (cuMemAlloc, which is allowed while a stream is capturing if the
// thread's capture mode is relaxed), serves requests from them by best fit, on the stream that had the memory before,
// and gives them back when PyTorch has released the pool and the last of its blocks. Nothing here is planned: it is
// asked for once.
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
using StreamFilter = std::function<bool(void*)>;                   // which streams' requests go to the pool

// Of segments beside the arena. (Under the preload the driver's function is hooked, and they lie in it.)
struct PoolBytes {
  uint64_t segments = 0;  // a count
  uint64_t held = 0, held_peak = 0;
};

// Thread-safe. One lock, taken by requests only while some pool is open, by releases only while one has blocks. It is
// held while the filter asks the driver about a stream and while a segment is taken (cuMemAlloc), not while one is
// given back, which waits for the device.
class GraphPools {
 public:
  // Requests on the device whose stream the filter takes come from the pool, until End.
  void Begin(int device, PoolId id, StreamFilter filter);
  void End(int device, PoolId id);
  // PyTorch will not ask for the pool any more (as often as it began).
  void Release(int device, PoolId id);

  // False: no open pool wants the request. Else *pointer is the block, null if the device has no memory.
  bool Allocate(int device, size_t bytes, void* stream, void** pointer) {
    return open_count_.load(std::memory_order_acquire) != 0 && AllocateInOpen(device, bytes, stream, pointer);
  }
  // False: no block of a pool.
  bool Free(void* pointer, void* stream) {
    return block_count_.load(std::memory_order_acquire) != 0 && FreeBlock(pointer, stream);
  }
  // The block is used on another stream than its own: its memory is kept until its pool goes. False: no block of a
  // pool.
  bool RecordUse(void* pointer) { return block_count_.load(std::memory_order_acquire) != 0 && NoteUse(pointer); }

  // While a pool is open, a release on a stream that is capturing, of a block that is no pool's, is put aside until no
  // pool is open. False: it is none.
  bool Defer(void* pointer, size_t bytes, int device, void* stream);

  PoolBytes Bytes(int device) const;
  void ResetPeak(int device);
  std::vector<hotpack_torch_segment> Segments(int device) const;
  // Start and bytes of the block that begins at `pointer`. False: none of a pool does.
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
    bool announced;  // hotpack has been told that a stream may be capturing
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
  std::vector<uint64_t> TakeIdle(Pool* pool);  // segments to give back
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

// The process's; never destroyed, since blocks come back until the very end.
GraphPools& Pools();

}  // namespace hotpack_torch
