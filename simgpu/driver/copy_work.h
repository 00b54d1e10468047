// Copies as nodes of graphs.
#pragma once

#include "simgpu/driver/work.h"

namespace simgpu {

// Makes the work of a copy's node, which runs in `context`; null: nothing is known about what it reaches.
CUresult CopyWork(Driver& d, const CUDA_MEMCPY3D& params, CUcontext context, RunWork* run);

}  // namespace simgpu
