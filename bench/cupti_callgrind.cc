// Launches a kernel exactly COUNT times, for a count by callgrind of what the collector of kernel times adds to each
// (README.md here). To be run under the preload, on the simulated device, with libcupti's stand-in.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry work(.param .u64 work_param_0) { ret; }
)";
  const long count = argc == 2 ? strtol(argv[1], nullptr, 10) : 0;
  if (count <= 0) {
    fprintf(stderr, "cupti_callgrind: give the number of launches\n");
    return 2;
  }
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr block = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuModuleLoadData(&module, kPtx) != CUDA_SUCCESS ||
      cuModuleGetFunction(&kernel, module, "work") != CUDA_SUCCESS || cuMemAlloc(&block, 1 << 20) != CUDA_SUCCESS) {
    return 3;
  }
  void* parameters[] = {&block};
  for (long i = 0; i < count; ++i) {
    if (cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) != CUDA_SUCCESS) return 3;
  }
  return 0;
}
