// Attributes and occupancy of functions: plausible constants.
#include <algorithm>

#include "simgpu/driver/api.h"
#include "simgpu/driver/module.h"

namespace simgpu {
namespace {

constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kThreadsPerBlock = 1024;
constexpr size_t kSharedPerBlock = 227 << 10;

Kernel* From(CUkernel handle) { return reinterpret_cast<Kernel*>(handle); }
Kernel* From(CUfunction handle) { return reinterpret_cast<Kernel*>(handle); }

CUresult Get(Driver& d, int* value, CUfunction_attribute attribute, const Kernel* kernel) {
  if (value == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(const_cast<Kernel*>(kernel))) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = kThreadsPerBlock;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = kernel->attributes[attribute] != 0 ? kernel->attributes[attribute] : 48 << 10;
      break;
    default:
      *value = kernel->attributes[attribute];
  }
  return CUDA_SUCCESS;
}

CUresult Set(Driver& d, CUfunction_attribute attribute, int value, Kernel* kernel) {
  if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  kernel->attributes[attribute] = value;
  return CUDA_SUCCESS;
}

CUresult Blocks(Driver& d, int* blocks, CUfunction function, int block_size, size_t shared) {
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(From(function))) return CUDA_ERROR_INVALID_HANDLE;
  int most = std::min(32, kThreadsPerMultiprocessor / std::min(block_size, kThreadsPerMultiprocessor));
  if (shared > 0) most = std::min(most, static_cast<int>(kSharedPerBlock / shared));
  *blocks = block_size > kThreadsPerBlock ? 0 : most;
  return CUDA_SUCCESS;
}

CUresult BlockSize(Driver& d, int* min_grid, int* block_size, CUfunction function, int limit) {
  if (min_grid == nullptr || block_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(From(function))) return CUDA_ERROR_INVALID_HANDLE;
  *block_size = limit > 0 ? std::min(limit, kThreadsPerBlock) : kThreadsPerBlock;
  *min_grid = 132 * (kThreadsPerMultiprocessor / kThreadsPerBlock);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  SIMGPU_ENTER(cuFuncGetAttribute);
  return Get(d, value, attribute, From(function));
}
SIMGPU_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  SIMGPU_ENTER(cuKernelGetAttribute);
  return Get(d, value, attribute, From(kernel));
}
SIMGPU_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  SIMGPU_ENTER(cuFuncSetAttribute);
  return Set(d, attribute, value, From(function));
}
SIMGPU_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  SIMGPU_ENTER(cuKernelSetAttribute);
  return Set(d, attribute, value, From(kernel));
}
SIMGPU_API cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  SIMGPU_ENTER(cuFuncSetCacheConfig);
  return CUDA_SUCCESS;
}
SIMGPU_API cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig) {
  SIMGPU_ENTER(cuFuncSetSharedMemConfig);
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) {
  SIMGPU_ENTER(cuKernelSetCacheConfig);
  return CUDA_SUCCESS;
}
SIMGPU_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction) {
  SIMGPU_ENTER(cuFuncIsLoaded);
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
SIMGPU_API cuFuncLoad(CUfunction) {
  SIMGPU_ENTER(cuFuncLoad);
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                       size_t shared) {
  SIMGPU_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  return Blocks(d, blocks, function, block_size, shared);
}
SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block_size,
                                                                size_t shared, unsigned) {
  SIMGPU_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  return Blocks(d, blocks, function, block_size, shared);
}
SIMGPU_API cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, CUfunction function, CUoccupancyB2DSize,
                                            size_t, int limit) {
  SIMGPU_ENTER(cuOccupancyMaxPotentialBlockSize);
  return BlockSize(d, min_grid, block_size, function, limit);
}
SIMGPU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block_size, CUfunction function,
                                                     CUoccupancyB2DSize, size_t, int limit, unsigned) {
  SIMGPU_ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
  return BlockSize(d, min_grid, block_size, function, limit);
}
SIMGPU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction, int blocks, int) {
  SIMGPU_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
  if (bytes == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  *bytes = std::min<size_t>(kSharedPerBlock, kSharedPerBlock / blocks);
  return CUDA_SUCCESS;
}
SIMGPU_API cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  SIMGPU_ENTER(cuOccupancyMaxPotentialClusterSize);
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *size = 8;
  return CUDA_SUCCESS;
}
SIMGPU_API cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  SIMGPU_ENTER(cuOccupancyMaxActiveClusters);
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *clusters = 16;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
