// Parameters of PyTorch's kernels for tensors that are not contiguous.
#pragma once

#include <cstdint>
#include <functional>

namespace simgpu {

// Returns how many bytes at the start of the parameter hold no address that counts. 0: all of it counts. More than 0
// where it begins with an OffsetCalculator (ATen/cuda/detail/OffsetCalculator.cuh), followed by the tensors' addresses:
//
//   int dims │ 25 divisions {divisor, m1, shift} │ 25 × N strides │ N addresses │ what the operator captures
//
// Only the first `dims` divisions and strides are set. The rest is what lay on the host's stack before, and may contain
// addresses of other tensors. The kernel never reads it. `on_device`: an address of the device, or of host memory that
// it reaches.
uint32_t BytesOfOffsets(const void* parameter, uint32_t bytes, const std::function<bool(uint64_t)>& on_device);

}  // namespace simgpu
