// The driver's functions that the runtime calls, as pointers. They are looked up behind the hooks: in a preload behind
// hotpack, else in the driver. So a call through this table does not re-enter the hooks by itself.
#pragma once

#include <cuda.h>

namespace hotpack {

// X(member, exported symbol). The symbol is the driver's own versioned name, as in cuda.h.
#define HOTPACK_DRIVER_FUNCTIONS(X)                                       \
  X(CtxGetCurrent, cuCtxGetCurrent)                                       \
  X(CtxPushCurrent, cuCtxPushCurrent_v2)                                  \
  X(CtxPopCurrent, cuCtxPopCurrent_v2)                                    \
  X(CtxGetDevice, cuCtxGetDevice)                                         \
  X(CtxSynchronize, cuCtxSynchronize)                                     \
  X(CtxRecordEvent, cuCtxRecordEvent)                                     \
  X(StreamSynchronize, cuStreamSynchronize)                               \
  X(StreamIsCapturing, cuStreamIsCapturing)                               \
  X(StreamGetCtx, cuStreamGetCtx)                                         \
  X(StreamGetBothContexts, cuStreamGetCtx_v2)                             \
  X(CtxFromGreenCtx, cuCtxFromGreenCtx)                                   \
  X(StreamGetFlags, cuStreamGetFlags)                                     \
  X(StreamGetId, cuStreamGetId)                                           \
  X(StreamWaitEvent, cuStreamWaitEvent)                                   \
  X(EventCreate, cuEventCreate)                                           \
  X(EventDestroy, cuEventDestroy_v2)                                      \
  X(EventRecord, cuEventRecord)                                           \
  X(EventSynchronize, cuEventSynchronize)                                 \
  X(EventQuery, cuEventQuery)                                             \
  X(UserObjectCreate, cuUserObjectCreate)                                 \
  X(UserObjectRelease, cuUserObjectRelease)                               \
  X(GraphRetainUserObject, cuGraphRetainUserObject)                       \
  X(GraphAddChildGraphNode, cuGraphAddChildGraphNode)                     \
  X(GraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams) \
  X(GraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph)           \
  X(GraphNodeGetType, cuGraphNodeGetType)                                 \
  X(GraphGetNodes, cuGraphGetNodes)                                       \
  X(GraphDestroyNode, cuGraphDestroyNode)                                 \
  X(GraphCreate, cuGraphCreate)                                           \
  X(GraphDestroy, cuGraphDestroy)                                         \
  X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode)   \
  X(DeviceGetAttribute, cuDeviceGetAttribute)                             \
  X(DeviceTotalMem, cuDeviceTotalMem_v2)                                  \
  X(DeviceGetName, cuDeviceGetName)                                       \
  X(DeviceGetMemPool, cuDeviceGetMemPool)                                 \
  X(DeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)                   \
  X(DeviceGetCount, cuDeviceGetCount)                                     \
  X(DeviceCanAccessPeer, cuDeviceCanAccessPeer)                           \
  X(DevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState)                 \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                     \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)                \
  X(PointerGetAttribute, cuPointerGetAttribute)                           \
  X(MemGetAllocationGranularity, cuMemGetAllocationGranularity)           \
  X(MemAddressReserve, cuMemAddressReserve)                               \
  X(MemAddressFree, cuMemAddressFree)                                     \
  X(MemCreate, cuMemCreate)                                               \
  X(MemRelease, cuMemRelease)                                             \
  X(MemMap, cuMemMap)                                                     \
  X(MemUnmap, cuMemUnmap)                                                 \
  X(MemSetAccess, cuMemSetAccess)                                         \
  X(MemExport, cuMemExportToShareableHandle)                              \
  X(MemImport, cuMemImportFromShareableHandle)                            \
  X(MemGetInfo, cuMemGetInfo_v2)                                          \
  X(MemAlloc, cuMemAlloc_v2)                                              \
  X(MemAllocPitch, cuMemAllocPitch_v2)                                    \
  X(MemFree, cuMemFree_v2)                                                \
  X(MemAllocAsync, cuMemAllocAsync)                                       \
  X(MemFreeAsync, cuMemFreeAsync)                                         \
  X(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync)                       \
  X(MemPoolCreate, cuMemPoolCreate)                                       \
  X(MemPoolDestroy, cuMemPoolDestroy)                                     \
  X(MemPoolSetAttribute, cuMemPoolSetAttribute)                           \
  X(MemPoolTrimTo, cuMemPoolTrimTo)                                       \
  X(MemAllocManaged, cuMemAllocManaged)                                   \
  X(MemsetD8Async, cuMemsetD8Async)                                       \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                                \
  X(StreamCreate, cuStreamCreate)

// A null member: this driver lacks the function. Plain data; written once, before it is shared.
struct CudaDriver {
#define HOTPACK_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
  HOTPACK_DRIVER_FUNCTIONS(HOTPACK_MEMBER)
#undef HOTPACK_MEMBER
};

// Restore state of the calling thread that was changed temporarily: a pushed context, or the capture mode (`mode`: the
// previous one). They retry if the driver fails, because the program must not continue in another context or mode.
inline constexpr int kAttemptsToRestore = 3;
inline void PopContext(const CudaDriver& driver) {
  CUcontext popped = nullptr;
  for (int i = 0; i < kAttemptsToRestore && driver.CtxPopCurrent(&popped) != CUDA_SUCCESS; ++i) {
  }
}
inline void RestoreCaptureMode(const CudaDriver& driver, CUstreamCaptureMode* mode) {
  for (int i = 0; i < kAttemptsToRestore && driver.ThreadExchangeStreamCaptureMode(mode) != CUDA_SUCCESS; ++i) {
  }
}

// While it lives, the calling thread may make calls that a capture, its own or another thread's, forbids in global mode
// ("potentially unsafe" ones: CUDA driver API, cuThreadExchangeStreamCaptureMode).
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const CudaDriver& driver) : driver_(driver) {
    exchanged_ = driver.ThreadExchangeStreamCaptureMode != nullptr &&
                 driver.ThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~RelaxedCaptureMode() {
    if (exchanged_) RestoreCaptureMode(driver_, &mode_);
  }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

// Fills in the table. `lookup(symbol)` returns the real function of that exported name, or null.
template <typename Lookup>
void LoadCudaDriver(Lookup lookup, CudaDriver* driver) {
#define HOTPACK_LOAD(member, symbol) driver->member = reinterpret_cast<decltype(driver->member)>(lookup(#symbol));
  HOTPACK_DRIVER_FUNCTIONS(HOTPACK_LOAD)
#undef HOTPACK_LOAD
}

}  // namespace hotpack
