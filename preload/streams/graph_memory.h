// Blocks that a graph may name, because they were allocated during a capture. Otherwise the graph would write into
// memory that has another owner.
//
// 1. Such a block is kept, released or not, until the graph, its clones, their executables and their last launch are
//    gone. The driver reports that by destroying a user object of the graph (cuGraphRetainUserObject).
// 2. A thread that began a capture allocates for that capture. Any other thread, such as a framework's for the backward
//    pass, allocates for all active captures.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/process/arena_table.h"

namespace hotpack {

// Thread-safe; no lock is held across a driver call.
class GraphMemory {
 public:
  struct Block {
    ContextArena* arena;
    DeviceAddress address;
  };

  // Notes that the calling thread has begun a capture, on the stream of this key (StreamKey), with `context` current.
  // A thread's default streams of several contexts have one key.
  void Begin(CUcontext context, uint64_t stream);
  // Notes a block that the calling thread has allocated. If a capture is active, its graph will keep the block.
  void Allocated(ContextArena* arena, DeviceAddress address) {
    if (active_.load(std::memory_order_relaxed) != 0) NoteAllocated(arena, address);
  }
  // Ends the capture. `graph`: its result, null if there is none. `context`: null where the key is enough.
  void End(CUcontext context, uint64_t stream, CUgraph graph);

  // Returns true if a graph keeps the block, which counts as released from then on. *again: it had been released
  // before, so this release is one too many.
  bool Keep(DeviceAddress address, bool* again) {
    return count_.load(std::memory_order_acquire) != 0 && KeepForGraph(address, again);
  }

  // Returns the blocks whose graphs are gone, for release now. Cheap if there are none.
  std::vector<Block> TakeFreed();
  bool AnyFreed() const { return freed_count_.load(std::memory_order_acquire) != 0; }

  // Ends the context and the captures that began in it. Blocks of its arena (may be null) are forgotten.
  void ForgetContext(CUcontext context, const ContextArena* arena);
  void ResetAfterFork();

 private:
  struct Holder {
    GraphMemory* owner = nullptr;
    CUcontext context = nullptr;  // this and the next line: while capturing
    uint64_t thread = 0, stream = 0;
    std::vector<Block> blocks;
  };
  struct Kept {
    std::vector<Holder*> holders;
    bool released = false;
  };
  void NoteAllocated(ContextArena* arena, DeviceAddress address);
  bool KeepForGraph(DeviceAddress address, bool* again);
  template <typename Matches>
  Holder* TakeCapture(Matches matches);
  void Free(Holder* holder);
  static void CUDA_CB GraphIsGone(void* holder);

  std::atomic<int> active_{0};
  std::atomic<size_t> count_{0};  // entries of kept_
  std::atomic<size_t> freed_count_{0};
  std::mutex mutex_;
  std::vector<Holder*>* capturing_ = nullptr;
  std::unordered_map<DeviceAddress, Kept>* kept_ = nullptr;
  std::vector<Block>* freed_ = nullptr;
};

// The one of the process. As with StreamOrder, nothing is destroyed at exit.
extern GraphMemory process_graph_memory;
inline GraphMemory& GraphBlocks() { return process_graph_memory; }

}  // namespace hotpack
