// Small programs that test their environment or end. process_test.cc runs them. `process_cases NAME` runs one.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/simgpu/support.h"
#include "tests/support/sanitized.h"

namespace {

using simgpu_test::Start;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(3);                                                                \
    }                                                                         \
  } while (false)

#ifdef HOTPACK_SANITIZED
constexpr bool kSanitized = true;  // shadow memory counts too
#else
constexpr bool kSanitized = false;
#endif

constexpr uint64_t kGiB = uint64_t{1} << 30;

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

// SIMGPU_MEMORY=80G
void BigDevice() {
  Start();
  size_t free = 0, total = 0;
  MUST(cuMemGetInfo(&free, &total));
  CHECK(total == 80 * kGiB && free == total);
  std::vector<CUdeviceptr> blocks(60);
  for (CUdeviceptr& p : blocks) {
    MUST(cuMemAlloc(&p, kGiB));
    MUST(cuMemsetD8(p, 0, kGiB));  // zeros need no memory
    MUST(cuMemsetD8(p + kGiB / 2, 1, 1 << 20));
  }
  MUST(cuMemGetInfo(&free, &total));
  CHECK(free == 20 * kGiB);
  const uint64_t resident = ResidentBytes();
  CHECK(kSanitized || resident < 256u << 20);
  CHECK(resident > 60u << 20);  // the written pages are resident
  CUdeviceptr p = 0;
  CHECK(cuMemAlloc(&p, 21 * kGiB) == CUDA_ERROR_OUT_OF_MEMORY);
  for (CUdeviceptr block : blocks) MUST(cuMemFree(block));
  CHECK(kSanitized || ResidentBytes() + (50u << 20) < resident);  // given back to the host
  MUST(cuMemAlloc(&p, 80 * kGiB));
}

// SIMGPU_MEMORY=8M: four pages.
// SIMGPU_VALUES=small: what is large reads as zeros and takes no memory, what is small reads as written.
void SmallValues() {
  Start();
  constexpr size_t kLarge = 256 << 20, kSmall = 4096;
  const std::vector<char> ones(kLarge, 1);
  std::vector<char> back(kLarge, 2);
  const uint64_t before = ResidentBytes();
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 2 * kLarge));
  MUST(cuMemcpyHtoD(p + kSmall, ones.data(), kSmall));  // the bytes behind the memory exist from now on
  MUST(cuMemcpyHtoD(p + kLarge, ones.data(), kLarge));
  MUST(cuMemsetD8(p + kLarge, 3, kLarge));
  MUST(cuMemcpyDtoD(p + kLarge, p, kLarge / 2));
  CHECK(kSanitized || ResidentBytes() < before + (16u << 20));
  MUST(cuMemcpyDtoH(back.data(), p, kSmall * 3));
  CHECK(back[kSmall - 1] == 0 && back[kSmall] == 1 && back[2 * kSmall - 1] == 1 && back[2 * kSmall] == 0);
  MUST(cuMemcpyDtoH(back.data(), p + kLarge, kLarge));
  CHECK(std::count(back.begin(), back.end(), 0) == static_cast<ptrdiff_t>(kLarge));
  MUST(cuMemcpyHtoD(p, ones.data(), kLarge));  // over what was small: zeros too
  MUST(cuMemcpyDtoH(back.data(), p, kSmall * 3));
  CHECK(back[kSmall] == 0);
  std::vector<char> host(kLarge, 4);
  MUST(cuMemcpy(reinterpret_cast<CUdeviceptr>(host.data()), reinterpret_cast<CUdeviceptr>(ones.data()), kLarge));
  CHECK(host[0] == 1 && host[kLarge - 1] == 1);  // host memory is the program's
}

void OutOfMemory() {
  Start();
  CUdeviceptr a = 0, b = 0;
  MUST(cuMemAlloc(&a, 3 << 20));
  const auto handle = simgpu_test::NewHandle();
  MUST(cuMemAlloc(&b, 4096));
  const CUmemAllocationProp prop = simgpu_test::DeviceMemory();
  CUmemGenericAllocationHandle more = 0;
  CHECK(cuMemCreate(&more, simgpu_test::kPage, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr c = 0;
  CHECK(cuMemAlloc(&c, 1 << 20) == CUDA_ERROR_OUT_OF_MEMORY);
  MUST(cuMemAlloc(&c, 4096));  // the shared page has room
  MUST(cuMemRelease(handle));
  MUST(cuMemCreate(&more, simgpu_test::kPage, &prop, 0));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&c), 1 << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
}

// Memory that a pool keeps is given up before an allocation fails.
void PoolGivesWay() {
  Start();
  CUmemoryPool pool = nullptr;
  uint64_t threshold = ~uint64_t{0};
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CUdeviceptr p = 0;
  MUST(cuMemAllocAsync(&p, 6 << 20, nullptr));
  MUST(cuMemFreeAsync(p, nullptr));
  MUST(cuMemAlloc(&p, 8 << 20));
}

// SIMGPU_FAIL="cuMemCreate:3,cuMemAlloc:every:2,cuMemMap:2+=700,cuStreamCreate:1"
void Fails() {
  Start();
  const CUmemAllocationProp prop = simgpu_test::DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  for (int call = 1; call <= 5; ++call) {
    CHECK(cuMemCreate(&handle, simgpu_test::kPage, &prop, 0) == (call == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS));
  }
  CUdeviceptr p = 0;
  for (int call = 1; call <= 6; ++call) {  // through the runtime too: it is the same entry point
    void* q = nullptr;
    const int result = call <= 2 ? static_cast<int>(cuMemAlloc(&p, 64)) : static_cast<int>(cudaMalloc(&q, 64));
    CHECK(result == (call % 2 == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS));
  }
  CUdeviceptr base = 0;
  MUST(cuMemAddressReserve(&base, 4 * simgpu_test::kPage, 0, 0, 0));
  for (int call = 1; call <= 4; ++call) {
    const CUresult result = cuMemMap(base + (call - 1) * simgpu_test::kPage, simgpu_test::kPage, 0, handle, 0);
    CHECK(result == (call >= 2 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS));
  }
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, 0) == CUDA_ERROR_UNKNOWN);
  MUST(cuStreamCreate(&stream, 0));
}

struct FreesAtExit {
  const char* when;
  CUdeviceptr p = 0;
  ~FreesAtExit() { fprintf(stderr, "%s: %d\n", when, static_cast<int>(cuMemFree(p))); }
};

// The object made first is destroyed last: after the driver's end.
void LateCalls() {
  static FreesAtExit before{"made before cuInit"};
  Start();
  static FreesAtExit after{"made after cuInit"};
  MUST(cuMemAlloc(&before.p, 64));
  MUST(cuMemAlloc(&after.p, 64));
}

void BeforeInit() {
  CUdeviceptr p = 0;
  CHECK(cuMemAlloc(&p, 64) == CUDA_ERROR_NOT_INITIALIZED);
  MUST(cuInit(0));
  CHECK(cuMemAlloc(&p, 64) == CUDA_ERROR_INVALID_CONTEXT);
}

void Forks() {
  Start();
  CUdeviceptr p = 0;
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = cuMemAlloc(&p, 64) == CUDA_ERROR_NOT_INITIALIZED;
    exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  MUST(cuMemAlloc(&p, 64));
}

// Before cuInit nothing is lost by a fork, and the child's own settings count.
void ForksEarly() {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMGPU_FAIL", "cuMemAlloc:1", 1);
    Start();
    CUdeviceptr p = 0;
    CHECK(cuMemAlloc(&p, 64) == CUDA_ERROR_OUT_OF_MEMORY);
    MUST(cuMemAlloc(&p, 64));
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Start();
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 64));
}

// SIMGPU_FAIL=any:5,cuMemAlloc@libcudart:2,any@!libcudart:7: calls of all names count together, and those of each
// caller. The calls here are from this program, except inside cudaMalloc.
void FailsByCaller() {
  Start();  // three calls
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 64));
  CHECK(cuMemFree(p) == CUDA_ERROR_UNKNOWN);  // the fifth of all
  MUST(cuMemFree(p));
  CHECK(cuStreamSynchronize(nullptr) == CUDA_ERROR_UNKNOWN);  // the seventh of ours
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    void* q = nullptr;
    failed += cudaMalloc(&q, 64) != cudaSuccess ? 1 : 0;
  }
  CHECK(failed == 1);
}

// SIMGPU_DEVICES=3
void Devices() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count == 3);
  void* p = nullptr;
  CHECK(cudaSetDevice(2) == cudaSuccess);
  CHECK(cudaMalloc(&p, kGiB) == cudaSuccess);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, p) == cudaSuccess);
  CHECK(attributes.device == 2 && attributes.type == cudaMemoryTypeDevice);
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess && total - free == kGiB);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess && total == free);
  CHECK(cudaSetDevice(3) == cudaErrorInvalidDevice);
  CHECK(cudaFree(p) == cudaSuccess);
}

// Many threads at once, each on its own stream, with the runtime.
void Threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      cudaStream_t stream = nullptr;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
      for (int i = 0; i < 2000; ++i) {
        void *p = nullptr, *q = nullptr;
        CHECK(cudaMalloc(&p, 512 * (1 + (i * 7 + t) % 3000)) == cudaSuccess);
        CHECK(cudaMallocAsync(&q, 4096, stream) == cudaSuccess);
        CHECK(cudaMemsetAsync(p, i, 100, stream) == cudaSuccess);
        CHECK(cudaMemcpyAsync(q, p, 100, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
        unsigned char byte = 0;
        CHECK(cudaMemcpyAsync(&byte, q, 1, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
        CHECK(byte == static_cast<unsigned char>(i));
        CHECK(cudaFreeAsync(q, stream) == cudaSuccess);
        CHECK(cudaFree(p) == cudaSuccess);
      }
      CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t free = 0, total = 0;
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess && free == total);
}

// The host cannot follow a device pointer.
void HostAccess() {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 4096) == cudaSuccess);
  *static_cast<volatile char*>(p) = 1;
}

using Case = void (*)();
const std::map<std::string, Case> kCases = {{"BigDevice", BigDevice},
                                            {"SmallValues", SmallValues},
                                            {"OutOfMemory", OutOfMemory},
                                            {"PoolGivesWay", PoolGivesWay},
                                            {"Fails", Fails},
                                            {"LateCalls", LateCalls},
                                            {"BeforeInit", BeforeInit},
                                            {"ForksEarly", ForksEarly},
                                            {"FailsByCaller", FailsByCaller},
                                            {"Forks", Forks},
                                            {"Devices", Devices},
                                            {"Threads", Threads},
                                            {"HostAccess", HostAccess},
                                            {"Start", [] { Start(); }}};

}  // namespace

int main(int argc, char** argv) {
  const auto found = kCases.find(argc > 1 ? argv[1] : "");
  if (found == kCases.end()) return 2;
  found->second();
  return 0;
}
