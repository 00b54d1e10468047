// The hooks that inform StreamOrder: streams that end, captures that begin and end. (The work hooks see new streams at
// their first use.)
#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/driver_blocks.h"
#include "preload/streams/graph_memory.h"
#include "preload/streams/stream_order.h"

using hotpack::HookScope;
using hotpack::Order;

namespace {

CUstream PerThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

CUcontext Current() {
  const hotpack::CudaDriver* driver = hotpack::Driver();
  return driver != nullptr ? hotpack::CurrentContext(*driver) : nullptr;
}

// A stream with a handle is identified by the handle, a thread's default stream also by the context.
void EndGraphMemory(CUstream stream, CUgraph graph) {
  hotpack::GraphBlocks().End(stream == CU_STREAM_PER_THREAD ? Current() : nullptr, hotpack::StreamKey(stream), graph);
}

// begin() -> CUresult calls the driver.
template <typename Begin>
CUresult BeginCapture(CUstream stream, Begin begin) {
  HookScope scope;
  if (HookScope::Nested()) return begin();
  const auto begin_between_releases = [&begin] {
    const auto hold = hotpack::BlocksOfDriver().HoldReleases();
    return begin();
  };
  if (!scope.Active()) return begin_between_releases();  // hotpack is off, but blocks of hotpack_malloc are released
  try {
    Order().BeginCapture(stream);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;  // host memory: no capture has begun
  }
  const CUresult result = begin_between_releases();
  if (result != CUDA_SUCCESS) {
    Order().CancelCapture();
    return result;
  }
  try {
    const CUcontext context = Current();
    hotpack::GraphBlocks().Begin(context, hotpack::StreamKey(stream));
    Order().CaptureBegan(context, stream);
  } catch (...) {
    // Not recorded: the capture counts as active for ever. That is slow, since releases stay in quarantine, but
    // correct.
  }
  return result;
}

// end() -> CUresult calls the driver. An error can also end a capture (invalidated, unjoined), so the stream is
// queried.
template <typename End>
CUresult EndCapture(CUstream stream, CUgraph* graph, End end) {
  HookScope scope;
  const CUresult result = end();
  if (!scope.Active()) return result;
  try {
    const bool over = result == CUDA_SUCCESS || !Order().IsCapturing(stream);
    if (over) EndGraphMemory(stream, result == CUDA_SUCCESS && graph != nullptr ? *graph : nullptr);
    Order().CaptureMayHaveEnded(stream, over);
  } catch (...) {
  }
  return result;
}

template <typename Destroy>
CUresult DestroyStream(CUstream stream, Destroy destroy) {
  HookScope scope;
  if (scope.Active()) Order().DestroyStream(stream);
  const CUresult result = destroy();
  if (!scope.Active() || result != CUDA_SUCCESS) return result;
  try {
    EndGraphMemory(stream, nullptr);
    Order().CaptureMayHaveEnded(stream, true);
  } catch (...) {
  }
  return result;
}

}  // namespace

CUresult Hook_cuStreamDestroy(CUstream stream) {
  return DestroyStream(stream, [=] { return HOTPACK_NEXT(cuStreamDestroy)(stream); });
}

CUresult Hook_cuStreamDestroy_v2(CUstream stream) {
  return DestroyStream(stream, [=] { return HOTPACK_NEXT(cuStreamDestroy_v2)(stream); });
}

CUresult Hook_cuStreamBeginCapture(CUstream stream) {
  return BeginCapture(stream, [=] { return HOTPACK_NEXT(cuStreamBeginCapture)(stream); });
}

CUresult Hook_cuStreamBeginCapture_ptsz(CUstream stream) {
  return BeginCapture(PerThread(stream), [=] { return HOTPACK_NEXT(cuStreamBeginCapture_ptsz)(stream); });
}

CUresult Hook_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return BeginCapture(stream, [=] { return HOTPACK_NEXT(cuStreamBeginCapture_v2)(stream, mode); });
}

CUresult Hook_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return BeginCapture(PerThread(stream), [=] { return HOTPACK_NEXT(cuStreamBeginCapture_v2_ptsz)(stream, mode); });
}

CUresult Hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return BeginCapture(stream, [=] {
    return HOTPACK_NEXT(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, count, mode);
  });
}

CUresult Hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                               const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return BeginCapture(PerThread(stream), [=] {
    return HOTPACK_NEXT(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, dependencies, edges, count, mode);
  });
}

CUresult Hook_cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return EndCapture(stream, graph, [=] { return HOTPACK_NEXT(cuStreamEndCapture)(stream, graph); });
}

CUresult Hook_cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return EndCapture(PerThread(stream), graph, [=] { return HOTPACK_NEXT(cuStreamEndCapture_ptsz)(stream, graph); });
}

// Deprecated, and the only launch that names streams in an array.
CUresult Hook_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned int count,
                                                   unsigned int flags) {
  HookScope scope;
  for (unsigned int i = 0; scope.Active() && launches != nullptr && i < count; ++i) {
    if (reinterpret_cast<uintptr_t>(launches[i].hStream) <= 2) continue;
    try {
      Order().FirstUse(launches[i].hStream);
    } catch (...) {
    }
  }
  return HOTPACK_NEXT(cuLaunchCooperativeKernelMultiDevice)(launches, count, flags);
}
