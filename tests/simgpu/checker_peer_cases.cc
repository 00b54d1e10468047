// Kernels that use another device's memory. SIMGPU_DEVICES=2.
#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {

namespace {

// A stream of the second device, whose context is current when it is made.
CUstream OnSecondDevice(CUcontext* context) {
  MUST(cuDevicePrimaryCtxRetain(context, 1));
  MUST(cuCtxSetCurrent(*context));
  return NewStream();
}

CUdeviceptr Ordinary() {
  CUdeviceptr address = 0;
  MUST(cuMemAlloc(&address, kPage));
  return address;
}

}  // namespace

CASE(PeerKernelMapped) {
  CUcontext second = nullptr;
  Give(arena, 8192);
  Touch(OnSecondDevice(&second), arena);
}
CASE(PeerKernelMappedWithAccess) {
  CUcontext second = nullptr;
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Give(arena, 8192);
  MUST(cuMemSetAccess(arena, kPage, &access, 1));
  Touch(OnSecondDevice(&second), arena);
}
CASE(PeerKernelOrdinary) {
  const CUdeviceptr address = Ordinary();
  CUcontext second = nullptr;
  Touch(OnSecondDevice(&second), address);
}
CASE(PeerKernelOrdinaryEnabled) {
  CUcontext first = nullptr, second = nullptr;
  MUST(cuCtxGetCurrent(&first));
  const CUdeviceptr address = Ordinary();
  const CUstream stream = OnSecondDevice(&second);
  MUST(cuCtxEnablePeerAccess(first, 0));
  Touch(stream, address);
}

}  // namespace simgpu_test
