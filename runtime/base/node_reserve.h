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

// Ensures that absl::btree_map and btree_set with entries of two words may get `count` more entries, all together, and
// change as often as they like. Their nodes have 15 entries (a few, in a small tree), the inner ones also 16 pointers.
// Reserves nodes that are a quarter full. O(count).
inline void ReserveBTreeNodes(std::pmr::memory_resource* pool, size_t count) {
  constexpr size_t kHeader = 16, kEntry = 16, kEntries = 15, kPointers = 16 * sizeof(void*);
  constexpr size_t kSpare = 8;  // for several trees
  const size_t leaves = count / (kEntries / 4 + 1) + kSpare;
  for (size_t entries = 1; entries < kEntries; entries *= 2) ReserveNodes(pool, kHeader + entries * kEntry, kSpare);
  ReserveNodes(pool, kHeader + kEntries * kEntry, leaves);
  ReserveNodes(pool, kHeader + kEntries * kEntry + kPointers, leaves / (kEntries / 4 + 1) + kSpare);
}

}  // namespace hotpack
