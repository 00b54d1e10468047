// A program on the runtime API, linked with the shared libcudart: allocations of all kinds on one stream, then on two.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#define OK(call)                                           \
  do {                                                     \
    if ((call) != cudaSuccess) {                           \
      fprintf(stderr, "%d: %s failed\n", __LINE__, #call); \
      exit(3);                                             \
    }                                                      \
  } while (false)

int main() {
  void* weights = nullptr;
  OK(cudaMalloc(&weights, 1 << 20));
  cudaStream_t stream = nullptr;
  for (int i = 0; i < 40; ++i) {
    if (i == 20) OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *a = nullptr, *b = nullptr, *c = nullptr;
    size_t pitch = 0;
    OK(cudaMalloc(&a, 3 << 20));
    OK(cudaMallocPitch(&b, &pitch, 1000, 100));
    OK(cudaMallocAsync(&c, 2 << 20, stream));
    OK(cudaMemsetAsync(a, 1, 3 << 20, stream));
    OK(cudaMemset(b, 1, pitch * 100));
    OK(cudaMemcpyAsync(c, a, 2 << 20, cudaMemcpyDeviceToDevice, stream));
    OK(cudaMemcpyAsync(weights, c, 1 << 20, cudaMemcpyDeviceToDevice, stream));
    OK(cudaFree(a));
    OK(cudaFreeAsync(c, stream));
    OK(cudaFree(b));
  }
  OK(cudaFree(weights));
  return 0;
}
