// The stream that kernels are launched on.
#pragma once

namespace hotpack::train {

// A cudaStream_t or CUstream, null for the default stream. Set by the device while it lives; there is one at a time.
inline void* launch_stream = nullptr;

}  // namespace hotpack::train
