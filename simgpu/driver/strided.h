// Parameters of PyTorch's kernels for tensors that are not contiguous.
#pragma once

#include <cstdint>
#include <functional>

namespace simgpu {

// Returns how many bytes at the start of the parameter contain no valid address. 0: all may be valid. Above 0 if the
// parameter begins with an OffsetCalculator (ATen/cuda/detail/OffsetCalculator.cuh) before the tensors' addresses:
//
//   int dims │ 25 divisions {divisor, m1, shift} │ 25 × N strides │ N addresses │ the operator's captured values
//
// Only the first `dims` divisions and strides are set. The others are old bytes of the host's stack, which may contain
// addresses of other tensors. The kernel never reads them. `on_device`: returns true for an address of the device, or
// of host memory that it reaches.
uint32_t BytesOfOffsets(const void* parameter, uint32_t bytes, const std::function<bool(uint64_t)>& on_device);

}  // namespace simgpu
