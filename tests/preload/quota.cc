// A quota, as containers preload it: counts device memory and refuses what exceeds QUOTA_LIMIT bytes. Three kinds:
//   QUOTA_EXPORTS            exports the driver's functions, and finds the next ones by RTLD_NEXT
//   QUOTA_ANSWERS            interposes dlsym; answers it and cuGetProcAddress with functions that it does not export
//   QUOTA_PROC               the same, but dlsym only for cuGetProcAddress
// At exit it prints the calls it has seen, the most bytes held, and the depth to which it was entered again.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))
#if defined(QUOTA_EXPORTS)
#define QUOTA_API EXPORT
#else
#define QUOTA_API extern "C" __attribute__((visibility("hidden")))
#endif

namespace {

struct Quota {
  std::mutex mutex;
  std::map<unsigned long long, size_t> sizes;  // by address or handle
  size_t held = 0, peak = 0;
  int allocs = 0, creates = 0, refused = 0, deepest = 0;
  ~Quota() {
    char line[160];
    const int length =
        snprintf(line, sizeof(line), "quota: %d allocs, %d creates, peak %zu MiB, %d refused, depth %d\n", allocs,
                 creates, peak >> 20, refused, deepest);
    if (write(2, line, static_cast<size_t>(length)) < 0) _exit(1);
  }
} quota;

thread_local int depth = 0;
struct Entered {
  Entered() {
    const std::scoped_lock lock(quota.mutex);
    quota.deepest = std::max(quota.deepest, ++depth);
  }
  ~Entered() { --depth; }
};

bool Take(size_t bytes) {
  const char* limit = getenv("QUOTA_LIMIT");
  const std::scoped_lock lock(quota.mutex);
  if (limit != nullptr && quota.held + bytes > strtoull(limit, nullptr, 10)) {
    ++quota.refused;
    return false;
  }
  quota.held += bytes;
  quota.peak = std::max(quota.peak, quota.held);
  return true;
}
void Keep(unsigned long long key, size_t bytes, int* count) {
  const std::scoped_lock lock(quota.mutex);
  quota.sizes[key] = bytes;
  ++*count;
}
void Drop(size_t bytes) {
  const std::scoped_lock lock(quota.mutex);
  quota.held -= bytes;
}
void Forget(unsigned long long key) {
  const std::scoped_lock lock(quota.mutex);
  const auto found = quota.sizes.find(key);
  if (found == quota.sizes.end()) return;
  quota.held -= found->second;
  quota.sizes.erase(found);
}

#if !defined(QUOTA_EXPORTS)
void* RealDlsym(void* handle, const char* name) {
  static const auto real = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  return real(handle, name);
}
#endif

template <typename Function>
Function Next(const char* name) {
#if defined(QUOTA_EXPORTS)
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
#else
  return reinterpret_cast<Function>(RealDlsym(dlopen("libcuda.so.1", RTLD_LAZY), name));
#endif
}

// Makes a request of `bytes` by `ask`, within the quota. *key: what was given; *count: of requests that succeeded.
template <typename Ask>
CUresult Counted(unsigned long long* key, size_t bytes, int* count, Ask ask) {
  const Entered entered;
  if (!Take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ask();
  if (result == CUDA_SUCCESS) {
    Keep(*key, bytes, count);
  } else {
    Drop(bytes);
  }
  return result;
}

}  // namespace

QUOTA_API CUresult QuotaAlloc(CUdeviceptr* address, size_t bytes) __asm__("cuMemAlloc_v2");
QUOTA_API CUresult QuotaAlloc(CUdeviceptr* address, size_t bytes) {
  static const auto next = Next<decltype(&QuotaAlloc)>("cuMemAlloc_v2");
  return Counted(address, bytes, &quota.allocs, [=] { return next(address, bytes); });
}

QUOTA_API CUresult QuotaFree(CUdeviceptr address) __asm__("cuMemFree_v2");
QUOTA_API CUresult QuotaFree(CUdeviceptr address) {
  static const auto next = Next<decltype(&QuotaFree)>("cuMemFree_v2");
  const Entered entered;
  const CUresult result = next(address);
  if (result == CUDA_SUCCESS) Forget(address);
  return result;
}

QUOTA_API CUresult QuotaCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                               unsigned long long flags) __asm__("cuMemCreate");
QUOTA_API CUresult QuotaCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                               unsigned long long flags) {
  static const auto next = Next<decltype(&QuotaCreate)>("cuMemCreate");
  return Counted(handle, bytes, &quota.creates, [=] { return next(handle, bytes, prop, flags); });
}

QUOTA_API CUresult QuotaRelease(CUmemGenericAllocationHandle handle) __asm__("cuMemRelease");
QUOTA_API CUresult QuotaRelease(CUmemGenericAllocationHandle handle) {
  static const auto next = Next<decltype(&QuotaRelease)>("cuMemRelease");
  const Entered entered;
  const CUresult result = next(handle);
  if (result == CUDA_SUCCESS) Forget(handle);
  return result;
}

#if !defined(QUOTA_EXPORTS)
namespace {
void* Ours(const char* name, bool base);
}
extern "C" __attribute__((visibility("hidden"))) CUresult QuotaGet(const char* name, void** function, int version,
                                                                   cuuint64_t flags,
                                                                   CUdriverProcAddressQueryResult* status) {
  static const auto next = Next<decltype(&QuotaGet)>("cuGetProcAddress_v2");
  const CUresult result = next(name, function, version, flags, status);
  if (void* ours = Ours(name, true); result == CUDA_SUCCESS && ours != nullptr) *function = ours;
  return result;
}
namespace {
void* Ours(const char* name, bool base) {
  struct Row {
    const char *base, *symbol;
    void* function;
  };
  const Row rows[] = {{"cuMemAlloc", "cuMemAlloc_v2", reinterpret_cast<void*>(&QuotaAlloc)},
                      {"cuMemFree", "cuMemFree_v2", reinterpret_cast<void*>(&QuotaFree)},
                      {"cuMemCreate", "cuMemCreate", reinterpret_cast<void*>(&QuotaCreate)},
                      {"cuMemRelease", "cuMemRelease", reinterpret_cast<void*>(&QuotaRelease)},
                      {"cuGetProcAddress", "cuGetProcAddress_v2", reinterpret_cast<void*>(&QuotaGet)}};
#if defined(QUOTA_PROC)  // only cuGetProcAddress itself is answered by dlsym
  if (!base && strcmp(name, "cuGetProcAddress_v2") != 0) return nullptr;
#endif
  for (const Row& row : rows) {
    if (strcmp(name, base ? row.base : row.symbol) == 0) return row.function;
  }
  return nullptr;
}
}  // namespace

EXPORT void* QuotaDlsym(void* handle, const char* name) __asm__("dlsym");
EXPORT void* QuotaDlsym(void* handle, const char* name) {
  void* function = RealDlsym(handle, name);
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || function == nullptr || strncmp(name, "cu", 2) != 0)
    return function;
  void* ours = Ours(name, false);
  return ours != nullptr ? ours : function;
}
#endif
