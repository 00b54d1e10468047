// How long the simulated device takes; not a test of anything else. `simgpu_speed PAIRS LAUNCHES`.
#include <cuda_runtime_api.h>

#include <chrono>
#include <random>
#include <vector>

#include "tests/simgpu/support.h"

namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? atoi(argv[1]) : 10000, launches = argc > 2 ? atoi(argv[2]) : 10000;
  simgpu_test::Start();
  double start = Seconds();
  for (int i = 0; i < pairs; ++i) {
    void* p = nullptr;
    cudaMalloc(&p, 4096);
    cudaFree(p);
  }
  printf("one block at a time: %d cudaMalloc/cudaFree pairs in %.2f s\n", pairs, Seconds() - start);

  std::vector<void*> live(500);
  std::mt19937 random(1);
  start = Seconds();
  for (int i = 0; i < pairs; ++i) {
    void*& p = live[random() % live.size()];
    cudaFree(p);
    cudaMalloc(&p, size_t{512} << random() % 14);
  }
  printf("500 live blocks, 512 B to 4 MiB: %d pairs in %.2f s\n", pairs, Seconds() - start);

  const CUfunction kernel = simgpu_test::Kernel("many");
  start = Seconds();
  for (int i = 0; i < launches; ++i) {
    int n = 1;
    void* parameters[] = {&live[random() % live.size()], &n, &live[random() % live.size()]};
    MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  }
  printf("%d launches of two pointers in %.2f s\n", launches, Seconds() - start);

  start = Seconds();
  const CUdeviceptr arena = simgpu_test::NewArena(4096);
  const double mapped = Seconds() - start;
  start = Seconds();
  for (int i = 0; i < 4096; ++i) MUST(cuMemUnmap(arena + i * simgpu_test::kPage, simgpu_test::kPage));
  printf("4096 pages of 2 MiB: mapped in %.4f s, unmapped in %.4f s\n", mapped, Seconds() - start);
  return 0;
}
