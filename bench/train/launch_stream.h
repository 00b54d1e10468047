// The stream on which kernels are launched.
#pragma once

namespace hotpack::train {

// A cudaStream_t or CUstream; null: the default stream. The device sets it while it lives. There is one device at a
// time.
inline void* launch_stream = nullptr;

}  // namespace hotpack::train
