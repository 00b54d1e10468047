// Two- and three-dimensional copies, row by row. Arrays are not simulated.
#include "simgpu/driver/api.h"
#include "simgpu/driver/copy_work.h"
#include "simgpu/driver/peer.h"
#include "simgpu/driver/time_costs.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

struct Side {
  uint64_t base = 0;
  uint64_t pitch = 0;
  uint64_t slice = 0;  // bytes from one layer to the next
};

struct Box {
  Side to, from;
  uint64_t width = 0, height = 0, depth = 1;
  bool waits = false;  // host memory is involved: a synchronous copy waits
  bool peer = false;   // the contexts of both ends are stated
  CUcontext to_context = nullptr, from_context = nullptr;
};

uint64_t BaseOf(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
}

template <typename Spec>
bool HasArray(const Spec& s) {
  return s.srcMemoryType == CU_MEMORYTYPE_ARRAY || s.dstMemoryType == CU_MEMORYTYPE_ARRAY;
}

Box From2D(const CUDA_MEMCPY2D& s) {
  Box box;
  box.from.pitch = s.srcPitch != 0 ? s.srcPitch : s.WidthInBytes;
  box.to.pitch = s.dstPitch != 0 ? s.dstPitch : s.WidthInBytes;
  box.from.base = BaseOf(s.srcMemoryType, s.srcHost, s.srcDevice) + s.srcY * box.from.pitch + s.srcXInBytes;
  box.to.base = BaseOf(s.dstMemoryType, s.dstHost, s.dstDevice) + s.dstY * box.to.pitch + s.dstXInBytes;
  box.width = s.WidthInBytes;
  box.height = s.Height;
  box.waits = s.srcMemoryType != CU_MEMORYTYPE_DEVICE || s.dstMemoryType != CU_MEMORYTYPE_DEVICE;
  return box;
}

template <typename Spec>  // CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER
Box From3D(const Spec& s) {
  Box box;
  box.from.pitch = s.srcPitch != 0 ? s.srcPitch : s.WidthInBytes;
  box.to.pitch = s.dstPitch != 0 ? s.dstPitch : s.WidthInBytes;
  box.from.slice = box.from.pitch * (s.srcHeight != 0 ? s.srcHeight : s.Height);
  box.to.slice = box.to.pitch * (s.dstHeight != 0 ? s.dstHeight : s.Height);
  box.from.base = BaseOf(s.srcMemoryType, s.srcHost, s.srcDevice) + s.srcZ * box.from.slice + s.srcY * box.from.pitch +
                  s.srcXInBytes;
  box.to.base =
      BaseOf(s.dstMemoryType, s.dstHost, s.dstDevice) + s.dstZ * box.to.slice + s.dstY * box.to.pitch + s.dstXInBytes;
  box.width = s.WidthInBytes;
  box.height = s.Height;
  box.depth = s.Depth;
  box.waits = s.srcMemoryType != CU_MEMORYTYPE_DEVICE || s.dstMemoryType != CU_MEMORYTYPE_DEVICE;
  return box;
}

Box FromPeer(const CUDA_MEMCPY3D_PEER& s) {
  Box box = From3D(s);
  box.peer = true;
  box.to_context = s.dstContext;
  box.from_context = s.srcContext;
  return box;
}

// A row's length and a layer's height of 0: as tight as can be (cuda.h, cuMemcpy3DBatchAsync).
Side FromOperand(const CUmemcpy3DOperand& end, const CUextent3D& extent) {
  Side side;
  side.base = end.op.ptr.ptr;
  side.pitch = end.op.ptr.rowLength != 0 ? end.op.ptr.rowLength : extent.width;
  side.slice = side.pitch * (end.op.ptr.layerHeight != 0 ? end.op.ptr.layerHeight : extent.height);
  return side;
}

// Host memory has no context of a device to state.
CUresult CheckEnds(Driver& d, const Context* context, const Box& box) {
  if (box.peer) {
    const CUresult status = CheckPeerEnd(d, box.to_context, box.to.base);
    return status != CUDA_SUCCESS ? status : CheckPeerEnd(d, box.from_context, box.from.base);
  }
  for (const Side* side : {&box.to, &box.from}) {
    const uint64_t bytes = (box.depth - 1) * side->slice + (box.height - 1) * side->pitch + box.width;
    if (!CopyReaches(d, context, side->base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// The ends by their addresses: a captured copy's node has no contexts either.
CUDA_MEMCPY3D ParametersOf(const Box& box) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = box.from.base;
  copy.dstDevice = box.to.base;
  copy.srcPitch = box.from.pitch;
  copy.dstPitch = box.to.pitch;
  copy.srcHeight = box.from.pitch != 0 ? box.from.slice / box.from.pitch : 0;
  copy.dstHeight = box.to.pitch != 0 ? box.to.slice / box.to.pitch : 0;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return copy;
}

CUresult CopyRows(Driver& d, Epoch op, const Box& box, uint64_t given_before) {
  TakeCopy(d, op.stream, box.to.base, box.from.base, box.width * box.height * box.depth);
  for (uint64_t z = 0; z < box.depth; ++z) {
    for (uint64_t y = 0; y < box.height; ++y) {
      const uint64_t from = box.from.base + z * box.from.slice + y * box.from.pitch;
      const uint64_t to = box.to.base + z * box.to.slice + y * box.to.pitch;
      d.checker.Use(op, from, box.width, "a copy (from)", given_before);
      d.checker.Use(op, to, box.width, "a copy (to)", given_before);
      if (const CUresult status = MoveBytes(d, to, from, box.width); status != CUDA_SUCCESS) return status;
    }
  }
  return CUDA_SUCCESS;
}

CUresult Copy(Driver& d, const Box& box, CUstream handle, DefaultStream variant, bool wait) {
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (wait) {
    SIMGPU_UNSAFE();
  }
  if (box.width == 0 || box.height == 0 || box.depth == 0) return CUDA_SUCCESS;
  if (box.width > box.from.pitch || box.width > box.to.pitch || box.from.base == 0 || box.to.base == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult bad = CheckEnds(d, stream->context, box); bad != CUDA_SUCCESS) return bad;
  const CUresult status = Submit(
      d, stream, CU_GRAPH_NODE_TYPE_MEMCPY,
      [box](Driver& driver, Epoch op, uint64_t given_before) { return CopyRows(driver, op, box, given_before); });
  if (status == CUDA_SUCCESS && stream->capture != nullptr) {
    stream->capture->graph->nodes.back()->copy = ParametersOf(box);
  }
  if (wait && box.waits) d.order.HostSawStream(stream->order);
  return status;
}

}  // namespace

CUresult CopyWork(Driver& d, const CUDA_MEMCPY3D& params, CUcontext context, RunWork* run) {
  if (HasArray(params)) return CUDA_ERROR_NOT_SUPPORTED;
  const Box box = From3D(params);
  if (context != nullptr) {
    if (!d.contexts.contains(reinterpret_cast<Context*>(context))) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult bad = CheckEnds(d, reinterpret_cast<Context*>(context), box);
    if (bad != CUDA_SUCCESS) return bad;
  }
  *run = [box](Driver& driver, Epoch op, uint64_t given_before) { return CopyRows(driver, op, box, given_before); };
  return CUDA_SUCCESS;
}

#define SIMGPU_BOX(base, symbol, per_thread_symbol, spec, convert)     \
  static CUresult symbol##_Do(const spec* s, DefaultStream variant) {  \
    SIMGPU_ENTER(base);                                                \
    if (s == nullptr) return CUDA_ERROR_INVALID_VALUE;                 \
    if (HasArray(*s)) return CUDA_ERROR_NOT_SUPPORTED;                 \
    return Copy(d, convert(*s), nullptr, variant, true);               \
  }                                                                    \
  SIMGPU_API symbol(const spec* s) { return symbol##_Do(s, kLegacy); } \
  SIMGPU_API per_thread_symbol(const spec* s) { return symbol##_Do(s, kPerThread); }

#define SIMGPU_BOX_ASYNC(base, symbol, per_thread_symbol, spec, convert)                        \
  static CUresult symbol##_Do(const spec* s, CUstream stream, DefaultStream variant) {          \
    SIMGPU_ENTER(base);                                                                         \
    if (s == nullptr) return CUDA_ERROR_INVALID_VALUE;                                          \
    if (HasArray(*s)) return CUDA_ERROR_NOT_SUPPORTED;                                          \
    return Copy(d, convert(*s), stream, variant, false);                                        \
  }                                                                                             \
  SIMGPU_API symbol(const spec* s, CUstream stream) { return symbol##_Do(s, stream, kLegacy); } \
  SIMGPU_API per_thread_symbol(const spec* s, CUstream stream) { return symbol##_Do(s, stream, kPerThread); }

SIMGPU_BOX(cuMemcpy2D, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, From2D)
SIMGPU_BOX(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, From2D)
SIMGPU_BOX(cuMemcpy3D, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, From3D)
SIMGPU_BOX(cuMemcpy3DPeer, cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, FromPeer)
SIMGPU_BOX_ASYNC(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, From2D)
SIMGPU_BOX_ASYNC(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, From3D)
SIMGPU_BOX_ASYNC(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, FromPeer)

static CUresult CopyOne(Driver& d, const CUDA_MEMCPY3D_BATCH_OP& copy, CUstream stream, DefaultStream variant) {
  if (copy.src.type != CU_MEMCPY_OPERAND_TYPE_POINTER || copy.dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Box box;
  box.to = FromOperand(copy.dst, copy.extent);
  box.from = FromOperand(copy.src, copy.extent);
  box.width = copy.extent.width;
  box.height = copy.extent.height;
  box.depth = copy.extent.depth;
  return Copy(d, box, stream, variant, false);
}

// `failed`: the first version's failing copy.
static CUresult CopyBatch(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed, unsigned long long flags,
                          CUstream stream, DefaultStream variant) {
  SIMGPU_ENTER(cuMemcpy3DBatchAsync);
  if (failed != nullptr) *failed = SIZE_MAX;  // no copy's own error
  if (count == 0 || copies == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream == CU_STREAM_LEGACY || (stream == nullptr && variant == kLegacy)) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_WORK_STREAM(found, stream, variant);
  if (RefusesBatches(d, *found)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (size_t i = 0; i < count; ++i) {
    const CUresult status = CopyOne(d, copies[i], stream, variant);
    if (status == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return status;
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed, unsigned long long flags,
                                CUstream stream) {
  return CopyBatch(count, copies, failed, flags, stream, kLegacy);
}
SIMGPU_API cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed,
                                     unsigned long long flags, CUstream stream) {
  return CopyBatch(count, copies, failed, flags, stream, kPerThread);
}
SIMGPU_API cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                                   CUstream stream) {
  return CopyBatch(count, copies, nullptr, flags, stream, kLegacy);
}
SIMGPU_API cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long flags,
                                        CUstream stream) {
  return CopyBatch(count, copies, nullptr, flags, stream, kPerThread);
}

// CUDA 13.2: newer than the header here.
static CUresult CopyWith(const CUDA_MEMCPY3D_BATCH_OP* copy, unsigned long long flags, CUstream stream,
                         DefaultStream variant) {
  SIMGPU_ENTER(cuMemcpy3DWithAttributesAsync);
  if (copy == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return CopyOne(d, *copy, stream, variant);
}
SIMGPU_API cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP* copy, unsigned long long flags, CUstream stream) {
  return CopyWith(copy, flags, stream, kLegacy);
}
SIMGPU_API cuMemcpy3DWithAttributesAsync_ptsz(CUDA_MEMCPY3D_BATCH_OP* copy, unsigned long long flags, CUstream stream) {
  return CopyWith(copy, flags, stream, kPerThread);
}

}  // namespace simgpu
