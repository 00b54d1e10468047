// Streams. Each call exists in two variants, which differ in the meaning of the NULL stream.
#include <algorithm>
#include <atomic>

#include "simgpu/checker/virtual_time.h"
#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

Stream* From(CUstream handle) { return reinterpret_cast<Stream*>(handle); }
Event* From(CUevent handle) { return reinterpret_cast<Event*>(handle); }

Stream* PerThreadStream(Driver& d, Context* context) {
  Stream*& stream = context->per_thread[ThreadNumber()];
  if (stream == nullptr) stream = CreateStream(d, context, 0, 0, StreamKind::kBlocking);
  return stream;
}

CUresult Create(CUstream* result, unsigned flags, int priority) {
  Driver& d = TheDriver();
  SIMGPU_CONTEXT(context);
  if (result == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  const StreamKind kind = flags == CU_STREAM_NON_BLOCKING ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  *result = reinterpret_cast<CUstream>(CreateStream(d, context, flags, std::clamp(priority, -5, 0), kind));
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> next{1};
  static thread_local const uint64_t number = next++;
  return number;
}

Stream* CreateStream(Driver& d, Context* context, unsigned flags, int priority, StreamKind kind) {
  Stream* stream = new Stream;
  stream->context = context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = d.NextId();
  stream->order = d.order.AddStream(context->group, kind);
  d.streams.insert(stream);
  return stream;
}

CUresult FindStream(Driver& d, CUstream handle, DefaultStream variant, Stream** stream) {
  const bool null = handle == nullptr;
  const bool per_thread = handle == CU_STREAM_PER_THREAD || (null && variant == DefaultStream::kPerThread);
  if (per_thread || null || handle == CU_STREAM_LEGACY) {
    SIMGPU_CONTEXT(context);
    *stream = per_thread ? PerThreadStream(d, context) : context->legacy;
    return CUDA_SUCCESS;
  }
  if (!d.streams.contains(From(handle))) return CUDA_ERROR_INVALID_HANDLE;
  if (!From(handle)->context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;  // a green one
  *stream = From(handle);
  return CUDA_SUCCESS;
}

void HostSawFamily(Driver& d, const Context* context) {
  ForFamily(*context, [&d](int group) { d.order.HostSawGroup(group); });
}

void HostSawContext(Driver& d, Context* context) {
  HostSawFamily(d, context);
  TrimPools(d);
}

SIMGPU_API cuStreamCreate(CUstream* stream, unsigned flags) {
  SIMGPU_ENTER(cuStreamCreate);
  return Create(stream, flags, 0);
}

SIMGPU_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  SIMGPU_ENTER(cuStreamCreateWithPriority);
  return Create(stream, flags, priority);
}

static CUresult Destroy(CUstream handle) {
  SIMGPU_ENTER(cuStreamDestroy);
  auto it = d.streams.find(From(handle));
  if (it == d.streams.end() || *it == (*it)->context->legacy) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = *it;
  if (!stream->context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream->capture != nullptr) stream->capture->valid = false;
  d.order.RemoveStream(stream->order);
  d.streams.erase(it);
  delete stream;
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamDestroy(CUstream handle) { return Destroy(handle); }
SIMGPU_API cuStreamDestroy_v2(CUstream handle) { return Destroy(handle); }

// Without virtual time all submitted work has run when the host asks, so a query waits as well.
static CUresult Wait(Driver& d, CUstream handle, DefaultStream variant, bool query) {
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  SIMGPU_STRICTLY_UNSAFE();
  // The legacy stream waits for the blocking ones even if no work was submitted to it.
  if (stream == stream->context->legacy) d.order.Submit(stream->order);
  if (query && d.order.At(stream->order).end > HostNow()) {
    HostPolls();
    return CUDA_ERROR_NOT_READY;
  }
  d.order.HostSawStream(stream->order);
  TrimPools(d);
  return CUDA_SUCCESS;
}

static CUresult Synchronize(CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamSynchronize);
  return Wait(d, handle, variant, false);
}
SIMGPU_API cuStreamSynchronize(CUstream handle) { return Synchronize(handle, DefaultStream::kLegacy); }
SIMGPU_API cuStreamSynchronize_ptsz(CUstream handle) { return Synchronize(handle, DefaultStream::kPerThread); }

static CUresult Query(CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamQuery);
  return Wait(d, handle, variant, true);
}
SIMGPU_API cuStreamQuery(CUstream handle) { return Query(handle, DefaultStream::kLegacy); }
SIMGPU_API cuStreamQuery_ptsz(CUstream handle) { return Query(handle, DefaultStream::kPerThread); }

static CUresult WaitEvent(CUstream handle, CUevent event_handle, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamWaitEvent);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  Event* event = From(event_handle);
  if (!d.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr && event->capture->graph != nullptr) {  // a fork, or a join, of a capture
    if (stream->capture != nullptr && stream->capture != event->capture) {
      event->capture->valid = stream->capture->valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    return CUDA_SUCCESS;
  }
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event->recorded) d.order.Wait(stream->order, event->moment);
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return WaitEvent(stream, event, DefaultStream::kLegacy);
}
SIMGPU_API cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned) {
  return WaitEvent(stream, event, DefaultStream::kPerThread);
}

// Queries of streams. SIMGPU_STREAM_QUESTION(name, type, answer) makes both variants.
#define SIMGPU_STREAM_QUESTION(name, type, answer)                                                              \
  static CUresult Ask_##name(CUstream handle, type* result, DefaultStream variant) {                            \
    SIMGPU_ENTER(name);                                                                                         \
    SIMGPU_STREAM(stream, handle, variant);                                                                     \
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;                                                     \
    *result = answer;                                                                                           \
    return CUDA_SUCCESS;                                                                                        \
  }                                                                                                             \
  SIMGPU_API name(CUstream handle, type* result) { return Ask_##name(handle, result, DefaultStream::kLegacy); } \
  SIMGPU_API name##_ptsz(CUstream handle, type* result) {                                                       \
    return Ask_##name(handle, result, DefaultStream::kPerThread);                                               \
  }

SIMGPU_STREAM_QUESTION(cuStreamGetPriority, int, stream->priority)
SIMGPU_STREAM_QUESTION(cuStreamGetFlags, unsigned, stream->flags)
SIMGPU_STREAM_QUESTION(cuStreamGetId, unsigned long long, stream->id)
SIMGPU_STREAM_QUESTION(cuStreamGetDevice, CUdevice, stream->context->device)
SIMGPU_STREAM_QUESTION(cuStreamGetCtx, CUcontext, reinterpret_cast<CUcontext>(stream->context))

// A green context's stream: its primary context, and the green one.
static CUresult GetBothContexts(CUstream handle, CUcontext* context, CUgreenCtx* green, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamGetCtx);
  SIMGPU_STREAM(stream, handle, variant);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(OwnerOf(stream->context));
  const bool is_green = stream->context->parent != nullptr;
  if (green != nullptr) *green = is_green ? reinterpret_cast<CUgreenCtx>(stream->context) : nullptr;
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  return GetBothContexts(handle, context, green, DefaultStream::kLegacy);
}
SIMGPU_API cuStreamGetCtx_v2_ptsz(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  return GetBothContexts(handle, context, green, DefaultStream::kPerThread);
}

SIMGPU_API cuStreamCopyAttributes(CUstream, CUstream) {
  SIMGPU_ENTER(cuStreamCopyAttributes);
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) { return cuStreamCopyAttributes(to, from); }
SIMGPU_API cuStreamSetAttribute(CUstream, CUstreamAttrID, const CUstreamAttrValue*) {
  SIMGPU_ENTER(cuStreamSetAttribute);
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return cuStreamSetAttribute(stream, id, value);
}
SIMGPU_API cuStreamGetAttribute(CUstream, CUstreamAttrID, CUstreamAttrValue* value) {
  SIMGPU_ENTER(cuStreamGetAttribute);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  return cuStreamGetAttribute(stream, id, value);
}
static CUresult AttachMem(CUstream handle, DefaultStream variant) {
  SIMGPU_ENTER(cuStreamAttachMemAsync);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (stream->capture != nullptr && d.capture_rule != CaptureRule::kLenient) {
    stream->capture->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  d.order.Submit(stream->order);
  return CUDA_SUCCESS;
}
SIMGPU_API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr, size_t, unsigned) {
  return AttachMem(stream, DefaultStream::kLegacy);
}
SIMGPU_API cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr, size_t, unsigned) {
  return AttachMem(stream, DefaultStream::kPerThread);
}

}  // namespace simgpu
