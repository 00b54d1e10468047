// How the driver says what a three-dimensional copy is.
#pragma once

#include "simgpu/runtime/runtime.h"

namespace simgpu_runtime {

// CUDA_ERROR_NOT_SUPPORTED for arrays.
CUresult Spec3D(const cudaMemcpy3DParms* p, CUDA_MEMCPY3D* s);

}  // namespace simgpu_runtime
