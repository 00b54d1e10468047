#include <dlfcn.h>

#include "simgpu/runtime/runtime.h"

namespace simgpu_runtime {
namespace {

constexpr int kMaxDevices = 64;
thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;

using GetProcAddress = decltype(&::cuGetProcAddress_v2);

template <typename Function>
bool LookUp(GetProcAddress get, Function* function, const char* base, int version, cuuint64_t flags) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  if (get(base, &found, version, flags, &status) == CUDA_SUCCESS) *function = reinterpret_cast<Function>(found);
  return found != nullptr;
}

DriverTable* Load() {
  auto* table = new DriverTable;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    table->status = CUDA_ERROR_NO_DEVICE;
    return table;
  }
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    table->status = CUDA_ERROR_STUB_LIBRARY;
    return table;
  }
  constexpr cuuint64_t kDefault = CU_GET_PROC_ADDRESS_DEFAULT;
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  bool complete = true;  // a driver that does not return a function's address is unusable
#define CUDART_DRIVER(base, symbol, version) complete &= LookUp(get, &table->base, #base, version, kDefault);
#define CUDART_DRIVER_BOTH(base, symbol, version, per_thread_version) \
  complete &= LookUp(get, &table->base[0], #base, version, kDefault); \
  complete &= LookUp(get, &table->base[1], #base, per_thread_version, kPerThread);
#include "simgpu/runtime/driver_table.inc"
#undef CUDART_DRIVER
#undef CUDART_DRIVER_BOTH
  table->given = reinterpret_cast<decltype(table->given)>(dlsym(library, "simgpuBlockGiven"));
  table->returned = reinterpret_cast<decltype(table->returned)>(dlsym(library, "simgpuBlockReturned"));
  table->kept = reinterpret_cast<decltype(table->kept)>(dlsym(library, "simgpuBlockKept"));
  table->reset = reinterpret_cast<decltype(table->reset)>(dlsym(library, "simgpuDeviceReset"));
  table->teller = reinterpret_cast<decltype(table->teller)>(dlsym(library, "simgpuTeller"));
  table->status = complete ? table->cuInit(0) : CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  return table;
}

}  // namespace

const DriverTable& Driver() {
  static const DriverTable* table = Load();
  return *table;
}

cudaError_t Set(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

// Since CUDA 10.1 the runtime's errors have the driver's numbers.
cudaError_t Set(CUresult error) { return Set(static_cast<cudaError_t>(error)); }

int CurrentDevice() {
  CUcontext context = nullptr;
  CUdevice current = device;
  const DriverTable& drv = Driver();
  if (drv.status == CUDA_SUCCESS && drv.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) {
    drv.cuCtxGetDevice(&current);
  }
  return current;
}

static CUresult BindDevice() {
  const DriverTable& drv = Driver();
  CUcontext context = nullptr;
  const CUresult status = drv.cuDevicePrimaryCtxRetain(&context, device);
  if (status != CUDA_SUCCESS) return status;
  return drv.cuCtxSetCurrent(context);
}

CUresult Ready() {
  const DriverTable& drv = Driver();
  if (drv.status != CUDA_SUCCESS) return drv.status;
  CUcontext context = nullptr;
  const CUresult status = drv.cuCtxGetCurrent(&context);
  if (status != CUDA_SUCCESS || context != nullptr) return status;
  return BindDevice();
}

}  // namespace simgpu_runtime

using namespace simgpu_runtime;

CUDART_API cudaSetDevice(int number) {
  const DriverTable& drv = Driver();
  if (drv.status != CUDA_SUCCESS) return Set(drv.status);
  int count = 0;
  drv.cuDeviceGetCount(&count);
  if (number < 0 || number >= count || number >= kMaxDevices) return Set(cudaErrorInvalidDevice);
  device = number;
  return Set(BindDevice());
}

CUDART_API cudaInitDevice(int number, unsigned, unsigned) { return cudaSetDevice(number); }

CUDART_API cudaGetDevice(int* number) {
  if (number == nullptr) return Set(cudaErrorInvalidValue);
  if (Driver().status != CUDA_SUCCESS) return Set(Driver().status);
  *number = CurrentDevice();
  return cudaSuccess;
}

CUDART_API cudaDeviceReset() {
  const DriverTable& drv = Driver();
  if (drv.status != CUDA_SUCCESS) return Set(drv.status);
  const int current = CurrentDevice();
  if (drv.reset != nullptr) drv.reset(current);
  return Set(drv.cuDevicePrimaryCtxReset(current));
}

CUDART_API cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

CUDART_API cudaPeekAtLastError() { return last_error; }
