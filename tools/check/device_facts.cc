#include "tools/check/device_facts.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hotpack::check {
namespace {

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) version;
  decltype(&::cuDeviceGetCount) count;
  decltype(&::cuDeviceGet) get;
  decltype(&::cuDeviceGetName) name;
  decltype(&::cuDeviceTotalMem) memory;  // cuda.h maps it to the _v2 function
  decltype(&::cuDeviceGetAttribute) attribute;
};

bool Load(void* library, Driver* driver) {
  const auto find = [library](const char* name, auto* function) {
    *function = Find<std::remove_pointer_t<std::remove_pointer_t<decltype(function)>>>(library, name);
    return *function != nullptr;
  };
  return find("cuInit", &driver->init) && find("cuDriverGetVersion", &driver->version) &&
         find("cuDeviceGetCount", &driver->count) && find("cuDeviceGet", &driver->get) &&
         find("cuDeviceGetName", &driver->name) && find("cuDeviceTotalMem_v2", &driver->memory) &&
         find("cuDeviceGetAttribute", &driver->attribute);
}

nlohmann::ordered_json Device(const Driver& driver, CUdevice device) {
  char name[256] = "";
  size_t memory = 0;
  driver.name(name, sizeof name, device);
  driver.memory(&memory, device);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver.attribute(&value, which, device) == CUDA_SUCCESS ? value : -1;
  };
  return {
      {"name", name},
      {"memory_bytes", memory},
      {"compute_capability", std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) + "." +
                                 std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))},
      {"multiprocessors", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
      {"virtual_memory_management", attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1},
      {"memory_pools", attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 1},
  };
}

// Returns the version of the shared runtime that programs here would load; 0 if there is none.
int RuntimeVersion() {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    auto* version = Find<int(int*)>(library, "cudaRuntimeGetVersion");
    int value = 0;
    if (version != nullptr && version(&value) == 0) return value;
  }
  return 0;
}

// Returns an empty string, or why there is no device.
std::string Ask(nlohmann::ordered_json* facts) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::string("no driver: ") + dlerror();
  Driver driver = {};
  if (!Load(library, &driver)) return "libcuda.so.1 lacks functions of the driver API";
  if (const CUresult result = driver.init(0); result != CUDA_SUCCESS) {
    return "cuInit fails with " + std::to_string(result);
  }
  int count = 0, version = 0;
  if (driver.count(&count) != CUDA_SUCCESS || count == 0) return "the driver has no device";
  driver.version(&version);
  CUdevice device = 0;
  if (driver.get(&device, 0) != CUDA_SUCCESS) return "cuDeviceGet fails";
  (*facts)["device"] = Device(driver, device);
  (*facts)["device"]["devices"] = count;
  (*facts)["versions"] = {{"cuda_driver_api", version}, {"cuda_runtime", RuntimeVersion()}};
  return "";
}

}  // namespace

int PrintDeviceFacts() {
  nlohmann::ordered_json facts;
  const std::string reason = Ask(&facts);
  if (!reason.empty()) facts = {{"reason", reason}};
  printf("%s\n", facts.dump().c_str());
  return reason.empty() ? 0 : 1;
}

}  // namespace hotpack::check
