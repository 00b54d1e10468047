// Access to the real driver library.
#pragma once

#include <atomic>

#include "runtime/memory/cuda_driver.h"

namespace hotpack {

// True in libhotpack_preload.so, where the hooks see every stream and capture. False in libhotpack.so: only the calls
// of hotpack.h arrive there, and hotpack loads the driver itself. Defined by preload/hooks/hook_table.cc and
// preload/capi/standalone.cc.
extern const bool kHooksPresent;

// Returns the dlopen handle of libcuda.so.1 if it is loaded; without hooks, loads it if necessary. Null: not available
// (yet).
void* DriverLibrary();

// Returns a driver function as a look-up of the program reaches it without hotpack: from another preload (a quota) that
// exports `symbol`, answers dlsym for it, or answers cuGetProcAddress for `base` and `version` (null: not asked). If
// there is none, from the driver. A preload before this library sees the program's calls, and is not asked again.
// Null: no driver library, or no such function.
void* NextSymbol(const char* symbol, const char* base = nullptr, int version = 0, cuuint64_t stream = 1);

// Returns NextSymbol(name), for functions that limit or count memory with their base names.
void* DriverSymbol(const char* name);

// Returns the real functions that hotpack itself calls. Null: no driver library. Makes no driver call.
extern constinit std::atomic<const CudaDriver*> driver_table;  // null: not looked up yet
const CudaDriver* LoadDriver();
inline const CudaDriver* Driver() {
  const CudaDriver* table = driver_table.load(std::memory_order_acquire);
  return table != nullptr ? table : LoadDriver();
}

// Returns the calling thread's current context, null if there is none.
inline CUcontext CurrentContext(const CudaDriver& driver) {
  CUcontext context = nullptr;
  return driver.CtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace hotpack
