// A small libnvidia-ml.so.1, for programs that query NVIDIA's management library before or in addition to CUDA.
// PyTorch's expandable segments do not start without it. It reports the devices (SIMGPU_DEVICES) and supports nothing
// else.
//
// Some toolkits lack its header, so the functions are declared here, as documented.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Status {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7
};  // nvmlReturn_t

struct Device;  // *nvmlDevice_t

// Read as the driver reads it; the driver reports a malformed one.
int DeviceCount() {
  const char* text = getenv("SIMGPU_DEVICES");
  const int count = text != nullptr && *text != '\0' ? atoi(text) : 1;
  return count > 0 ? count : 0;
}

Device* DeviceOf(int index) { return reinterpret_cast<Device*>(static_cast<uintptr_t>(index) + 1); }
bool IsDevice(const Device* device) {
  const auto number = reinterpret_cast<uintptr_t>(device);
  return number >= 1 && number <= static_cast<uintptr_t>(DeviceCount());
}

}  // namespace

#define SIMGPU_NVML extern "C" __attribute__((visibility("default"))) int
#define SIMGPU_NVML_TEXT extern "C" __attribute__((visibility("default"))) const char*

SIMGPU_NVML nvmlInit_v2() { return kSuccess; }
SIMGPU_NVML nvmlInit() { return kSuccess; }
SIMGPU_NVML nvmlShutdown() { return kSuccess; }

SIMGPU_NVML_TEXT nvmlErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "Success";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    default:
      return "Unknown Error";
  }
}

// The driver's CUDA version: 1000 x major + 10 x minor.
SIMGPU_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = 13000;  // as cuDriverGetVersion
  return kSuccess;
}
SIMGPU_NVML nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

SIMGPU_NVML nvmlDeviceGetCount_v2(unsigned* count) {
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(DeviceCount());
  return kSuccess;
}

SIMGPU_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  if (device == nullptr || index >= static_cast<unsigned>(DeviceCount())) return kInvalidArgument;
  *device = DeviceOf(static_cast<int>(index));
  return kSuccess;
}

// domain:bus:device.function, in hexadecimal; the domain may be missing. The simulated devices are on buses 1, 2, ...
SIMGPU_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device** device) {
  if (id == nullptr || device == nullptr) return kInvalidArgument;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 &&
      sscanf(id, "%x:%x.%x", &bus, &slot, &function) != 3) {
    return kInvalidArgument;
  }
  if (bus < 1 || bus > static_cast<unsigned>(DeviceCount())) return kNotFound;
  *device = DeviceOf(static_cast<int>(bus) - 1);
  return kSuccess;
}

// Reports no process, not even this one.
SIMGPU_NVML nvmlDeviceGetComputeRunningProcesses(Device* device, unsigned* count, void*) {
  if (!IsDevice(device) || count == nullptr) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}

SIMGPU_NVML nvmlDeviceGetNvLinkRemoteDeviceType(Device*, unsigned, int*) { return kNotSupported; }
SIMGPU_NVML nvmlDeviceGetNvLinkRemotePciInfo_v2(Device*, unsigned, void*) { return kNotSupported; }
