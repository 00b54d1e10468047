// Work of every kind that names blocks, one piece after the other. On the driver API, for launches_test.cc.
#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2, _ptsz)
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr char kPtx[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry pointers(.param .u64 a, .param .u32 n, .param .u64 b) { ret; }
.visible .entry by_value(.param .align 8 .b8 s[24], .param .u32 n) { ret; }
.visible .entry nothing() { ret; }
)ptx";

void Check(CUresult result, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: CUresult %d\n", line, static_cast<int>(result));
  exit(3);
}
#define OK(call) Check(call, __LINE__)

CUdeviceptr Block(size_t bytes) {
  CUdeviceptr block = 0;
  OK(cuMemAlloc_v2(&block, bytes));
  return block;
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction pointers = nullptr, nothing = nullptr;
  CUkernel by_value = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, kPtx));
  OK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuModuleGetFunction(&pointers, module, "pointers"));
  OK(cuModuleGetFunction(&nothing, module, "nothing"));
  OK(cuLibraryGetKernel(&by_value, library, "by_value"));
  CUdeviceptr a = Block(1000), b = Block(512), c = Block(4096);  // ids 0, 1, 2

  uint32_t n = 7;
  void* plain[] = {&a, &n, &b};
  OK(cuLaunchKernel(pointers, 1, 1, 1, 1, 1, 1, 0, nullptr, plain, nullptr));
  CUdeviceptr inside = c + 4095, behind = a + 1000;  // beyond the 1000 bytes asked for
  void* interior[] = {&inside, &n, &behind};
  OK(cuLaunchKernel_ptsz(pointers, 1, 1, 1, 1, 1, 1, 0, nullptr, interior, nullptr));
  struct {
    uint32_t x, y;
    CUdeviceptr first, second;
  } value = {1, 2, b, b};
  void* structure[] = {&value, &n};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  OK(cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(by_value), structure, nullptr));
  struct {
    CUdeviceptr a;
    uint64_t n;
    CUdeviceptr b;
  } buffer = {c, 7, a};
  size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(pointers, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  OK(cuLaunchCooperativeKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr));

  char host[64] = {};
  OK(cuMemcpyHtoD_v2(a, host, 64));
  OK(cuMemcpyDtoH_v2(host, b, 64));
  OK(cuMemcpyDtoD_v2(a, c, 64));
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemcpyHtoDAsync_v2(c, host, 64, stream));
  OK(cuMemsetD8Async(b, 1, 64, stream));
  OK(cuMemsetD32_v2(a, 1, 16));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = c;
  copy.WidthInBytes = 16;
  copy.Height = 1;
  OK(cuMemcpy2D_v2(&copy));

  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuLaunchKernel(pointers, 1, 1, 1, 1, 1, 1, 0, stream, plain, nullptr));  // not work yet
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
  OK(cuGraphLaunch(executable, stream));
  OK(cuStreamSynchronize(stream));

  // Another module's kernel may get the handle of one that is gone.
  OK(cuModuleUnload(module));
  OK(cuModuleLoadData(&module, kPtx));
  OK(cuModuleGetFunction(&nothing, module, "nothing"));
  OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));

  OK(cuMemFree_v2(b));
  value = {1, 2, b, b};  // the rest of it in a struct
  OK(cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(by_value), structure, nullptr));
  b = Block(512);  // id 3, at the same address as like as not
  OK(cuMemsetD8_v2(b, 0, 1));
  return 0;
}
