// Linear copies. Each is an operation on a stream. Synchronous ones run on the default stream and then wait, except
// from device to device, for which the driver does not wait.
#include "simgpu/driver/api.h"
#include "simgpu/driver/peer.h"
#include "simgpu/driver/time_costs.h"
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

// The contexts that cuMemcpyPeer names.
struct PeerContexts {
  CUcontext to, from;
};

// `peers`: null for all other copies.
CUresult CheckEnds(Driver& d, const Context* context, uint64_t to, uint64_t from, uint64_t bytes,
                   const PeerContexts* peers) {
  if (peers != nullptr) {
    const CUresult status = CheckPeerEnd(d, peers->to, to);
    return status != CUDA_SUCCESS ? status : CheckPeerEnd(d, peers->from, from);
  }
  const bool reaches = CopyReaches(d, context, to, bytes) && CopyReaches(d, context, from, bytes);
  return reaches ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CopyNow(Driver& d, Stream* stream, uint64_t to, uint64_t from, uint64_t bytes, const PeerContexts* peers) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = CheckEnds(d, stream->context, to, from, bytes, peers); bad != CUDA_SUCCESS) return bad;
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_MEMCPY, [=](Driver& driver, Epoch op, uint64_t given_before) {
    driver.checker.Use(op, from, bytes, "a copy (from)", given_before);
    driver.checker.Use(op, to, bytes, "a copy (to)", given_before);
    TakeCopy(driver, op.stream, to, from, bytes);
    return MoveBytes(driver, to, from, bytes);
  });
}

CUresult Copy(Driver& d, uint64_t to, uint64_t from, uint64_t bytes, CUstream handle, DefaultStream variant,
              const PeerContexts* peers = nullptr) {
  SIMGPU_WORK_STREAM(stream, handle, variant);
  const CUresult status = CopyNow(d, stream, to, from, bytes, peers);
  // cuda.h, "API synchronization behavior": a copy from the device to pageable memory returns when it is done.
  if (status == CUDA_SUCCESS && stream->capture == nullptr && OnDevice(d, from) &&
      d.memory.Find(to).kind == RegionKind::kForeign) {
    d.order.HostSawStream(stream->order);
  }
  return status;
}

CUresult CopyAndWait(Driver& d, uint64_t to, uint64_t from, uint64_t bytes, DefaultStream variant,
                     const PeerContexts* peers = nullptr) {
  SIMGPU_WORK_STREAM(stream, nullptr, variant);
  SIMGPU_UNSAFE();
  const CUresult status = CopyNow(d, stream, to, from, bytes, peers);
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
static CUresult CopyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                         DefaultStream variant) {
  SIMGPU_ENTER(cuMemcpyPeer);
  const PeerContexts peers = {to_context, from_context};
  return CopyAndWait(d, to, from, bytes, variant, &peers);
}
SIMGPU_API cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
  return CopyPeer(to, to_context, from, from_context, bytes, kLegacy);
}
SIMGPU_API cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             size_t bytes) {
  return CopyPeer(to, to_context, from, from_context, bytes, kPerThread);
}

static CUresult CopyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes, CUstream stream, DefaultStream variant) {
  SIMGPU_ENTER(cuMemcpyPeerAsync);
  const PeerContexts peers = {to_context, from_context};
  return Copy(d, to, from, bytes, stream, variant, &peers);
}
SIMGPU_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             size_t bytes, CUstream stream) {
  return CopyPeerAsync(to, to_context, from, from_context, bytes, stream, kLegacy);
}
SIMGPU_API cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream stream) {
  return CopyPeerAsync(to, to_context, from, from_context, bytes, stream, kPerThread);
}

// Batches: the copies run one after the other.
static CUresult CopyBatch(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                          CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count, CUstream stream,
                          DefaultStream variant, size_t* failed = nullptr) {
  SIMGPU_ENTER(cuMemcpyBatchAsync);
  if (failed != nullptr) *failed = SIZE_MAX;  // no copy's own error
  if (to == nullptr || from == nullptr || bytes == nullptr || count == 0 || attributes == nullptr ||
      first_copies == nullptr || attribute_count == 0 || attribute_count > count || first_copies[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < attribute_count; ++i) {
    const bool ordered = i == 0 || first_copies[i] > first_copies[i - 1];
    if (!ordered || first_copies[i] >= count || attributes[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // cuda.h: "Must not be legacy NULL stream".
  if (stream == CU_STREAM_LEGACY || (stream == nullptr && variant == kLegacy)) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_WORK_STREAM(found, stream, variant);
  if (RefusesBatches(d, *found)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (size_t i = 0; i < count; ++i) {
    const CUresult status = Copy(d, to[i], from[i], bytes[i], stream, variant);
    if (status == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return status;
  }
  return CUDA_SUCCESS;
}
// The first version returns the failing copy's number.
SIMGPU_API cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                              CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                              size_t* failed, CUstream stream) {
  return CopyBatch(to, from, bytes, count, attributes, first_copies, attribute_count, stream, kLegacy, failed);
}
SIMGPU_API cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                   CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                                   size_t* failed, CUstream stream) {
  return CopyBatch(to, from, bytes, count, attributes, first_copies, attribute_count, stream, kPerThread, failed);
}
SIMGPU_API cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                 CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                                 CUstream stream) {
  return CopyBatch(to, from, bytes, count, attributes, first_copies, attribute_count, stream, kLegacy);
}
SIMGPU_API cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                      CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                                      CUstream stream) {
  return CopyBatch(to, from, bytes, count, attributes, first_copies, attribute_count, stream, kPerThread);
}

// CUDA 13.2: newer than the header here.
static CUresult CopyWith(CUdeviceptr to, CUdeviceptr from, size_t bytes, const CUmemcpyAttributes* attributes,
                         CUstream stream, DefaultStream variant) {
  SIMGPU_ENTER(cuMemcpyWithAttributesAsync);
  if (attributes == nullptr || attributes->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Copy(d, to, from, bytes, stream, variant);
}
SIMGPU_API cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUmemcpyAttributes* attributes,
                                       CUstream stream) {
  return CopyWith(to, from, bytes, attributes, stream, kLegacy);
}
SIMGPU_API cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                            CUmemcpyAttributes* attributes, CUstream stream) {
  return CopyWith(to, from, bytes, attributes, stream, kPerThread);
}

}  // namespace simgpu
