// Prepares a node pool for more nodes, so that adding them later makes no heap allocation.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace hotpack {

// Ensures that `pool` has memory for `count` more nodes of up to `bytes` each. O(count).
inline void ReserveNodes(std::pmr::memory_resource* pool, size_t bytes, size_t count) {
  std::vector<void*> nodes(count);
  for (void*& node : nodes) node = pool->allocate(bytes, alignof(std::max_align_t));
  for (void* node : nodes) pool->deallocate(node, bytes, alignof(std::max_align_t));
}

}  // namespace hotpack
