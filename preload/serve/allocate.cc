#include "preload/serve/allocate.h"

#include <optional>

#include "preload/collect/collector_load.h"
#include "preload/collect/kernel_table.h"
#include "preload/collect/range_watch.h"
#include "preload/process/current_scope.h"
#include "preload/process/driver_access.h"
#include "preload/serve/arena_factory.h"
#include "preload/serve/driver_blocks.h"
#include "preload/serve/driver_pool_choice.h"
#include "preload/serve/out_of_memory.h"
#include "preload/serve/plan_store.h"
#include "preload/serve/recorder.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/green_contexts.h"

namespace hotpack {
namespace {

// `context` has no arena of its own.
[[gnu::noinline]] ContextArena* ArenaOfOwner(CUcontext context) {
  const CUcontext owner = Greens().OwnerOf(context);
  ContextArena* arena = owner != context ? Arenas().Find(owner) : nullptr;
  return arena != nullptr ? arena : MakeArena(owner);
}

// `for_graphs`: a graph that is being captured may use the block.
[[gnu::always_inline]] inline bool AllocateIn(CUcontext context, uint64_t bytes, CUstream stream, bool for_graphs,
                                              DeviceAddress* address) {
  ContextArena* arena = ArenaFor(context);
  if (arena == nullptr) {
    if (IsRecording()) {
      RecordRequest(context, bytes, stream);
    } else {
      NoteLeftToDriver();
    }
    return false;
  }
  if (stream != kNoStream && arena->engine->service() != Engine::Service::kServe &&
      DriverPoolIsFaster(arena, bytes, stream)) [[unlikely]] {
    arena->engine->NotePassedThrough();
    return false;
  }
  const bool simple = Order().OneStream();
  if (!simple) [[unlikely]] {
    Order().Asked(stream);
    Order().Drain(stream);
  }
  ReuseAfter after;
  EngineStatus status = arena->engine->Allocate(bytes, StreamTag(stream), address, &after);
  if (status == EngineStatus::kOutOfMemory && TrimOtherArenas(arena, bytes)) [[unlikely]] {
    status = arena->engine->Allocate(bytes, StreamTag(stream), address, &after);
  }
  if (status == EngineStatus::kOk) {
    if (Order().OrderReuse(arena, stream, after)) [[likely]] {
      arena->origins.Note(*arena->engine, *address, stream != kNoStream);
      if (!simple && for_graphs) [[unlikely]]
        GraphBlocks().Allocated(arena, *address);
      return true;
    }
    arena->engine->Release(*address, StreamTag(stream), &after);  // this memory is not available now
  }
  // Out of memory too: the driver may still serve it. If not, its error is the right one.
  arena->engine->NotePassedThrough();
  return false;
}

// Handles 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD belong to the current context.
CUcontext ContextOf(const CudaDriver& driver, CUstream stream) {
  CUcontext context = nullptr;
  const bool named = reinterpret_cast<uintptr_t>(stream) > 2 && driver.StreamGetCtx != nullptr;
  if (named && driver.StreamGetCtx(stream, &context) == CUDA_SUCCESS) return context;
  return named ? nullptr : CurrentContext(driver);
}

// Whatever the driver's state (CUDA_ERROR_DEINITIALIZED at exit), a live block of an arena goes back.
bool Answer(EngineStatus status, CUresult* result) {
  *result = status == EngineStatus::kInvalidValue ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  return status != EngineStatus::kNotOurs;
}

[[gnu::noinline]] bool ReleaseOrdered(ContextArena* arena, DeviceAddress address, CUstream stream, CUresult* result,
                                      ReleaseKind kind) {
  // Without hooks the driver is asked about the stream. A default stream is the current context's. In a thread without
  // one it is the block's.
  std::optional<CurrentScope> scope;
  const CudaDriver* driver = kHooksPresent ? nullptr : Driver();
  if (driver != nullptr && reinterpret_cast<uintptr_t>(stream) <= 1 && CurrentContext(*driver) == nullptr) {
    scope.emplace(*driver, arena->context);
  }
  const bool to_graph = kind == ReleaseKind::kOrdered && stream != kNoStream && kHooksPresent;
  if (to_graph && Order().IsCapturing(stream)) return false;
  bool again = false;
  if (GraphBlocks().Keep(address, &again)) {
    *result = again ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    return true;
  }
  if (!Answer(Order().Release(arena, address, stream, kind), result)) return false;
  Order().Drain(stream);
  return true;
}

}  // namespace

ContextArena* ArenaFor(CUcontext context) {
  if (context == nullptr) return nullptr;
  if (ContextArena* arena = Arenas().Find(context)) return arena;
  return ArenaOfOwner(context);
}

bool Allocate(uint64_t bytes, DeviceAddress* address) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const CUcontext context = CurrentContext(*driver);
  return context != nullptr && AllocateIn(context, bytes, kNoStream, true, address);
}

bool AllocateAsync(uint64_t bytes, CUstream stream, DeviceAddress* address, bool for_graphs) {
  const CudaDriver* driver = Driver();
  if (driver == nullptr) return false;
  const CUcontext context = ContextOf(*driver, stream);
  if (context == nullptr) return false;
  // If captures are only announced, private pools serve the capture's requests. Other requests are served as usual.
  if (!Order().ByContexts() && Order().IsCapturing(stream)) {
    NotePassedThrough();
    return false;
  }
  return AllocateIn(context, bytes, stream, for_graphs, address);
}

void NotePassedThrough() {
  const CudaDriver* driver = Driver();
  ContextArena* arena = driver != nullptr ? ArenaFor(CurrentContext(*driver)) : nullptr;
  if (arena != nullptr) {
    arena->engine->NotePassedThrough();
  } else {
    NoteLeftToDriver();
  }
}

bool Release(DeviceAddress address, CUstream stream, CUresult* result, ReleaseKind kind) {
  ContextArena* arena = Arenas().FindOwner(address);
  if (arena == nullptr) {
    // A program in a forked child drops what it has inherited. The driver, which is of no use there, would refuse.
    if (Arenas().Inherited(address)) return Answer(EngineStatus::kOk, result);
    if (IsRecording()) RecordRelease(address, stream);
    return false;
  }
  if (Order().OneStream()) [[likely]]
    return Answer(arena->engine->Release(address, StreamTag(stream)), result);
  return ReleaseOrdered(arena, address, stream, result, kind);
}

void ContextEnd::Prepare() {
  if (Arenas().Find(context_) != nullptr) {
    Order().Synchronize(context_);
    TellClosing();
    told_ = true;
  }
  Order().ForgetContext(context_, nullptr);
}

void ContextEnd::Cancel() { Order().NoteContext(context_); }

void ContextEnd::Retire(bool alive) {
  ContextArena* arena = Arenas().Remove(context_);
  Order().ForgetContext(context_, arena);
  GraphBlocks().ForgetContext(context_, arena);
  if (const CudaDriver* driver = Driver(); driver != nullptr) BlocksOfDriver().ForgetContext(*driver, context_);
  if (IsRecording()) EndRecording(context_);
  ForgetKernels();
  if (arena == nullptr) return;
  if (!told_) TellClosing();
  if (alive) arena->engine->CheckGuards();  // the last chance for blocks that are still live
  arena->engine->Finish();                  // its last figures, its trace, its plan
  ForgetRangesOf(arena->engine);
  arena->engine->Retire();  // a request in progress in another thread gets no page from here on
  ClosePlanStore(context_);
  arena->memory->ReleaseAll(alive);
}

}  // namespace hotpack
