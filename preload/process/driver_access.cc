#include "preload/process/driver_access.h"

#include <dlfcn.h>

#include <atomic>
#include <new>

#include "preload/process/elf_symbols.h"

namespace hotpack {
namespace {
constinit std::atomic<void*> driver_library{nullptr};
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

void* DriverSymbol(const char* name) {
  void* library = DriverLibrary();
  return library != nullptr ? RealDlsym()(library, name) : nullptr;
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
