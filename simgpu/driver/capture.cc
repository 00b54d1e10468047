// Stream capture.
#include <algorithm>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void Forget(Driver& d, const Capture* done) {
  for (Stream* stream : d.streams) {
    if (stream->capture.get() == done) stream->capture = nullptr;
  }
  std::erase_if(d.captures, [&](const std::weak_ptr<Capture>& c) { return c.expired() || c.lock().get() == done; });
}

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamBeginCapture);
  SIMGPU_STREAM(stream, handle, variant);
  if (stream == stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->context = stream->context;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = ThreadNumber();
  capture->id = d.NextId();
  stream->capture = capture;
  d.captures.push_back(capture);
  return CUDA_SUCCESS;
}

CUresult End(CUstream handle, CUgraph* result, DefaultStream variant) {
  EndedObjects ended;
  SIMGPU_ENTER(cuStreamEndCapture);
  SIMGPU_STREAM(stream, handle, variant);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *result = nullptr;
  std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != ThreadNumber()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  Forget(d, capture.get());
  std::unique_ptr<Graph> graph = std::move(capture->graph);
  if (!capture->valid) {
    FreeGraphMemory(d, std::move(graph->memory));
    Release(d, graph->objects, &ended);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  graph->given_before = d.checker.serial();
  *result = reinterpret_cast<CUgraph>(graph.get());
  d.graphs.emplace(graph.get(), std::move(graph));
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus StatusOf(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

// cuda.h, cuStreamIsCapturing: the legacy stream is unusable while a blocking stream of its context captures.
bool IsBlockedLegacy(const Driver& d, const Stream& stream) {
  if (&stream != stream.context->legacy) return false;
  return std::any_of(d.streams.begin(), d.streams.end(), [&](const Stream* other) {
    const bool blocking = (other->flags & CU_STREAM_NON_BLOCKING) == 0;
    return other->context == stream.context && other->capture != nullptr && blocking;
  });
}

CUresult IsCapturing(CUstream handle, CUstreamCaptureStatus* status, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamIsCapturing);
  SIMGPU_STREAM(stream, handle, variant);
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsBlockedLegacy(d, *stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = StatusOf(*stream);
  return CUDA_SUCCESS;
}

CUresult Info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
              const CUgraphNode** dependencies, size_t* count, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamGetCaptureInfo);
  SIMGPU_STREAM(stream, handle, variant);
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsBlockedLegacy(d, *stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = StatusOf(*stream);
  const bool active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id != nullptr && active) *id = stream->capture->id;
  if (graph != nullptr) *graph = active ? reinterpret_cast<CUgraph>(stream->capture->graph.get()) : nullptr;
  static thread_local CUgraphNode last = nullptr;
  last = active && !stream->capture->graph->nodes.empty()
             ? reinterpret_cast<CUgraphNode>(stream->capture->graph->nodes.back().get())
             : nullptr;
  if (dependencies != nullptr) *dependencies = last == nullptr ? nullptr : &last;
  if (count != nullptr) *count = last == nullptr ? 0 : 1;
  return CUDA_SUCCESS;
}

}  // namespace

bool AnyCapture(Driver& d, Context* context) {
  std::erase_if(d.captures, [](const std::weak_ptr<Capture>& c) { return c.expired(); });
  return std::any_of(d.captures.begin(), d.captures.end(), [&](const std::weak_ptr<Capture>& c) {
    const Context* capturing = c.lock()->context;
    return capturing == context || capturing->parent == context;
  });
}

bool InvalidateCaptures(Driver& d, Context* context) {
  bool any = false;
  for (Stream* stream : d.streams) {
    if (stream->context != context || stream->capture == nullptr) continue;
    stream->capture->valid = false;
    any = true;
  }
  return any;
}

// cuda.h, cuThreadExchangeStreamCaptureMode: a global capture forbids unsafe calls to every thread whose own mode is
// global; a thread-local one to its own thread, unless that thread's mode is relaxed.
CUresult CheckUnsafeCall(Driver& d) {
  if (d.captures.empty() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const std::weak_ptr<Capture>& weak : d.captures) {
    const std::shared_ptr<Capture> capture = weak.lock();
    if (capture == nullptr || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool mine = capture->thread == ThreadNumber();
    const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !global) continue;
    capture->valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult CheckStrictlyUnsafeCall(Driver& d) {
  return d.capture_rule == CaptureRule::kStrict ? CheckUnsafeCall(d) : CUDA_SUCCESS;
}

CUresult CheckStreamUse(Driver& d, Stream* stream) {
  if (d.captures.empty() || d.capture_rule == CaptureRule::kLenient) return CUDA_SUCCESS;
  if (stream->capture != nullptr) return stream->capture->valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!IsBlockedLegacy(d, *stream)) return CUDA_SUCCESS;
  for (Stream* other : d.streams) {
    const bool blocking = (other->flags & CU_STREAM_NON_BLOCKING) == 0;
    if (other->context == stream->context && other->capture != nullptr && blocking) other->capture->valid = false;
  }
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

SIMGPU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIMGPU_ENTER(cuThreadExchangeStreamCaptureMode);
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamBeginCapture(CUstream stream) { return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kLegacy); }
SIMGPU_API cuStreamBeginCapture_ptsz(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, kPerThread);
}
SIMGPU_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { return Begin(stream, mode, kLegacy); }
SIMGPU_API cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode, kPerThread);
}
SIMGPU_API cuStreamEndCapture(CUstream stream, CUgraph* graph) { return End(stream, graph, kLegacy); }
SIMGPU_API cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) { return End(stream, graph, kPerThread); }
SIMGPU_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return IsCapturing(stream, status, kLegacy);
}
SIMGPU_API cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return IsCapturing(stream, status, kPerThread);
}
SIMGPU_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Info(stream, status, id, nullptr, nullptr, nullptr, kLegacy);
}
SIMGPU_API cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Info(stream, status, id, nullptr, nullptr, nullptr, kPerThread);
}
SIMGPU_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                     const CUgraphNode** dependencies, size_t* count) {
  return Info(stream, status, id, graph, dependencies, count, kLegacy);
}
SIMGPU_API cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return Info(stream, status, id, graph, dependencies, count, kPerThread);
}
SIMGPU_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                     const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return Info(stream, status, id, graph, dependencies, count, kLegacy);
}
SIMGPU_API cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** dependencies,
                                          const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return Info(stream, status, id, graph, dependencies, count, kPerThread);
}

}  // namespace simgpu
