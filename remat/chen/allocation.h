// The static memory allocation of Chen et al. 2016 (section 3, Figure 2): one pass over the operators assigns each
// result a tag, which stands for memory.
//
//   a ─[f]─ b ─[g]─ c ─[h]─ d      counters: remaining uses      tag 0: a, then c
//           └────────────┘         a 1, b 2, c 1                 tag 1: b, then d
//
// g cannot work in place on b, because h reads it. So c takes a's tag, which is free. h is the last use of b and works
// in place on it.
#pragma once

#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

// The first three of section 5.1's lines.
enum class Sharing : uint8_t {
  // Every result of every operator has its own memory.
  kNone,
  // A result takes over an operand's memory, where the operator can and no other operator reads that operand later.
  kInPlace,
  // In addition, a result reuses the memory of results that no operator reads any more.
  kAll,
};

struct Allocation {
  Bytes bytes = 0;              // of all tags
  std::vector<Bytes> tags;      // by tag: bytes of the largest result that it holds
  std::vector<int32_t> tag_of;  // by storage; -1: not counted
};

// Returns the allocation. As in section 5.1 it counts feature maps and their gradients: storages of kind kFeatureMap
// that are not given. `graph` must pass Check(). O(size of the graph · log different sizes). Thread-safe.
//
// The paper leaves open which tag a result takes. Here it takes the first that exists of:
//  1. the smallest free tag that holds it and is at most r times its size;
//  2. the largest free tag that is at least an r-th of its size, which grows;
//  3. a new tag.
// Of r = 1, 2, 4, 8, 16 the one with the smallest sum is used.
Allocation Allocate(const Graph& graph, Sharing sharing);

}  // namespace hotpack::remat
