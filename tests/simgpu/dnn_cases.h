// The common part of the cuDNN shim's cases.
#pragma once

#include <cudnn.h>

#include "tests/simgpu/checker_cases.h"

#define ANSWERS(expected, call)                                                                                    \
  do {                                                                                                             \
    if (const cudnnStatus_t status = (call); status != (expected)) {                                               \
      fprintf(stderr, "%s:%d: %s gave %s (%d)\n", __FILE__, __LINE__, #call, cudnnGetErrorString(status), status); \
      exit(4);                                                                                                     \
    }                                                                                                              \
  } while (false)
#define SUCCEED(call) ANSWERS(CUDNN_STATUS_SUCCESS, call)
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      exit(5);                                                                 \
    }                                                                          \
  } while (false)

namespace simgpu_test {

inline cudnnHandle_t NewDnnHandle(CUstream stream) {
  cudnnHandle_t handle = nullptr;
  SUCCEED(cudnnCreate(&handle));
  SUCCEED(cudnnSetStream(handle, stream));
  return handle;
}

inline void* At(uint64_t offset) { return reinterpret_cast<void*>(arena + offset); }

}  // namespace simgpu_test
