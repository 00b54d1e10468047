// Converts a three-dimensional copy to the driver's form.
#pragma once

#include "simgpu/runtime/runtime.h"

namespace simgpu_runtime {

// Returns CUDA_ERROR_NOT_SUPPORTED for arrays.
CUresult Spec3D(const cudaMemcpy3DParms* p, CUDA_MEMCPY3D* s);

}  // namespace simgpu_runtime
