// Compiled twice: HOTPACK_GPU_KERNEL_TABLE names the table that this unit defines.
#include "tests/gpu/kernels.h"

namespace hotpack::gpu {
namespace {

constexpr unsigned kThreads = 256;

// %globaltimer counts nanoseconds of wall time, whatever the clocks do (PTX ISA, special registers). Its steps can be
// as large as a millisecond or it may be stopped by a debugger, so the cycle counter bounds it: no GPU has more than 4
// GHz.
__device__ unsigned long long Nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

struct Start {
  unsigned long long ns;
  long long cycles;
};

__device__ Start Now() { return {Nanoseconds(), clock64()}; }

__device__ bool Over(const Start& start, unsigned long long ns) {
  // Signed: a clock may be read as a little less than before.
  const auto passed = static_cast<long long>(Nanoseconds() - start.ns);
  const long long cycles = clock64() - start.cycles;
  return passed >= static_cast<long long>(ns) || cycles >= static_cast<long long>(4 * ns);
}

__global__ void Spin(unsigned long long ns) {
  const Start start = Now();
  while (!Over(start, ns)) {
  }
}

__global__ void KeepWriting(uint32_t* p, size_t words, uint32_t value, unsigned long long ns) {
  const Start start = Now();
  volatile uint32_t* const out = p;  // each store is made, and goes to memory that other streams see
  do {
    for (size_t i = threadIdx.x; i < words; i += blockDim.x) out[i] = value;
  } while (!Over(start, ns));
}

__global__ void Watch(const uint32_t* p, size_t words, uint32_t value, unsigned long long ns,
                      unsigned long long* wrong) {
  const Start start = Now();
  const volatile uint32_t* const in = p;
  unsigned long long mine = 0;
  do {
    for (size_t i = threadIdx.x; i < words; i += blockDim.x) mine += in[i] != value;
  } while (!Over(start, ns));
  if (mine != 0) atomicAdd(wrong, mine);
}

cudaError_t LaunchSpin(uint64_t ns, cudaStream_t stream) {
  Spin<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

cudaError_t LaunchKeepWriting(uint32_t* p, size_t words, uint32_t value, uint64_t ns, cudaStream_t stream) {
  KeepWriting<<<1, kThreads, 0, stream>>>(p, words, value, ns);
  return cudaGetLastError();
}

cudaError_t LaunchWatch(const uint32_t* p, size_t words, uint32_t value, uint64_t ns, unsigned long long* wrong,
                        cudaStream_t stream) {
  Watch<<<1, kThreads, 0, stream>>>(p, words, value, ns, wrong);
  return cudaGetLastError();
}

}  // namespace

const Kernels& HOTPACK_GPU_KERNEL_TABLE() {
  static const Kernels kernels = {LaunchSpin, LaunchKeepWriting, LaunchWatch};
  return kernels;
}

}  // namespace hotpack::gpu
