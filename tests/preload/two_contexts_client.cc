// Memory that the work of one context has used goes to another one's work, on the simulated device, whose checker
// judges. SIMGPU_FAIL may refuse hotpack the other context: then the request may fail, or the host waits.
#include <cuda.h>

#include "tests/preload/answers_client.h"

namespace {

constexpr size_t kBytes = 8 << 20;

}  // namespace

int main() {
  CUcontext first = nullptr, second = nullptr;
  CUdeviceptr block = 0, next = 0;
  OK(cuInit(0));
  OK(cuCtxCreate(&first, nullptr, 0, 0));
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  OK(cuMemAlloc(&block, kBytes));
  OK(cuCtxSetCurrent(first));
  OK(cuMemsetD8Async(block, 1, kBytes, nullptr));  // the first context's default stream
  OK(cuCtxSetCurrent(second));
  OK(cuMemFree(block));
  if (cuMemAlloc(&next, kBytes) != CUDA_SUCCESS) return 0;
  CUcontext current = nullptr;
  OK(cuCtxGetCurrent(&current));
  CHECK(current == second);
  OK(cuMemsetD8Async(next, 3, kBytes, nullptr));  // the second one's
  OK(cuCtxSynchronize());
  printf("%s\n", next == block ? "the same memory" : "other memory");
  return 0;
}
