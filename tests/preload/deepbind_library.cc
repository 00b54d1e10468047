// Allocates through its own dependency on the driver library.
#include <cuda.h>

extern "C" __attribute__((visibility("default"))) unsigned long long deepbind_allocate() {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 0;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&address, 4096) != CUDA_SUCCESS) return 0;
  return address;
}
