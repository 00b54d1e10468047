// Memory and the contexts of a device, on the simulated device, whose checker judges. SIMGPU_FAIL may refuse calls.
//   other_work   memory that the work of one context has used goes to another one's work
//   refused_end  a context that could not be destroyed, and its memory, are used further
#include <cuda.h>

#include "tests/preload/answers_client.h"

namespace {

constexpr size_t kBytes = 8 << 20;

// If hotpack is refused the other context, the request may fail, or the host waits.
void OtherWork() {
  CUcontext first = nullptr, second = nullptr;
  CUdeviceptr block = 0, next = 0;
  OK(cuCtxCreate(&first, nullptr, 0, 0));
  OK(cuCtxCreate(&second, nullptr, 0, 0));
  OK(cuMemAlloc(&block, kBytes));
  OK(cuCtxSetCurrent(first));
  OK(cuMemsetD8Async(block, 1, kBytes, nullptr));  // the first context's default stream
  OK(cuCtxSetCurrent(second));
  OK(cuMemFree(block));
  if (cuMemAlloc(&next, kBytes) != CUDA_SUCCESS) return;
  CUcontext current = nullptr;
  OK(cuCtxGetCurrent(&current));
  CHECK(current == second);
  OK(cuMemsetD8Async(next, 3, kBytes, nullptr));  // the second one's
  OK(cuCtxSynchronize());
  printf("%s\n", next == block ? "the same memory" : "other memory");
}

void RefusedEnd() {
  CUcontext context = nullptr;
  CUdeviceptr block = 0, next = 0;
  OK(cuCtxCreate(&context, nullptr, 0, 0));
  OK(cuMemAlloc(&block, kBytes));
  const CUresult ended = cuCtxDestroy(context);
  printf("%s\n", ended == CUDA_SUCCESS ? "ended" : "refused");
  if (ended == CUDA_SUCCESS) return;
  OK(cuMemsetD8Async(block, 1, kBytes, nullptr));
  OK(cuMemAlloc(&next, kBytes));
  CHECK(next != block);
  OK(cuMemsetD8Async(next, 2, kBytes, nullptr));
  OK(cuMemFree(block));
  OK(cuMemFree(next));
  OK(cuCtxDestroy(context));
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  OK(cuInit(0));
  if (strcmp(argv[1], "other_work") == 0) {
    OtherWork();
  } else if (strcmp(argv[1], "refused_end") == 0) {
    RefusedEnd();
  } else {
    return 2;
  }
  return 0;
}
