#include "bench/request_allocator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/include/hotpack.h"

namespace hotpack::bench {
namespace {

// The runtime's functions by name, because a build needs neither its header nor its library. cudaError_t is an int;
// streams and pools are pointers; the values below are those of driver_types.h.
constexpr int kReleaseThreshold = 4;  // cudaMemPoolAttrReleaseThreshold, a uint64_t
constexpr size_t kTouched = 512;      // bytes

struct Runtime {
  int (*malloc)(void**, size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*malloc_async)(void**, size_t, void*) = nullptr;
  int (*free_async)(void*, void*) = nullptr;
  int (*memset_async)(void*, int, size_t, void*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*default_pool)(void**, int) = nullptr;
  int (*set_pool)(void*, int, void*) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

// The allocators' functions take no object, so one process measures one allocator.
Runtime runtime;
char nothing[1];

int CudaMallocAsync(void** pointer, size_t bytes) { return runtime.malloc_async(pointer, bytes, nullptr); }
int CudaFreeAsync(void* pointer) { return runtime.free_async(pointer, nullptr); }
int HotpackMalloc(void** pointer, size_t bytes) { return hotpack_malloc(pointer, bytes, nullptr); }
int HotpackFree(void* pointer) { return hotpack_free(pointer, nullptr); }
int NoMalloc(void** pointer, size_t) {
  *pointer = nothing;
  return 0;
}
int NoFree(void*) { return 0; }

absl::Status Load() {
  void* library = nullptr;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return absl::NotFoundError("neither libcudart.so.13 nor libcudart.so.12 can be loaded");
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) missing = name;
  };
  find("cudaMalloc", &runtime.malloc);
  find("cudaFree", &runtime.free);
  find("cudaMallocAsync", &runtime.malloc_async);
  find("cudaFreeAsync", &runtime.free_async);
  find("cudaMemsetAsync", &runtime.memset_async);
  find("cudaDeviceSynchronize", &runtime.synchronize);
  find("cudaDeviceGetDefaultMemPool", &runtime.default_pool);
  find("cudaMemPoolSetAttribute", &runtime.set_pool);
  find("cudaGetErrorString", &runtime.error_string);
  return missing.empty() ? absl::OkStatus() : absl::NotFoundError("the runtime library has no " + missing);
}

absl::Status Check(const char* call, int error) {
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(std::string(call) + ": " + runtime.error_string(error));
}

absl::Status KeepPool() {
  void* pool = nullptr;
  absl::Status status = Check("cudaDeviceGetDefaultMemPool", runtime.default_pool(&pool, 0));
  uint64_t all = UINT64_MAX;
  if (status.ok()) status = Check("cudaMemPoolSetAttribute", runtime.set_pool(pool, kReleaseThreshold, &all));
  return status;
}

class CudaRequestDevice : public RequestDevice {
 public:
  absl::StatusOr<RequestAllocator> Choose(const std::string& name) override {
    if (name == "cuda") return RequestAllocator{runtime.malloc, runtime.free};
    if (name == "hotpack") return RequestAllocator{HotpackMalloc, HotpackFree};
    if (name == "none") return RequestAllocator{NoMalloc, NoFree};
    if (name != "cuda-async") return absl::InvalidArgumentError("there is no allocator '" + name + "'");
    if (absl::Status status = KeepPool(); !status.ok()) return status;
    return RequestAllocator{CudaMallocAsync, CudaFreeAsync};
  }
  int Touch(void* pointer, size_t bytes) override {
    return runtime.memset_async(pointer, 0, std::min(bytes, kTouched), nullptr);
  }
  int Synchronize() override { return runtime.synchronize(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<RequestDevice>> RequestDevice::Open() {
  absl::Status status = Load();
  if (status.ok()) status = Check("cudaFree(0)", runtime.free(nullptr));  // creates the context
  if (!status.ok()) return status;
  return std::make_unique<CudaRequestDevice>();
}

}  // namespace hotpack::bench
