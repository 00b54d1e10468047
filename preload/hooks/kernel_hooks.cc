// The hooks that tell the launch collector of kernels: handles that the driver returns, and their end. While it is off
// they pass through.
#include "preload/collect/kernel_table.h"
#include "preload/collect/launch_notes.h"
#include "preload/hooks/hook_table.h"
#include "preload/process/hook_scope.h"

using hotpack::HookScope;
using hotpack::NotesLaunches;

namespace {

void Given(const HookScope& scope, CUresult result, const void* handle, const char* name, bool is_kernel) noexcept try {
  if (result == CUDA_SUCCESS && scope.Active() && NotesLaunches()) hotpack::KernelGiven(handle, name, is_kernel);
} catch (...) {  // out of host memory: the driver is queried at the launch
}

void Gone(const HookScope& scope) {
  if (scope.Active() && NotesLaunches()) hotpack::ForgetKernels();
}

}  // namespace

CUresult Hook_cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuModuleGetFunction)(function, module, name);
  if (function != nullptr) Given(scope, result, *function, name, false);
  return result;
}

CUresult Hook_cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuLibraryGetKernel)(kernel, library, name);
  if (kernel != nullptr) Given(scope, result, *kernel, name, true);
  return result;
}

CUresult Hook_cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuKernelGetFunction)(function, kernel);
  if (function != nullptr) Given(scope, result, *function, nullptr, false);
  return result;
}

CUresult Hook_cuModuleUnload(CUmodule module) {
  HookScope scope;
  Gone(scope);
  return HOTPACK_NEXT(cuModuleUnload)(module);
}

CUresult Hook_cuLibraryUnload(CUlibrary library) {
  HookScope scope;
  Gone(scope);
  return HOTPACK_NEXT(cuLibraryUnload)(library);
}
