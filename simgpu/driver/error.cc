// Names and texts of errors, and the profiler switches, which do nothing.
#include "simgpu/driver/api.h"

namespace simgpu {

SIMGPU_API cuGetErrorName(CUresult error, const char** name) {
  SIMGPU_ENTER_ANYTIME(cuGetErrorName);
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = nullptr;
  switch (error) {
#define SIMGPU_ERROR(code, text) \
  case code:                     \
    *name = #code;               \
    return CUDA_SUCCESS;
#include "simgpu/driver/errors.inc"
#undef SIMGPU_ERROR
  }
  return CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuGetErrorString(CUresult error, const char** string) {
  SIMGPU_ENTER_ANYTIME(cuGetErrorString);
  if (string == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *string = nullptr;
  switch (error) {
#define SIMGPU_ERROR(code, text) \
  case code:                     \
    *string = text;              \
    return CUDA_SUCCESS;
#include "simgpu/driver/errors.inc"
#undef SIMGPU_ERROR
  }
  return CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuProfilerStart() {
  SIMGPU_ENTER(cuProfilerStart);
  return CUDA_SUCCESS;
}

SIMGPU_API cuProfilerStop() {
  SIMGPU_ENTER(cuProfilerStop);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
