// Names and texts of errors, and the profiler switches, which do nothing.
#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* text;
};
constexpr Error kErrors[] = {
#define SIMGPU_ERROR(code, text) {code, #code, text},
#include "simgpu/driver/errors.inc"
#undef SIMGPU_ERROR
};

CUresult Describe(CUresult code, const char* Error::*member, const char** result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *result = nullptr;
  for (const Error& error : kErrors) {
    if (error.code == code) *result = error.*member;
  }
  return *result != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

SIMGPU_API cuGetErrorName(CUresult error, const char** name) {
  SIMGPU_ENTER_ANYTIME(cuGetErrorName);
  return Describe(error, &Error::name, name);
}

SIMGPU_API cuGetErrorString(CUresult error, const char** string) {
  SIMGPU_ENTER_ANYTIME(cuGetErrorString);
  return Describe(error, &Error::text, string);
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
