// Memory operations of streams: writes of a value, and waits for one. A wait is a use of its address, and ends at once:
// nothing else runs that could write the value.
#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

CUresult Write(Driver& d, Stream* stream, uint64_t address, uint64_t value, unsigned bytes) {
  if (address == 0 || address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (d.memory.Find(address).kind == RegionKind::kForeign) return CUDA_ERROR_INVALID_VALUE;
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [=](Driver& driver, Epoch op, uint64_t given_before) {
    driver.checker.Use(op, address, bytes, "a write of a value", given_before);
    const unsigned halves[2] = {static_cast<unsigned>(value), static_cast<unsigned>(value >> 32)};
    for (unsigned i = 0; i < bytes / 4; ++i) {
      const CUresult status = FillBytes(driver, address + 4 * i, &halves[i], 4, 4);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  });
}

CUresult Await(Driver& d, Stream* stream, uint64_t address, unsigned bytes) {
  if (address == 0 || address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (d.memory.Find(address).kind == RegionKind::kForeign) return CUDA_ERROR_INVALID_VALUE;
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [=](Driver& driver, Epoch op, uint64_t given_before) {
    driver.checker.Use(op, address, bytes, "a wait for a value", given_before);
    return CUDA_SUCCESS;
  });
}

CUresult One(Driver& d, Stream* stream, const CUstreamBatchMemOpParams& op) {
  switch (op.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return Write(d, stream, op.writeValue.address, op.writeValue.value, 4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return Write(d, stream, op.writeValue.address, op.writeValue.value64, 8);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return Await(d, stream, op.waitValue.address, 4);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return Await(d, stream, op.waitValue.address, 8);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Batch(CUstream handle, unsigned count, const CUstreamBatchMemOpParams* ops, unsigned flags,
               DefaultStream variant) {
  SIMGPU_ENTER(cuStreamBatchMemOp);
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (ops == nullptr || count == 0 || count > 256 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult status = One(d, stream, ops[i]); status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace

// The first and the second version, each for both default streams.
#define SIMGPU_VALUE(name, type, call)                                                                 \
  static CUresult name##_Do(CUstream handle, CUdeviceptr address, type value, DefaultStream variant) { \
    SIMGPU_ENTER(name);                                                                                \
    SIMGPU_WORK_STREAM(stream, handle, variant);                                                       \
    static_cast<void>(value);                                                                          \
    return call;                                                                                       \
  }                                                                                                    \
  SIMGPU_API name(CUstream stream, CUdeviceptr address, type value, unsigned) {                        \
    return name##_Do(stream, address, value, kLegacy);                                                 \
  }                                                                                                    \
  SIMGPU_API name##_ptsz(CUstream stream, CUdeviceptr address, type value, unsigned) {                 \
    return name##_Do(stream, address, value, kPerThread);                                              \
  }                                                                                                    \
  SIMGPU_API name##_v2(CUstream stream, CUdeviceptr address, type value, unsigned) {                   \
    return name##_Do(stream, address, value, kLegacy);                                                 \
  }                                                                                                    \
  SIMGPU_API name##_v2_ptsz(CUstream stream, CUdeviceptr address, type value, unsigned) {              \
    return name##_Do(stream, address, value, kPerThread);                                              \
  }

SIMGPU_VALUE(cuStreamWriteValue32, cuuint32_t, Write(d, stream, address, value, 4))
SIMGPU_VALUE(cuStreamWriteValue64, cuuint64_t, Write(d, stream, address, value, 8))
SIMGPU_VALUE(cuStreamWaitValue32, cuuint32_t, Await(d, stream, address, 4))
SIMGPU_VALUE(cuStreamWaitValue64, cuuint64_t, Await(d, stream, address, 8))

SIMGPU_API cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
  return Batch(stream, count, ops, flags, kLegacy);
}
SIMGPU_API cuStreamBatchMemOp_ptsz(CUstream stream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
  return Batch(stream, count, ops, flags, kPerThread);
}
SIMGPU_API cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
  return Batch(stream, count, ops, flags, kLegacy);
}
SIMGPU_API cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
  return Batch(stream, count, ops, flags, kPerThread);
}

}  // namespace simgpu
