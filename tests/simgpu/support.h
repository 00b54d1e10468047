// The common part of the simulated device's tests: a context, kernels without nvcc, an arena like an allocator's.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                                      \
  do {                                                                                                  \
    if (const CUresult must_result = (call); must_result != CUDA_SUCCESS) {                             \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, static_cast<int>(must_result)); \
      exit(3);                                                                                          \
    }                                                                                                   \
  } while (false)

namespace simgpu_test {

inline constexpr uint64_t kPage = uint64_t{2} << 20;

// touch(p): a pointer. both(s): a struct of 24 bytes. many(p, q). strided(n, s): a struct of 536 bytes. _Z…: PyTorch's
// tables for lists of tensors (checker_list_cases.cc).
inline constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 touch_param_0) { ret; }
.visible .entry both(.param .align 8 .b8 both_param_0[24], .param .f64 both_param_1) { ret; }
.visible .entry strided(.param .u32 strided_param_0, .param .align 8 .b8 strided_param_1[536]) { ret; }
.visible .entry _Z5applyI18TensorListMetadataILi2EEE_12(
  .param .align 8 .b8 _Z5applyI18TensorListMetadataILi2EEE_12_param_0[3144],
  .param .f32 _Z5applyI18TensorListMetadataILi2EEE_12_param_1) { ret; }
.visible .entry _Z5applyI18TensorListMetadataILi2EEE_13(
  .param .align 8 .b8 _Z5applyI18TensorListMetadataILi2EEE_13_param_0[24200],
  .param .f32 _Z5applyI18TensorListMetadataILi2EEE_13_param_1) { ret; }
.visible .entry _Z5applyI28TensorListScalarListMetadataIfLi1EEE(
  .param .align 8 .b8 _Z5applyI28TensorListScalarListMetadataIfLi1EEE_param_0[3520],
  .param .f32 _Z5applyI28TensorListScalarListMetadataIfLi1EEE_param_1) { ret; }
.visible .entry _Z5applyI33FusedOptimizerTensorListMetadataILi4EEE(
  .param .align 8 .b8 _Z5applyI33FusedOptimizerTensorListMetadataILi4EEE_param_0[25544],
  .param .f32 _Z5applyI33FusedOptimizerTensorListMetadataILi4EEE_param_1) { ret; }
.visible .entry _Z4copyI25CatArrInputTensorMetadataE(
  .param .align 8 .b8 _Z4copyI25CatArrInputTensorMetadataE_param_0[3392],
  .param .f32 _Z4copyI25CatArrInputTensorMetadataE_param_1) { ret; }
.visible .entry many(.param .u64 many_param_0, .param .u32 many_param_1, .param .u64 many_param_2) { ret; }
)";

struct Triple {
  uint64_t a, b, c;
};

inline CUcontext Start() {
  MUST(cuInit(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  return context;
}

inline CUfunction Kernel(const char* name) {
  static CUmodule module = nullptr;
  if (module == nullptr) MUST(cuModuleLoadData(&module, kPtx));
  CUfunction function = nullptr;
  MUST(cuModuleGetFunction(&function, module, name));
  return function;
}

inline void Touch(CUstream stream, CUdeviceptr address) {
  void* parameters[] = {&address};
  MUST(cuLaunchKernel(Kernel("touch"), 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
}

inline CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, flags));
  return stream;
}

inline CUevent NewEvent() {
  CUevent event = nullptr;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

inline CUmemAllocationProp DeviceMemory() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

inline CUmemGenericAllocationHandle NewHandle(uint64_t bytes = kPage) {
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  MUST(cuMemCreate(&handle, bytes, &prop, 0));
  return handle;
}

inline void Enable(CUdeviceptr address, uint64_t bytes) {
  CUmemAccessDesc desc = {};
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemSetAccess(address, bytes, &desc, 1));
}

// A reservation of `pages` pages, mapped one by one.
inline CUdeviceptr NewArena(int pages, bool access = true) {
  CUdeviceptr base = 0;
  MUST(cuMemAddressReserve(&base, pages * kPage, 0, 0, 0));
  for (int i = 0; i < pages; ++i) {
    const CUmemGenericAllocationHandle handle = NewHandle();
    MUST(cuMemMap(base + i * kPage, kPage, 0, handle, 0));
    MUST(cuMemRelease(handle));
  }
  if (access) Enable(base, pages * kPage);
  return base;
}

}  // namespace simgpu_test
