// Parameters of PyTorch's kernels for lists of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simgpu {

// Returns the offsets of the addresses that the launch reads, in bytes from the start of the parameter. nullopt: not
// such a parameter, or one of unknown layout. Offsets lie within `bytes`. Known are, by the kernel's mangled name:
//
//   TensorList[ScalarList]Metadata, FusedOptimizerTensorListMetadata (ATen/native/cuda/MultiTensorApply.cuh)
//     N × T addresses │ T sizes │ T scalars or T addresses │ the tensor of each block │ ...
//   CatArrInputTensorMetadata (ATen/native/cuda/Shape.cu)
//     T addresses │ T offsets │ ...
//
// The tables have room for T tensors. Only the slots of this launch's tensors are set, those of its blocks: `grid_x`
// in the first case, one row of `grid_y` a tensor in the second. The others are old bytes of the host's stack, or left
// by the launch before. They may contain addresses of other tensors. The kernel never reads them.
std::optional<std::vector<uint32_t>> AddressesOfLists(const std::string& kernel, const void* parameter, uint32_t bytes,
                                                      uint32_t grid_x, uint32_t grid_y);

}  // namespace simgpu
