// Events: a copy of the stream's clock at the record.
#include <algorithm>
#include <chrono>

#include "simgpu/checker/virtual_time.h"
#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

Event* From(CUevent handle) { return reinterpret_cast<Event*>(handle); }

double Milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Whether the event is part of a capture in progress.
bool InCapture(const Event& event) { return event.capture != nullptr && event.capture->graph != nullptr; }

}  // namespace

SIMGPU_API cuEventCreate(CUevent* result, unsigned flags) {
  SIMGPU_ENTER(cuEventCreate);
  SIMGPU_CONTEXT(context);
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Event* event = new Event;
  event->context = context;
  event->flags = flags;
  d.events.insert(event);
  *result = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

static CUresult Destroy(CUevent handle) {
  SIMGPU_ENTER(cuEventDestroy);
  if (d.events.erase(From(handle)) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete From(handle);
  return CUDA_SUCCESS;
}
SIMGPU_API cuEventDestroy(CUevent handle) { return Destroy(handle); }
SIMGPU_API cuEventDestroy_v2(CUevent handle) { return Destroy(handle); }

static CUresult Record(Driver& d, CUevent handle, CUstream stream_handle, unsigned flags, DefaultStream variant) {
  SIMGPU_WORK_STREAM(stream, stream_handle, variant);
  Event* event = From(handle);
  if (!d.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    if (!stream->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if ((flags & CU_EVENT_RECORD_EXTERNAL) == 0) {
      event->capture = stream->capture;
      return CUDA_SUCCESS;
    }
  }
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                [event, order = stream->order](Driver& driver, Epoch op, uint64_t) {
                  if (!driver.events.contains(event)) return CUDA_SUCCESS;
                  event->capture = nullptr;
                  event->recorded = true;
                  event->moment = driver.order.At(op.stream);
                  event->milliseconds = Milliseconds();
                  return CUDA_SUCCESS;
                });
}

static CUresult RecordPlain(CUevent event, CUstream stream, DefaultStream variant) {
  SIMGPU_ENTER(cuEventRecord);
  return Record(d, event, stream, 0, variant);
}
static CUresult RecordWithFlags(CUevent event, CUstream stream, unsigned flags, DefaultStream variant) {
  SIMGPU_ENTER(cuEventRecordWithFlags);
  return Record(d, event, stream, flags, variant);
}
SIMGPU_API cuEventRecord(CUevent event, CUstream stream) { return RecordPlain(event, stream, DefaultStream::kLegacy); }
SIMGPU_API cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return RecordPlain(event, stream, DefaultStream::kPerThread);
}
SIMGPU_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return RecordWithFlags(event, stream, flags, DefaultStream::kLegacy);
}
SIMGPU_API cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return RecordWithFlags(event, stream, flags, DefaultStream::kPerThread);
}

// cuda.h, cuCtxRecordEvent and cuCtxWaitEvent: both are refused while a stream of the context captures, and end the
// captures.
static CUresult FindContextAndEvent(Driver& d, CUcontext context, CUevent event) {
  Context* const found = reinterpret_cast<Context*>(context);
  if (!d.contexts.contains(found) || !found->alive) return CUDA_ERROR_INVALID_CONTEXT;
  return d.events.contains(From(event)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SIMGPU_API cuCtxRecordEvent(CUcontext context_handle, CUevent event_handle) {
  SIMGPU_ENTER(cuCtxRecordEvent);
  if (const CUresult bad = FindContextAndEvent(d, context_handle, event_handle); bad != CUDA_SUCCESS) return bad;
  Context* context = reinterpret_cast<Context*>(context_handle);
  Event* event = From(event_handle);
  if (event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  if (InvalidateCaptures(d, context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  event->capture = nullptr;
  event->recorded = true;
  event->moment = Clock();
  event->moment.end = HostNow();
  ForFamily(*context, [&](int group) {
    const Clock moment = d.order.AtGroup(group);
    if (moment.size() > event->moment.size()) event->moment.resize(moment.size());
    for (size_t i = 0; i < moment.size(); ++i) event->moment[i] = std::max(event->moment[i], moment[i]);
    event->moment.end = std::max(event->moment.end, moment.end);
  });
  event->milliseconds = Milliseconds();
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxWaitEvent(CUcontext context_handle, CUevent event_handle) {
  SIMGPU_ENTER(cuCtxWaitEvent);
  if (const CUresult bad = FindContextAndEvent(d, context_handle, event_handle); bad != CUDA_SUCCESS) return bad;
  Context* context = reinterpret_cast<Context*>(context_handle);
  Event* event = From(event_handle);
  bool captures = InvalidateCaptures(d, context);
  if (InCapture(*event)) {
    event->capture->valid = false;
    captures = true;
  }
  if (captures) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!event->recorded) return CUDA_SUCCESS;
  ForFamily(*context, [&](int group) { d.order.WaitGroup(group, event->moment); });
  return CUDA_SUCCESS;
}

// Notes that the host knows the event's work to be finished.
static CUresult HostSaw(Driver& d, CUevent handle, bool query) {
  Event* event = From(handle);
  if (!d.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (InCapture(*event)) {
    event->capture->valid = false;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (event->recorded) {
    if (query && event->moment.end > HostNow()) {
      HostPolls();
      return CUDA_ERROR_NOT_READY;
    }
    d.order.HostSaw(event->moment);
    TrimPools(d);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventQuery(CUevent handle) {
  SIMGPU_ENTER(cuEventQuery);
  SIMGPU_UNSAFE();
  return HostSaw(d, handle, true);
}

SIMGPU_API cuEventSynchronize(CUevent handle) {
  SIMGPU_ENTER(cuEventSynchronize);
  SIMGPU_STRICTLY_UNSAFE();
  return HostSaw(d, handle, false);
}

static CUresult ElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  SIMGPU_ENTER(cuEventElapsedTime);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!d.events.contains(From(start)) || !d.events.contains(From(end))) return CUDA_ERROR_INVALID_HANDLE;
  const Event& a = *From(start);
  const Event& b = *From(end);
  if (d.capture_rule != CaptureRule::kLenient && (InCapture(a) || InCapture(b))) return CUDA_ERROR_CAPTURED_EVENT;
  if (!a.recorded || !b.recorded || ((a.flags | b.flags) & CU_EVENT_DISABLE_TIMING) != 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto virtual_time = static_cast<double>(b.moment.end) - static_cast<double>(a.moment.end);
  *milliseconds = static_cast<float>(TimeMode() ? virtual_time / 1e6 : b.milliseconds - a.milliseconds);
  return CUDA_SUCCESS;
}
SIMGPU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return ElapsedTime(milliseconds, start, end);
}
SIMGPU_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return ElapsedTime(milliseconds, start, end);
}

}  // namespace simgpu
