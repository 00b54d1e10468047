// Finds the driver at run time as a program without cudart does: dlopen("libcuda.so.1") and dlsym.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

namespace hotpack::train {

// Driver functions of the training programs. The names are those of cuda.h, whose macros choose the versions.
//
// A list: clang-format would give it a shape of its own.
// clang-format off
#define HOTPACK_TRAIN_DRIVER_CALLS(CALL)                                                                   \
  CALL(cuInit) CALL(cuDeviceGetCount) CALL(cuDeviceGet) CALL(cuDevicePrimaryCtxRetain)                     \
  CALL(cuDevicePrimaryCtxRelease) CALL(cuCtxSetCurrent) CALL(cuGetErrorString) CALL(cuMemAlloc)            \
  CALL(cuMemFree) CALL(cuMemAllocAsync) CALL(cuMemFreeAsync) CALL(cuMemHostAlloc) CALL(cuMemFreeHost)      \
  CALL(cuStreamCreate) CALL(cuStreamDestroy) CALL(cuStreamSynchronize) CALL(cuStreamWaitEvent)             \
  CALL(cuEventCreate) CALL(cuEventDestroy) CALL(cuEventRecord) CALL(cuEventSynchronize) CALL(cuMemcpyHtoD) \
  CALL(cuMemcpyDtoH) CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoHAsync) CALL(cuModuleLoadData)                \
  CALL(cuModuleUnload) CALL(cuModuleGetFunctionCount) CALL(cuModuleEnumerateFunctions) CALL(cuFuncGetName) \
  CALL(cuLaunchKernel)
// clang-format on

struct Driver {
#define HOTPACK_TRAIN_MEMBER(name) decltype(&::name) name##_call;
  HOTPACK_TRAIN_DRIVER_CALLS(HOTPACK_TRAIN_MEMBER)
#undef HOTPACK_TRAIN_MEMBER
};

// Loads the driver on the first call. Throws std::runtime_error if it is missing or lacks an entry point.
const Driver& GetDriver();

// Throws std::runtime_error "<call>: <the driver's words>" unless `result` is success.
void CheckDriver(CUresult result, const char* call);

}  // namespace hotpack::train
