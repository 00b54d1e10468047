// A program that only takes memory: growth_client MEBIBYTES. Nothing touches it.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

bool Ok(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return true;
  printf("%s: error %d\n", call, static_cast<int>(result));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr uint64_t kMiB = 1 << 20;
  constexpr uint64_t kSizes[] = {2 * kMiB, 20 * kMiB, 64 * kMiB, 700 << 10, 33 * kMiB + 1024, 200 * kMiB};
  const uint64_t total = argc > 1 ? strtoull(argv[1], nullptr, 10) * kMiB : 0;
  CUcontext context = nullptr;
  if (!Ok(cuInit(0), "cuInit")) return 1;
  if (!Ok(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain")) return 1;
  if (!Ok(cuCtxSetCurrent(context), "cuCtxSetCurrent")) return 1;
  size_t next = 0;
  for (uint64_t taken = 0; taken < total; next = (next + 1) % (sizeof(kSizes) / sizeof(kSizes[0]))) {
    CUdeviceptr address = 0;
    if (!Ok(cuMemAlloc(&address, kSizes[next]), "cuMemAlloc")) return 1;
    taken += kSizes[next];
  }
  return 0;
}
