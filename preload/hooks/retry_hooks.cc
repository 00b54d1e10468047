// Calls that need device memory of the driver itself. They pass through; if the driver is out of memory, hotpack trims
// its idle memory and retries (preload/serve/out_of_memory.h). cuMemGetInfo counts the arena's idle memory as free, so
// without the retry a program would fail for memory that it sees as free.
#include <algorithm>

#include "preload/hooks/hook_table.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/out_of_memory.h"

using hotpack::HookScope;
using hotpack::kUnknownBytes;
using hotpack::RetryAfterTrim;

namespace {

// The just-in-time compiler writes to some options: the sizes of log buffers come in and lengths go out (cuda.h,
// CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES). A retry starts with the program's values.
class JitValues {
 public:
  JitValues(void** values, unsigned int count) : values_(values), kept_(values != nullptr ? std::min(count, kMax) : 0) {
    std::copy_n(values, kept_, given_);
  }
  // Call before each attempt.
  void Restore() {
    if (used_) std::copy_n(given_, kept_, values_);
    used_ = true;
  }

 private:
  static constexpr unsigned int kMax = 64;  // there are about thirty kinds of options
  void** values_;
  unsigned int kept_;
  bool used_ = false;
  void* given_[kMax];
};

}  // namespace

CUresult Hook_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                          unsigned long long flags) {
  HookScope scope;
  const bool named = prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return RetryAfterTrim(
      scope, "cuMemCreate", bytes, [=] { return HOTPACK_NEXT(cuMemCreate)(handle, bytes, prop, flags); },
      named ? prop->location.id : hotpack::kCurrentDevice);
}

CUresult Hook_cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuMemAllocManaged", bytes,
                        [=] { return HOTPACK_NEXT(cuMemAllocManaged)(address, bytes, flags); });
}

CUresult Hook_cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuMemPoolCreate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuMemPoolCreate)(pool, props); });
}

CUresult Hook_cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuArrayCreate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuArrayCreate_v2)(array, descriptor); });
}

CUresult Hook_cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuArray3DCreate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuArray3DCreate_v2)(array, descriptor); });
}

CUresult Hook_cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                     unsigned int levels) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuMipmappedArrayCreate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuMipmappedArrayCreate)(array, descriptor, levels); });
}

CUresult Hook_cuModuleLoad(CUmodule* module, const char* file) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuModuleLoad", kUnknownBytes, [=] { return HOTPACK_NEXT(cuModuleLoad)(module, file); });
}

CUresult Hook_cuModuleLoadData(CUmodule* module, const void* image) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuModuleLoadData", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuModuleLoadData)(module, image); });
}

CUresult Hook_cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                                 void** values) {
  HookScope scope;
  JitValues given(values, count);
  return RetryAfterTrim(scope, "cuModuleLoadDataEx", kUnknownBytes, [=, &given] {
    given.Restore();
    return HOTPACK_NEXT(cuModuleLoadDataEx)(module, image, count, options, values);
  });
}

CUresult Hook_cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuModuleLoadFatBinary", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuModuleLoadFatBinary)(module, image); });
}

CUresult Hook_cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit, void** jit_values,
                                unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count) {
  HookScope scope;
  JitValues given(jit_values, jit_count);
  return RetryAfterTrim(scope, "cuLibraryLoadData", kUnknownBytes, [=, &given] {
    given.Restore();
    return HOTPACK_NEXT(cuLibraryLoadData)(library, code, jit, jit_values, jit_count, options, values, count);
  });
}

CUresult Hook_cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* jit, void** jit_values,
                                    unsigned int jit_count, CUlibraryOption* options, void** values,
                                    unsigned int count) {
  HookScope scope;
  JitValues given(jit_values, jit_count);
  return RetryAfterTrim(scope, "cuLibraryLoadFromFile", kUnknownBytes, [=, &given] {
    given.Restore();
    return HOTPACK_NEXT(cuLibraryLoadFromFile)(library, file, jit, jit_values, jit_count, options, values, count);
  });
}

CUresult Hook_cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* node, char* log, size_t bytes) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuGraphInstantiate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuGraphInstantiate)(executable, graph, node, log, bytes); });
}

CUresult Hook_cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* node, char* log,
                                    size_t bytes) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuGraphInstantiate", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuGraphInstantiate_v2)(executable, graph, node, log, bytes); });
}

CUresult Hook_cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuGraphInstantiateWithFlags", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuGraphInstantiateWithFlags)(executable, graph, flags); });
}

CUresult Hook_cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuGraphInstantiateWithParams", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuGraphInstantiateWithParams)(executable, graph, parameters); });
}

CUresult Hook_cuGraphInstantiateWithParams_ptsz(CUgraphExec* executable, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  HookScope scope;
  return RetryAfterTrim(scope, "cuGraphInstantiateWithParams", kUnknownBytes,
                        [=] { return HOTPACK_NEXT(cuGraphInstantiateWithParams_ptsz)(executable, graph, parameters); });
}
