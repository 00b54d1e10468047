// Blocks that a graph may name: allocated during a capture. They are kept, released or not, until the graph and what
// was made from it are gone; the graph would otherwise write into memory that has another owner. A thread that has
// begun a capture allocates for that one; any other, such as a framework's thread for the backward pass, for all that
// are active.
//
// Who says so is the driver: a user object of the graph (cuGraphRetainUserObject) is destroyed when the graph, its
// clones and their executables are, and the last launch has ended.
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

  // A capture of the calling thread has begun, on the stream of this key (StreamKey), with `context` current. (A
  // thread's default streams of several contexts have one key.)
  void Begin(CUcontext context, uint64_t stream);
  // The calling thread has allocated a block: if a capture is active, the graph will keep it.
  void Allocated(ContextArena* arena, DeviceAddress address) {
    if (active_.load(std::memory_order_relaxed) != 0) NoteAllocated(arena, address);
  }
  // The capture has ended; `graph`: what came of it, null if nothing did. `context`: null where the key is enough.
  void End(CUcontext context, uint64_t stream, CUgraph graph);

  // True: a graph keeps the block, which counts as released from now on (a second release is one too many). *again: it
  // was released before.
  bool Keep(DeviceAddress address, bool* again) {
    return count_.load(std::memory_order_acquire) != 0 && KeepForGraph(address, again);
  }

  // Blocks whose graphs are gone, to be released now. Cheap if there are none.
  std::vector<Block> TakeFreed();
  bool AnyFreed() const { return freed_count_.load(std::memory_order_acquire) != 0; }

  // The context ends, and with it the captures that began in it; blocks of its arena (may be null) are forgotten.
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
  std::atomic<size_t> count_{0};  // of kept_
  std::atomic<size_t> freed_count_{0};
  std::mutex mutex_;
  std::vector<Holder*>* capturing_ = nullptr;
  std::unordered_map<DeviceAddress, Kept>* kept_ = nullptr;
  std::vector<Block>* freed_ = nullptr;
};

// The process's. Like StreamOrder's: nothing to destroy at exit.
extern GraphMemory process_graph_memory;
inline GraphMemory& GraphBlocks() { return process_graph_memory; }

}  // namespace hotpack
