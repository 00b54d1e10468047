#include "simgpu/driver/tensor_lists.h"

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr uint32_t kSmallestTable = 256;  // scalars and functors among the parameters are smaller
constexpr uint32_t kSmallArguments = 4096;

// Of multi_tensor_apply's metadata. The room for blocks depends on the toolkit that PyTorch was compiled with.
struct Blocks {
  uint32_t count, index_bytes;
};
constexpr Blocks kOfCuda12 = {320, 1}, kOfCuda13 = {2240, 2};

struct Layout {
  uint32_t lists = 0;         // of addresses, at the start
  uint32_t tensor_bytes = 0;  // of all entries of one tensor
  bool steps = false;         // a further list of addresses after the sizes
  bool start = false;         // the index of the first tensor, after the blocks
};

// Returns the number that follows `Li` at `at` of a mangled name (Itanium C++ ABI, 5.1.6.2 Literals); 0: none.
uint32_t LiteralAt(const std::string& name, size_t at) {
  if (name.compare(at, 2, "Li") != 0) return 0;
  uint32_t value = 0;
  for (at += 2; at < name.size() && name[at] >= '0' && name[at] <= '9' && value < 1000; ++at) {
    value = value * 10 + static_cast<uint32_t>(name[at] - '0');
  }
  return value;
}

// `after`: where the template arguments of the metadata's type begin; npos: the kernel has no parameter of that type.
size_t After(const std::string& kernel, const char* type) {
  const size_t at = kernel.find(type);
  return at == std::string::npos ? at : at + strlen(type);
}

Layout LayoutOf(const std::string& kernel) {
  size_t at = After(kernel, "FusedOptimizerTensorListMetadataI");
  if (at != std::string::npos) {
    const uint32_t lists = LiteralAt(kernel, at);
    return {lists, 8 * (lists + 2), true, true};
  }
  at = After(kernel, "TensorListMetadataI");
  if (at != std::string::npos) {
    const uint32_t lists = LiteralAt(kernel, at);
    return {lists, 8 * (lists + 1), false, true};
  }
  at = After(kernel, "TensorListScalarListMetadataI");
  if (at == std::string::npos) return {};
  constexpr struct {
    const char* mangled;
    uint32_t bytes;
  } kScalars[] = {{"f", 4}, {"d", 8}, {"l", 8}, {"N3c107complexIfEE", 8}, {"N3c107complexIdEE", 16}};
  for (const auto& scalar : kScalars) {
    if (kernel.compare(at, strlen(scalar.mangled), scalar.mangled) != 0) continue;
    const uint32_t lists = LiteralAt(kernel, at + strlen(scalar.mangled));
    return {lists, 8 * (lists + 1) + scalar.bytes, false, false};
  }
  return {};
}

// Returns the number of tensors that the launch's blocks name: the slots are filled from the first on.
uint32_t TensorsOf(const char* block_to_tensor, uint32_t blocks, uint32_t index_bytes) {
  uint32_t tensors = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    uint16_t tensor = 0;
    memcpy(&tensor, block_to_tensor + static_cast<size_t>(b) * index_bytes, index_bytes);  // little-endian
    tensors = std::max(tensors, tensor + 1u);
  }
  return tensors;
}

}  // namespace

std::optional<std::vector<uint32_t>> AddressesOfLists(const std::string& kernel, const void* parameter, uint32_t bytes,
                                                      uint32_t grid_x, uint32_t grid_y) {
  if (bytes < kSmallestTable) return std::nullopt;
  std::vector<uint32_t> addresses;
  if (kernel.find("CatArrInputTensorMetadata") != std::string::npos) {
    if (uint64_t{8} * grid_y > bytes) return std::nullopt;
    for (uint32_t tensor = 0; tensor < grid_y; ++tensor) addresses.push_back(8 * tensor);
    return addresses;
  }
  const Layout layout = LayoutOf(kernel);
  if (layout.lists == 0) return std::nullopt;
  const Blocks room = bytes > kSmallArguments ? kOfCuda13 : kOfCuda12;
  const uint32_t of_blocks = room.count * (room.index_bytes + 4) + (layout.start ? 4 : 0);
  if (grid_x > room.count || bytes < of_blocks + layout.tensor_bytes) return std::nullopt;
  const uint32_t slots = (bytes - of_blocks) / layout.tensor_bytes;  // at most 7 bytes of padding remain
  if (bytes - of_blocks - slots * layout.tensor_bytes >= 8) return std::nullopt;
  const char* block_to_tensor = static_cast<const char*>(parameter) + slots * layout.tensor_bytes;
  const uint32_t tensors = TensorsOf(block_to_tensor, grid_x, room.index_bytes);
  if (tensors > slots) return std::nullopt;
  for (uint32_t list = 0; list < layout.lists + (layout.steps ? 1 : 0); ++list) {
    const uint32_t row = list < layout.lists ? list : layout.lists + 1;
    for (uint32_t tensor = 0; tensor < tensors; ++tensor) addresses.push_back(8 * (row * slots + tensor));
  }
  return addresses;
}

}  // namespace simgpu
