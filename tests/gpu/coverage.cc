// Does a request reach hotpack, whichever way the program makes it? Told by hotpack's own figures.
#include <cuda.h>

#include <functional>

#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

class Coverage {
 public:
  explicit Coverage(const Probe& probe) : probe_(probe) {}

  // `request` makes one request; `release` gives it back. `served`: hotpack is to answer it, else to leave it alone.
  void Ask(const std::string& name, bool served, const std::function<cudaError_t()>& request,
           const std::function<cudaError_t()>& release) const {
    const hotpack_stats before = probe_.Stats();
    HOTPACK_NEED(request());
    const hotpack_stats after = probe_.Stats();
    HOTPACK_NEED(release());
    const uint64_t answered = after.requests - before.requests;
    const uint64_t passed = after.passed_through - before.passed_through;
    const std::string seen = std::to_string(answered) + " answered, " + std::to_string(passed) + " passed through";
    if (!probe_.hotpack) {
      probe_.found->Skip("coverage." + name, "hotpack is not preloaded; the request succeeds");
    } else if (served) {
      probe_.found->Check(answered == 1 && passed == 0, "coverage." + name, "1 answered, 0 passed through", seen);
    } else {
      probe_.found->Check(answered == 0, "coverage." + name, "0 answered", seen);
    }
  }

 private:
  const Probe& probe_;
};

// The driver's allocation functions, found as libraries find them.
struct DriverPair {
  decltype(&::cuMemAlloc_v2) allocate = nullptr;
  decltype(&::cuMemFree_v2) release = nullptr;
};

DriverPair ByHandle() { return {HOTPACK_DRIVER_FUNCTION(cuMemAlloc_v2), HOTPACK_DRIVER_FUNCTION(cuMemFree_v2)}; }

DriverPair ByProcAddress() {
  // The form of 12.0, with five arguments; the names without version, and the version that introduced the signature.
  using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto get = reinterpret_cast<GetProcAddress>(DriverSymbol("cuGetProcAddress_v2"));
  DriverPair pair;
  if (get == nullptr) return pair;
  void* allocate = nullptr;
  void* release = nullptr;
  CUdriverProcAddressQueryResult status;
  if (get("cuMemAlloc", &allocate, 3020, 0, &status) == CUDA_SUCCESS &&
      get("cuMemFree", &release, 3020, 0, &status) == CUDA_SUCCESS) {
    pair.allocate = reinterpret_cast<decltype(pair.allocate)>(allocate);
    pair.release = reinterpret_cast<decltype(pair.release)>(release);
  }
  return pair;
}

cudaError_t AsRuntime(CUresult result) { return static_cast<cudaError_t>(result); }  // the numbers used here agree

void AskDriver(const Probe& probe, const Coverage& coverage, const std::string& name, const DriverPair& pair) {
  if (pair.allocate == nullptr || pair.release == nullptr) {
    probe.found->Skip("coverage." + name, "the driver does not have the functions");
    return;
  }
  CUdeviceptr address = 0;
  coverage.Ask(
      name, true, [&] { return AsRuntime(pair.allocate(&address, 5000)); },
      [&] { return AsRuntime(pair.release(address)); });
}

}  // namespace

void RunCoverage(Probe& probe) {
  const Coverage coverage(probe);
  void* p = nullptr;
  const auto release = [&] { return cudaFree(p); };
  const auto release_async = [&] { return cudaFreeAsync(p, nullptr); };
  coverage.Ask(
      "cudaMalloc", true, [&] { return cudaMalloc(&p, 5000); }, release);
  coverage.Ask(
      "cudaMallocAsync", true, [&] { return cudaMallocAsync(&p, 5000, nullptr); }, release_async);
  size_t pitch = 0;
  coverage.Ask(
      "cudaMallocPitch", true, [&] { return cudaMallocPitch(&p, &pitch, 1000, 50); }, release);
  probe.Must(pitch >= 1000 && pitch % 32 == 0, "coverage.pitch", "a multiple of 32 of at least 1000",
             std::to_string(pitch));
  cudaPitchedPtr box = {};
  coverage.Ask(
      "cudaMalloc3D", true,
      [&] {
        return cudaMalloc3D(&box, {1000, 20, 10});
      },
      [&] { return cudaFree(box.ptr); });
  cudaMemPool_t pool = nullptr;
  HOTPACK_NEED(cudaDeviceGetDefaultMemPool(&pool, 0));
  coverage.Ask(
      "cudaMallocFromPoolAsync", true, [&] { return cudaMallocFromPoolAsync(&p, 5000, pool, nullptr); }, release_async);
  if (!Probe::Has(cudaDevAttrManagedMemory)) {
    probe.found->Skip("coverage.cudaMallocManaged", "the device has no managed memory");
  } else {
    coverage.Ask(
        "cudaMallocManaged", false, [&] { return cudaMallocManaged(&p, kMiB, cudaMemAttachGlobal); }, release);
  }
  coverage.Ask(
      "cudaMallocHost", false, [&] { return cudaMallocHost(&p, kMiB); }, [&] { return cudaFreeHost(p); });
  AskDriver(probe, coverage, "cuMemAlloc_by_handle", ByHandle());
  AskDriver(probe, coverage, "cuMemAlloc_by_cuGetProcAddress", ByProcAddress());
}

}  // namespace hotpack::gpu
