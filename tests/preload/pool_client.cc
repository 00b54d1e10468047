// A program of the asynchronous interface in which nothing repeats. pool_client REQUESTS
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 2;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return 2;
  std::vector<CUdeviceptr> blocks(50);
  const uint64_t requests = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1000;
  uint64_t state = 1;
  for (uint64_t i = 0; i < requests; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    CUdeviceptr& block = blocks[(state >> 33) % blocks.size()];
    if (block != 0 && cuMemFreeAsync(block, stream) != CUDA_SUCCESS) return 3;
    if (cuMemAllocAsync(&block, 1 + (state >> 40) % 1000000, stream) != CUDA_SUCCESS) return 4;
  }
  for (CUdeviceptr block : blocks) {
    if (block != 0 && cuMemFreeAsync(block, stream) != CUDA_SUCCESS) return 3;
  }
  return cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 5;
}
