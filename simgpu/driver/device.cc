// Devices: names, attributes. The figures are those of a large current GPU.
#include <cstdio>
#include <cstring>

#include "simgpu/driver/api.h"
#include "simgpu/driver/image.h"

namespace simgpu {
namespace {

constexpr char kName[] = "hotpack simulated device";

bool Valid(const Driver& d, CUdevice device) { return device >= 0 && device < static_cast<int>(d.devices.size()); }

int Attribute(CUdevice_attribute attribute, int device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1 << 10;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1980000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 2619000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 5120;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return kComputeCapability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return kComputeCapability % 10;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return device + 1;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      return CU_MEM_HANDLE_TYPE_NONE;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      return 1;
    default:
      return 0;
  }
}

CUresult Uuid(CUuuid* uuid, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetUuid);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  memcpy(uuid->bytes, "hotpack-simgpu", 14);
  uuid->bytes[14] = 0;
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuDeviceGet(CUdevice* device, int ordinal) {
  SIMGPU_ENTER(cuDeviceGet);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetCount(int* count) {
  SIMGPU_ENTER(cuDeviceGetCount);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(d.devices.size());
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetName(char* name, int length, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetName);
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, length, "%s", kName);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return Uuid(uuid, device); }
SIMGPU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return Uuid(uuid, device); }

static CUresult TotalMem(size_t* bytes, CUdevice device) {
  SIMGPU_ENTER(cuDeviceTotalMem);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = d.devices[device].physical.capacity;
  return CUDA_SUCCESS;
}
SIMGPU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) { return TotalMem(bytes, device); }

SIMGPU_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetAttribute);
  if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = Attribute(attribute, device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  SIMGPU_ENTER(cuDeviceComputeCapability);
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  SIMGPU_ENTER(cuDeviceGetPCIBusId);
  if (id == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!Valid(d, device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(id, length, "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  SIMGPU_ENTER(cuDeviceGetByPCIBusId);
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned bus = 0;
  if (sscanf(id, "%*x:%x:", &bus) != 1 || !Valid(d, static_cast<int>(bus) - 1)) return CUDA_ERROR_INVALID_DEVICE;
  *device = static_cast<int>(bus) - 1;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned, CUdevice) {
  SIMGPU_ENTER(cuDeviceGetTexture1DLinearMaxWidth);
  if (width == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *width = size_t{1} << 28;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
