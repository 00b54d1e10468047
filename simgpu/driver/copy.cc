// Linear copies. Each is an operation on a stream. Synchronous ones run on the default stream and then wait, except
// from device to device, for which the driver does not wait.
#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool OnDevice(Driver& d, uint64_t address) {
  const RegionKind kind = d.memory.Find(address).kind;
  return kind != RegionKind::kForeign && kind != RegionKind::kHost;
}

CUresult CopyNow(Driver& d, Stream* stream, uint64_t to, uint64_t from, uint64_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_MEMCPY, [=](Driver& driver, Epoch op, uint64_t given_before) {
    driver.checker.Use(op, from, bytes, "a copy (from)", given_before);
    driver.checker.Use(op, to, bytes, "a copy (to)", given_before);
    return MoveBytes(driver, to, from, bytes);
  });
}

CUresult Copy(Driver& d, uint64_t to, uint64_t from, uint64_t bytes, CUstream handle, DefaultStream variant) {
  SIMGPU_STREAM(stream, handle, variant);
  const CUresult status = CopyNow(d, stream, to, from, bytes);
  // cuda.h, "API synchronization behavior": a copy from the device to pageable memory returns when it is done.
  if (status == CUDA_SUCCESS && stream->capture == nullptr && OnDevice(d, from) &&
      d.memory.Find(to).kind == RegionKind::kForeign) {
    d.order.HostSawStream(stream->order);
  }
  return status;
}

CUresult CopyAndWait(Driver& d, uint64_t to, uint64_t from, uint64_t bytes, DefaultStream variant) {
  SIMGPU_STREAM(stream, nullptr, variant);
  if (const CUresult unsafe = CheckUnsafeCall(d); unsafe != CUDA_SUCCESS) return unsafe;
  const CUresult status = CopyNow(d, stream, to, from, bytes);
  if (status == CUDA_SUCCESS && !(OnDevice(d, to) && OnDevice(d, from))) d.order.HostSawStream(stream->order);
  return status;
}

}  // namespace

// Both variants of a synchronous and of an asynchronous copy. `to` and `from` are expressions over the parameters.
#define SIMGPU_COPY(base, symbol, ptds, parameters, arguments, to, from)                 \
  static CUresult symbol##_Do(DefaultStream variant, SIMGPU_UNPACK parameters) {         \
    SIMGPU_ENTER(base);                                                                  \
    return CopyAndWait(d, to, from, bytes, variant);                                     \
  }                                                                                      \
  SIMGPU_API symbol parameters { return symbol##_Do(kLegacy, SIMGPU_UNPACK arguments); } \
  SIMGPU_API ptds parameters { return symbol##_Do(kPerThread, SIMGPU_UNPACK arguments); }

#define SIMGPU_COPY_ASYNC(base, symbol, ptsz, parameters, arguments, to, from)           \
  static CUresult symbol##_Do(DefaultStream variant, SIMGPU_UNPACK parameters) {         \
    SIMGPU_ENTER(base);                                                                  \
    return Copy(d, to, from, bytes, stream, variant);                                    \
  }                                                                                      \
  SIMGPU_API symbol parameters { return symbol##_Do(kLegacy, SIMGPU_UNPACK arguments); } \
  SIMGPU_API ptsz parameters { return symbol##_Do(kPerThread, SIMGPU_UNPACK arguments); }

#define SIMGPU_UNPACK(...) __VA_ARGS__

SIMGPU_COPY(cuMemcpy, cuMemcpy, cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes), to,
            from)
SIMGPU_COPY(cuMemcpyHtoD, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void* from, size_t bytes),
            (to, from, bytes), to, Address(from))
SIMGPU_COPY(cuMemcpyDtoH, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, (void* to, CUdeviceptr from, size_t bytes),
            (to, from, bytes), Address(to), from)
SIMGPU_COPY(cuMemcpyDtoD, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
            (to, from, bytes), to, from)
SIMGPU_COPY(cuMemcpyPeer, cuMemcpyPeer, cuMemcpyPeer_ptds,
            (CUdeviceptr to, [[maybe_unused]] CUcontext to_context, CUdeviceptr from,
             [[maybe_unused]] CUcontext from_context, size_t bytes),
            (to, to_context, from, from_context, bytes), to, from)

SIMGPU_COPY_ASYNC(cuMemcpyAsync, cuMemcpyAsync, cuMemcpyAsync_ptsz,
                  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream), to,
                  from)
SIMGPU_COPY_ASYNC(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
                  (CUdeviceptr to, const void* from, size_t bytes, CUstream stream), (to, from, bytes, stream), to,
                  Address(from))
SIMGPU_COPY_ASYNC(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
                  (void* to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream), Address(to),
                  from)
SIMGPU_COPY_ASYNC(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
                  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream), to,
                  from)
SIMGPU_COPY_ASYNC(cuMemcpyPeerAsync, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
                  (CUdeviceptr to, [[maybe_unused]] CUcontext to_context, CUdeviceptr from,
                   [[maybe_unused]] CUcontext from_context, size_t bytes, CUstream stream),
                  (to, to_context, from, from_context, bytes, stream), to, from)

}  // namespace simgpu
