// cuGetProcAddress in both forms, through which libcudart, cuBLAS and cuDNN find nearly every driver function.
#include "preload/hooks/hook_table.h"
#include "preload/process/hook_scope.h"

CUresult Hook_cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  hotpack::HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuGetProcAddress)(symbol, function, version, flags);
  if (result == CUDA_SUCCESS && function != nullptr && scope.Active()) {
    *function = hotpack::Substitute(*function, symbol, __builtin_return_address(0));
  }
  return result;
}

CUresult Hook_cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  hotpack::HookScope scope;
  const CUresult result = HOTPACK_NEXT(cuGetProcAddress_v2)(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != nullptr && scope.Active()) {
    *function = hotpack::Substitute(*function, symbol, __builtin_return_address(0));
  }
  return result;
}
