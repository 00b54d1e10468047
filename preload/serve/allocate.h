// What the hooks and hotpack_malloc do with a request: find the arena, apply the policies, call the engine. No function
// throws, exits or prints.
#pragma once

#include "preload/streams/stream_order.h"
#include "runtime/process/arena_table.h"

namespace hotpack {

// Returns the arena of `context`; makes it if needed. Null: no driver, no context, or out of memory.
ContextArena* ArenaFor(CUcontext context);

// cuMemAlloc and similar calls: allocates in the current context, for any stream. Returns false if the request is left
// to the driver (and counted).
bool Allocate(uint64_t bytes, DeviceAddress* address);

// cuMemAllocAsync and similar calls: allocates in the context of `stream`. Returns false on a capturing stream, where
// the driver makes a graph node, or if the request is left to the driver for another reason. `for_graphs`: false if no
// graph that is being captured on another stream uses the block.
bool AllocateAsync(uint64_t bytes, CUstream stream, DeviceAddress* address, bool for_graphs = true);

// Counts an allocation request that is left to the driver.
void NotePassedThrough();

// Releases `address` if it belongs to an arena. `stream`, `kind`: as in StreamOrder::Release. Returns false if the
// driver has to do it. That includes a cuMemFreeAsync on a capturing stream: it must name a graph allocation, which
// hotpack's blocks are not.
bool Release(DeviceAddress address, CUstream stream, CUresult* result, ReleaseKind kind = ReleaseKind::kOrdered);

// Encloses the driver call that ends a context. While it lives, no arena is made for the context.
class ContextEnd {
 public:
  explicit ContextEnd(CUcontext context) : context_(context) { Arenas().BeginEnd(context_); }
  ~ContextEnd() { Arenas().FinishEnd(context_); }
  ContextEnd(const ContextEnd&) = delete;
  ContextEnd& operator=(const ContextEnd&) = delete;

  // Call before the driver call. Waits for the context's work. From then on no thread waits for the context.
  void Prepare();
  // Call if the driver refused: the context stays, with all its blocks.
  void Cancel();
  // Forgets the context's blocks and gives its device memory back to the driver. `alive`: the context is still usable.
  void Retire(bool alive);

 private:
  const CUcontext context_;
  bool told_ = false;  // collectors were told that a recording may close
};

}  // namespace hotpack
