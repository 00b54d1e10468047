#include "preload/process/driver_access.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <new>

#include "preload/process/elf_symbols.h"

namespace hotpack {
namespace {
constinit std::atomic<void*> driver_library{nullptr};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* LookUp(GetProcAddress get, const char* base, int version, cuuint64_t stream) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (get == nullptr || get(base, &function, version, stream, &status) != CUDA_SUCCESS) return nullptr;
  return function;
}

// Returns true if hotpack's hooks are in the process: the first cuMemAlloc_v2 in search order is in a library that also
// defines hotpack_version. For libhotpack.so, which has no hooks.
bool PreloadPresent() {
  const void* first = RealDlsym()(RTLD_DEFAULT, "cuMemAlloc_v2");
  char path[4096];
  bool hotpacks = false;
  return first != nullptr && FindObject(first, "hotpack_version", path, sizeof(path), &hotpacks) && hotpacks;
}
}  // namespace

constinit std::atomic<const CudaDriver*> driver_table{nullptr};

void* DriverLibrary() {
  void* library = driver_library.load(std::memory_order_acquire);
  if (library != nullptr) return library;
  // By soname, which also finds a driver that was loaded by another path. The handle is never closed, so the driver is
  // not unloaded while hotpack holds its pointers.
  library = RealDlopen()("libcuda.so.1", kHooksPresent ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
  if (library != nullptr) driver_library.store(library, std::memory_order_release);
  return library;
}

void* NextSymbol(const char* symbol, const char* base, int version, cuuint64_t stream) {
  void* library = DriverLibrary();
  if (library == nullptr) return nullptr;
  void* own = RealDlsym()(library, symbol);
  if (!kHooksPresent && PreloadPresent()) return own;  // this library's calls bypass the preload (docs/hooks.md)
  void* exported = RealDlsym()(kHooksPresent ? RTLD_NEXT : RTLD_DEFAULT, symbol);
  if (exported != nullptr && exported != own) return exported;
  void* answered = kHooksPresent ? AskNextDlsym(library, symbol) : dlsym(library, symbol);
  if (answered != nullptr && answered != own) return answered;
  if (base == nullptr) return own;
  constexpr char kGet[] = "cuGetProcAddress_v2";
  const auto get = reinterpret_cast<GetProcAddress>(NextSymbol(kGet));
  const auto own_get = reinterpret_cast<GetProcAddress>(RealDlsym()(library, kGet));
  void* looked_up = get != own_get ? LookUp(get, base, version, stream) : nullptr;
  const bool other = looked_up != nullptr && looked_up != LookUp(own_get, base, version, stream) && looked_up != own;
  return other ? looked_up : own;
}

void* DriverSymbol(const char* name) {
  // What a quota counts or refuses. Versions: cudaTypedefs.h.
  static constexpr struct {
    const char* symbol;
    const char* base;
    int version;
  } kCounted[] = {
      {"cuMemAlloc_v2", "cuMemAlloc", 3020},
      {"cuMemAllocPitch_v2", "cuMemAllocPitch", 3020},
      {"cuMemFree_v2", "cuMemFree", 3020},
      {"cuMemAllocManaged", "cuMemAllocManaged", 6000},
      {"cuMemAllocAsync", "cuMemAllocAsync", 11020},
      {"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 11020},
      {"cuMemFreeAsync", "cuMemFreeAsync", 11020},
      {"cuMemPoolCreate", "cuMemPoolCreate", 11020},
      {"cuMemPoolTrimTo", "cuMemPoolTrimTo", 11020},
      {"cuMemCreate", "cuMemCreate", 10020},
      {"cuMemRelease", "cuMemRelease", 10020},
      {"cuMemAddressReserve", "cuMemAddressReserve", 10020},
      {"cuMemAddressFree", "cuMemAddressFree", 10020},
      {"cuMemMap", "cuMemMap", 10020},
      {"cuMemUnmap", "cuMemUnmap", 10020},
      {"cuMemGetInfo_v2", "cuMemGetInfo", 3020},
      {"cuDeviceTotalMem_v2", "cuDeviceTotalMem", 3020},
  };
  for (const auto& row : kCounted) {
    if (strcmp(row.symbol, name) == 0) return NextSymbol(name, row.base, row.version);
  }
  return NextSymbol(name);
}

const CudaDriver* LoadDriver() {
  if (DriverLibrary() == nullptr) return nullptr;
  auto* fresh = new (std::nothrow) CudaDriver;
  if (fresh == nullptr) return nullptr;
  LoadCudaDriver(DriverSymbol, fresh);
  if (fresh->CtxGetCurrent == nullptr || fresh->CtxSynchronize == nullptr || fresh->CtxGetDevice == nullptr ||
      fresh->CtxPushCurrent == nullptr || fresh->CtxPopCurrent == nullptr || fresh->DeviceGetAttribute == nullptr ||
      fresh->DeviceTotalMem == nullptr || fresh->StreamSynchronize == nullptr) {
    delete fresh;  // an unsupported driver
    return nullptr;
  }
  const CudaDriver* expected = nullptr;
  if (driver_table.compare_exchange_strong(expected, fresh)) return fresh;
  delete fresh;
  return expected;
}

}  // namespace hotpack
