// Driver functions that the runtime does not have, looked up in libcuda.so.1 as other programs do.
#pragma once

#include <cuda.h>

#include <string>

namespace hotpack::gpu {

// The exported symbol of libcuda.so.1, by dlsym on its handle; null if it is not there.
void* DriverSymbol(const char* symbol);

// DriverFunction(cuMemMap): the function, as declared in cuda.h, or null. cuda.h gives some names a version by a macro
// (cuMemAlloc is cuMemAlloc_v2); the macro is expanded first, so the symbol looked up is the one that is declared.
#define HOTPACK_DRIVER_TEXT(name) #name
#define HOTPACK_DRIVER_FUNCTION(name) \
  reinterpret_cast<decltype(&::name)>(::hotpack::gpu::DriverSymbol(HOTPACK_DRIVER_TEXT(name)))

std::string ResultText(CUresult result);

// Throws CallFailed.
void NeedDriver(CUresult result, const char* what);
#define HOTPACK_NEED_DRIVER(call) ::hotpack::gpu::NeedDriver((call), #call)

// The functions of virtual memory management and of pointer queries. Callers check Missing() first, so that they never
// call a null pointer.
struct Driver {
  // A list: clang-format would give it a shape of its own.
  // clang-format off
#define HOTPACK_GPU_FUNCTIONS(X)                                                                            \
  X(cuMemGetAllocationGranularity) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemMap)    \
  X(cuMemSetAccess) X(cuMemUnmap) X(cuMemRelease) X(cuMemRetainAllocationHandle) X(cuMemGetAddressRange_v2) \
  X(cuPointerGetAttribute) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuDeviceTotalMem_v2)
  // clang-format on
#define HOTPACK_MEMBER(name) decltype(&::name) name = nullptr;
  HOTPACK_GPU_FUNCTIONS(HOTPACK_MEMBER)
#undef HOTPACK_MEMBER

  Driver();
  // The first function that this driver does not have; empty if it has all.
  std::string Missing() const;
};

// Memory of device 0 as the arena asks for it, and access to it from device 0.
CUmemAllocationProp DeviceMemory();
CUmemAccessDesc DeviceAccess();

}  // namespace hotpack::gpu
