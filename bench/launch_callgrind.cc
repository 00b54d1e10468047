// Launches a kernel with three pointers and a number LAUNCHES times, among 200 live blocks, for an instruction count by
// callgrind (README.md here). Run it under the preload, on the simulated device.
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2)
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr char kPtx[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry AddArraysOfFloat(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  ret;
}
)ptx";

void Check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "launch_callgrind: %s: CUresult %d\n", call, static_cast<int>(result));
  exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  const long launches = argc == 2 ? strtol(argv[1], nullptr, 10) : 0;
  if (launches <= 0) {
    fprintf(stderr, "launch_callgrind: give the number of launches\n");
    return 2;
  }
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  Check(cuInit(0), "cuInit");
  Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Check(cuModuleLoadData(&module, kPtx), "cuModuleLoadData");
  Check(cuModuleGetFunction(&function, module, "AddArraysOfFloat"), "cuModuleGetFunction");
  std::vector<CUdeviceptr> blocks(200);
  for (CUdeviceptr& block : blocks) Check(cuMemAlloc_v2(&block, 4096), "cuMemAlloc");
  uint32_t n = 1024;
  for (long i = 0; i < launches; ++i) {
    CUdeviceptr a = blocks[i % 200], b = blocks[(i * 7 + 1) % 200], c = blocks[(i * 13 + 2) % 200] + 64;
    void* parameters[] = {&a, &b, &c, &n};
    Check(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  }
  Check(cuCtxSynchronize(), "cuCtxSynchronize");
  return 0;
}
