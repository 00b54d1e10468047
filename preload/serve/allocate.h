// What the hooks and hotpack_malloc do once they know what is asked for: find the arena, apply the policies, ask the
// engine. None throws, exits or prints.
#pragma once

#include "preload/streams/stream_order.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

// The arena of `context`, made if there is none yet. Null: no driver, no context, or no room.
ContextArena* ArenaFor(CUcontext context);

// cuMemAlloc and its like: for the current context, usable on any stream. False: left to the driver (and counted).
bool Allocate(uint64_t bytes, DeviceAddress* address);

// cuMemAllocAsync and its like: for the context of `stream`. False on a capturing stream (the driver makes a graph
// node), or left to the driver for another reason.
// `for_graphs`: false if a graph that is being captured, on another stream, never uses the block.
bool AllocateAsync(uint64_t bytes, CUstream stream, DeviceAddress* address, bool for_graphs = true);

// Counts an allocation request that is left to the driver.
void NotePassedThrough();

// A release of `address` that may be ours. `stream`, `kind`: as in StreamOrder::Release. False: not ours, the driver's
// business; also a cuMemFreeAsync on a capturing stream (it must name a graph allocation, which ours are not).
bool Release(DeviceAddress address, CUstream stream, CUresult* result, ReleaseKind kind = ReleaseKind::kOrdered);

// The end of a context, around the driver's call that brings it: while it lives no arena is made for the context.
class ContextEnd {
 public:
  explicit ContextEnd(CUcontext context) : context_(context) { Arenas().BeginEnd(context_); }
  ~ContextEnd() { Arenas().FinishEnd(context_); }
  ContextEnd(const ContextEnd&) = delete;
  ContextEnd& operator=(const ContextEnd&) = delete;

  // Before the driver is asked: waits for the context's work, and nobody waits for the context from here on.
  void Prepare();
  // The driver refused: the context lives on with all its blocks.
  void Cancel();
  // The context's blocks become unknown and its device memory goes back to the driver. `alive`: it still can be used.
  void Retire(bool alive);

 private:
  const CUcontext context_;
  bool told_ = false;  // collectors know that a recording may close
};

}  // namespace hotpack
