// A small allocator to preload, like the one under test: it hooks cuMemAlloc and cuMemFree by symbol, by dlsym and by
// cuGetProcAddress, and serves every request from one mapped arena. TEST_ALLOCATOR=none: reuses memory without any
// order; sync: waits for the device first; overlap: forgets which memory is in use.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Dlsym = void* (*)(void*, const char*);

Dlsym RealDlsym() {
  void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return reinterpret_cast<Dlsym>(found);
}

template <typename Function>
Function Real(Function, const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(RealDlsym()(library, name));
}
#define REAL(symbol) Real(&symbol, #symbol)

constexpr uint64_t kPage = uint64_t{2} << 20, kPages = 16;

struct Arena {
  std::mutex mutex;
  CUdeviceptr base = 0, next = 0;
  std::vector<CUdeviceptr> free;
};
Arena arena;

bool Mode(const char* name) {
  const char* mode = getenv("TEST_ALLOCATOR");
  return mode != nullptr && strcmp(mode, name) == 0;
}

CUresult Prepare() {
  if (arena.base != 0) return CUDA_SUCCESS;
  CUresult result = REAL(cuMemAddressReserve)(&arena.base, kPages * kPage, 0, 0, 0);
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  for (uint64_t i = 0; i < kPages && result == CUDA_SUCCESS; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    result = REAL(cuMemCreate)(&handle, kPage, &prop, 0);
    if (result == CUDA_SUCCESS) result = REAL(cuMemMap)(arena.base + i * kPage, kPage, 0, handle, 0);
  }
  CUmemAccessDesc access = {};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (result == CUDA_SUCCESS) result = REAL(cuMemSetAccess)(arena.base, kPages * kPage, &access, 1);
  arena.next = arena.base;
  return result;
}

}  // namespace

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  std::lock_guard<std::mutex> lock(arena.mutex);
  if (const CUresult result = Prepare(); result != CUDA_SUCCESS) return result;
  if (Mode("overlap")) {
    *address = arena.base;
  } else if (!arena.free.empty()) {
    *address = arena.free.back();
    arena.free.pop_back();
  } else {
    *address = arena.next;
    arena.next += (bytes + 511) / 512 * 512;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  std::lock_guard<std::mutex> lock(arena.mutex);
  if (address < arena.base || address >= arena.next) return REAL(cuMemFree_v2)(address);
  if (Mode("sync")) REAL(cuCtxSynchronize)();
  arena.free.push_back(address);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  const CUresult result = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
  if (result != CUDA_SUCCESS || version < 3020) return result;
  if (strcmp(name, "cuMemAlloc") == 0) *function = reinterpret_cast<void*>(&cuMemAlloc_v2);
  if (strcmp(name, "cuMemFree") == 0) *function = reinterpret_cast<void*>(&cuMemFree_v2);
  return result;
}

EXPORT void* dlsym(void* handle, const char* name) noexcept {
  if (handle != RTLD_NEXT && handle != RTLD_DEFAULT) {
    if (strcmp(name, "cuMemAlloc_v2") == 0) return reinterpret_cast<void*>(&cuMemAlloc_v2);
    if (strcmp(name, "cuMemFree_v2") == 0) return reinterpret_cast<void*>(&cuMemFree_v2);
    if (strcmp(name, "cuGetProcAddress_v2") == 0) return reinterpret_cast<void*>(&cuGetProcAddress_v2);
  }
  return RealDlsym()(handle, name);
}
