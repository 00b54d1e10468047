// Tensor maps: kernels of the Hopper generation get them instead of pointers. A simulated one is the address and zeros.
// A launch whose parameters contain one uses the block at that address, as with a pointer in a struct.
#include <cstring>

#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

constexpr cuuint32_t kMaxDimensions = 5;

bool Aligned(const void* pointer, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

// cuda.h, cuTensorMapEncodeTiled, without its rules for packed types and swizzling.
bool ValidTile(cuuint32_t rank, const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
               const cuuint32_t* element_strides) {
  if (dimensions == nullptr || box == nullptr || element_strides == nullptr) return false;
  if (rank > 1 && strides == nullptr) return false;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (dimensions[i] == 0 || dimensions[i] > uint64_t{1} << 32) return false;
    if (box[i] == 0 || box[i] > 256 || element_strides[i] == 0 || element_strides[i] > 8) return false;
    if (i + 1 < rank && (strides[i] % 16 != 0 || strides[i] >= uint64_t{1} << 40)) return false;
  }
  return true;
}

}  // namespace

SIMGPU_API cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                                  const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                                  const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                  CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  SIMGPU_ENTER(cuTensorMapEncodeTiled);
  const bool interleaved = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  if (map == nullptr || !Aligned(map, 64) || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (rank < (interleaved ? 3 : 1) || rank > kMaxDimensions) return CUDA_ERROR_INVALID_VALUE;
  if (!Aligned(address, interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16)) return CUDA_ERROR_INVALID_VALUE;
  if (!ValidTile(rank, dimensions, strides, box, element_strides)) return CUDA_ERROR_INVALID_VALUE;
  memset(static_cast<void*>(map), 0, sizeof *map);
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  return CUDA_SUCCESS;
}

SIMGPU_API cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  SIMGPU_ENTER(cuTensorMapReplaceAddress);
  if (map == nullptr || !Aligned(map, 64) || address == nullptr || !Aligned(address, 16))
    return CUDA_ERROR_INVALID_VALUE;
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
