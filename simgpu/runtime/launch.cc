// Launches and queries about kernels.
#include <algorithm>
#include <vector>

#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& Configurations() {
  static thread_local std::vector<Configuration> stack;
  return stack;
}

cudaError_t Launch(int pt, CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream) {
  if (kernel == nullptr) return Set(cudaErrorInvalidDeviceFunction);
  return Set(Driver().cuLaunchKernel[pt](reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                         block.z, static_cast<unsigned>(shared), stream, arguments, nullptr));
}

cudaError_t LaunchFunction(int pt, const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                           cudaStream_t stream) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Launch(pt, kernel, grid, block, arguments, shared, stream);
}

CUlaunchConfig Convert(const cudaLaunchConfig_t& config) {
  CUlaunchConfig c = {};
  c.gridDimX = config.gridDim.x;
  c.gridDimY = config.gridDim.y;
  c.gridDimZ = config.gridDim.z;
  c.blockDimX = config.blockDim.x;
  c.blockDimY = config.blockDim.y;
  c.blockDimZ = config.blockDim.z;
  c.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  c.hStream = config.stream;
  c.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  c.numAttrs = config.numAttrs;
  return c;
}

}  // namespace

#define CUDART_INTERNAL extern "C" CUDART_VISIBLE

CUDART_INTERNAL unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                               CUstream_st* stream) {
  Configurations().push_back({grid, block, shared, stream});
  return 0;
}

CUDART_INTERNAL cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                                 void* stream) {
  std::vector<Configuration>& stack = Configurations();
  if (stack.empty()) return Set(cudaErrorMissingConfiguration);
  *grid = stack.back().grid;
  *block = stack.back().block;
  *shared = stack.back().shared;
  *static_cast<cudaStream_t*>(stream) = stack.back().stream;
  stack.pop_back();
  return cudaSuccess;
}

CUDART_INTERNAL cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  CUDART_READY();
  return Set(FindKernel(function, reinterpret_cast<CUkernel*>(kernel)));
}

CUDART_INTERNAL cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                         size_t shared, cudaStream_t stream) {
  CUDART_READY();
  return Launch(0, reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared, stream);
}

CUDART_INTERNAL cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                              void** arguments, size_t shared, cudaStream_t stream) {
  CUDART_READY();
  return Launch(1, reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared, stream);
}

CUDART_BOTH(cudaLaunchKernel, cudaLaunchKernel_ptsz,
            (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
            (function, grid, block, arguments, shared, stream),
            { return LaunchFunction(pt, function, grid, block, arguments, shared, stream); })

CUDART_BOTH(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz,
            (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
            (function, grid, block, arguments, shared, stream), {
              CUDART_READY();
              CUkernel kernel = nullptr;
              if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
              return Set(drv.cuLaunchCooperativeKernel[pt](reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z,
                                                           block.x, block.y, block.z, static_cast<unsigned>(shared),
                                                           stream, arguments));
            })

CUDART_BOTH(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz,
            (const cudaLaunchConfig_t* config, const void* function, void** arguments), (config, function, arguments), {
              CUDART_READY();
              CUkernel kernel = nullptr;
              if (config == nullptr) return Set(cudaErrorInvalidConfiguration);
              if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
              const CUlaunchConfig c = Convert(*config);
              return Set(drv.cuLaunchKernelEx[pt](&c, reinterpret_cast<CUfunction>(kernel), arguments, nullptr));
            })

CUDART_API cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (attributes == nullptr) return Set(cudaErrorInvalidValue);
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  const auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    drv.cuKernelGetAttribute(&value, attribute, kernel, CurrentDevice());
    return value;
  };
  *attributes = {};
  attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  attributes->constSizeBytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  attributes->localSizeBytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return cudaSuccess;
}

CUDART_API cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(drv.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, CurrentDevice()));
}

CUDART_API cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

CUDART_API cudaFuncGetName(const char** name, const void* function) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(drv.cuKernelGetName(name, kernel));
}

CUDART_API cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(drv.cuKernelGetParamInfo(kernel, index, offset, bytes));
}

CUDART_API cudaGetFuncBySymbol(cudaFunction_t* result, const void* function) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(drv.cuKernelGetFunction(result, kernel));
}

CUDART_API cudaGetKernel(cudaKernel_t* result, const void* function) {
  CUDART_READY();
  if (FindKernel(function, reinterpret_cast<CUkernel*>(result)) != CUDA_SUCCESS) {
    return Set(cudaErrorInvalidDeviceFunction);
  }
  return cudaSuccess;
}

CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                  size_t shared, unsigned flags) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, reinterpret_cast<CUfunction>(kernel),
                                                                      block_size, shared, flags));
}

CUDART_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                         size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

CUDART_API cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  return Set(
      drv.cuOccupancyAvailableDynamicSMemPerBlock(bytes, reinterpret_cast<CUfunction>(kernel), blocks, block_size));
}

CUDART_API cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (config == nullptr) return Set(cudaErrorInvalidValue);
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  const CUlaunchConfig c = Convert(*config);
  return Set(drv.cuOccupancyMaxPotentialClusterSize(size, reinterpret_cast<CUfunction>(kernel), &c));
}

CUDART_API cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  CUDART_READY();
  CUkernel kernel = nullptr;
  if (config == nullptr) return Set(cudaErrorInvalidValue);
  if (FindKernel(function, &kernel) != CUDA_SUCCESS) return Set(cudaErrorInvalidDeviceFunction);
  const CUlaunchConfig c = Convert(*config);
  return Set(drv.cuOccupancyMaxActiveClusters(clusters, reinterpret_cast<CUfunction>(kernel), &c));
}
