#include "tests/gpu/driver.h"

#include <dlfcn.h>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {

void* DriverSymbol(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? dlsym(library, symbol) : nullptr;
}

std::string ResultText(CUresult result) {
  const auto get_name = HOTPACK_DRIVER_FUNCTION(cuGetErrorName);
  const char* name = nullptr;
  if (get_name == nullptr || get_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "error";
  return std::string(name) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

void NeedDriver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw CallFailed(std::string(what) + " gave " + ResultText(result));
}

Driver::Driver() {
#define HOTPACK_LOAD(name) name = HOTPACK_DRIVER_FUNCTION(name);
  HOTPACK_GPU_FUNCTIONS(HOTPACK_LOAD)
#undef HOTPACK_LOAD
}

std::string Driver::Missing() const {
#define HOTPACK_ASK(name) \
  if (name == nullptr) return #name;
  HOTPACK_GPU_FUNCTIONS(HOTPACK_ASK)
#undef HOTPACK_ASK
  return "";
}

CUmemAllocationProp DeviceMemory() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  return prop;
}

CUmemAccessDesc DeviceAccess() {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = 0;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

}  // namespace hotpack::gpu
