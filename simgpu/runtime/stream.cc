// Streams, events and captures.
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

CUDART_API cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  CUDART_READY();
  return Set(drv.cuStreamCreateWithPriority(stream, flags, priority));
}
CUDART_API cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
CUDART_API cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

CUDART_API cudaStreamDestroy(cudaStream_t stream) {
  CUDART_READY();
  return Set(drv.cuStreamDestroy(stream));
}

CUDART_FORWARD_BOTH(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, cuStreamSynchronize, (cudaStream_t stream),
                    (stream))
CUDART_FORWARD_BOTH(cudaStreamQuery, cudaStreamQuery_ptsz, cuStreamQuery, (cudaStream_t stream), (stream))
CUDART_FORWARD_BOTH(cudaStreamCopyAttributes, cudaStreamCopyAttributes_ptsz, cuStreamCopyAttributes,
                    (cudaStream_t to, cudaStream_t from), (to, from))
CUDART_FORWARD_BOTH(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz, cuStreamWaitEvent,
                    (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
CUDART_FORWARD_BOTH(cudaStreamGetPriority, cudaStreamGetPriority_ptsz, cuStreamGetPriority,
                    (cudaStream_t stream, int* priority), (stream, priority))
CUDART_FORWARD_BOTH(cudaStreamGetFlags, cudaStreamGetFlags_ptsz, cuStreamGetFlags,
                    (cudaStream_t stream, unsigned* flags), (stream, flags))
CUDART_FORWARD_BOTH(cudaStreamGetId, cudaStreamGetId_ptsz, cuStreamGetId, (cudaStream_t stream, unsigned long long* id),
                    (stream, id))
CUDART_FORWARD_BOTH(cudaStreamGetDevice, cudaStreamGetDevice_ptsz, cuStreamGetDevice,
                    (cudaStream_t stream, int* device), (stream, device))
CUDART_FORWARD_BOTH(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz, cuLaunchHostFunc,
                    (cudaStream_t stream, cudaHostFn_t function, void* data), (stream, function, data))
CUDART_FORWARD_BOTH(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, cuStreamEndCapture,
                    (cudaStream_t stream, cudaGraph_t* graph), (stream, graph))
CUDART_FORWARD_BOTH(cudaEventRecord, cudaEventRecord_ptsz, cuEventRecord, (cudaEvent_t event, cudaStream_t stream),
                    (event, stream))
CUDART_FORWARD_BOTH(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz, cuEventRecordWithFlags,
                    (cudaEvent_t event, cudaStream_t stream, unsigned flags), (event, stream, flags))

CUDART_BOTH(cudaStreamAddCallback, cudaStreamAddCallback_ptsz,
            (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
            (stream, callback, data, flags), {
              CUDART_READY();
              // The two callback types differ only in the error type, which has the same numbers.
              return Set(
                  drv.cuStreamAddCallback[pt](stream, reinterpret_cast<CUstreamCallback>(callback), data, flags));
            })

// The attributes and their values have the driver's numbers and layout.
CUDART_BOTH(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz,
            (cudaStream_t stream, cudaStreamAttrID id, cudaStreamAttrValue* value), (stream, id, value), {
              CUDART_READY();
              return Set(drv.cuStreamGetAttribute[pt](stream, static_cast<CUstreamAttrID>(id),
                                                      reinterpret_cast<CUstreamAttrValue*>(value)));
            })
CUDART_BOTH(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz,
            (cudaStream_t stream, cudaStreamAttrID id, const cudaStreamAttrValue* value), (stream, id, value), {
              CUDART_READY();
              return Set(drv.cuStreamSetAttribute[pt](stream, static_cast<CUstreamAttrID>(id),
                                                      reinterpret_cast<const CUstreamAttrValue*>(value)));
            })
CUDART_BOTH(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz,
            (cudaStream_t stream, void* address, size_t bytes, unsigned flags), (stream, address, bytes, flags), {
              CUDART_READY();
              return Set(drv.cuStreamAttachMemAsync[pt](stream, reinterpret_cast<CUdeviceptr>(address), bytes, flags));
            })

CUDART_BOTH(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
            (stream, mode), {
              CUDART_READY();
              return Set(drv.cuStreamBeginCapture[pt](stream, static_cast<CUstreamCaptureMode>(mode)));
            })

CUDART_BOTH(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz, (cudaStream_t stream, cudaStreamCaptureStatus* status),
            (stream, status), {
              CUDART_READY();
              return Set(drv.cuStreamIsCapturing[pt](stream, reinterpret_cast<CUstreamCaptureStatus*>(status)));
            })

CUDART_BOTH(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz,
            (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
             const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count),
            (stream, status, id, graph, dependencies, edges, count), {
              CUDART_READY();
              cuuint64_t number = 0;
              const CUresult result = drv.cuStreamGetCaptureInfo[pt](
                  stream, reinterpret_cast<CUstreamCaptureStatus*>(status), &number, graph, dependencies,
                  reinterpret_cast<const CUgraphEdgeData**>(edges), count);
              if (id != nullptr) *id = number;
              return Set(result);
            })

CUDART_API cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  CUDART_READY();
  return Set(drv.cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)));
}

CUDART_API cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  CUDART_READY();
  return Set(drv.cuEventCreate(event, flags));
}
CUDART_API cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

CUDART_API cudaEventDestroy(cudaEvent_t event) {
  CUDART_READY();
  return Set(drv.cuEventDestroy(event));
}

CUDART_API cudaEventQuery(cudaEvent_t event) {
  CUDART_READY();
  return Set(drv.cuEventQuery(event));
}

CUDART_API cudaEventSynchronize(cudaEvent_t event) {
  CUDART_READY();
  return Set(drv.cuEventSynchronize(event));
}

CUDART_API cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  CUDART_READY();
  return Set(drv.cuEventElapsedTime(milliseconds, start, end));
}
