// The static memory allocation of Chen et al. 2016 (section 3, Figure 2): one pass over the operators gives every
// result a tag, which stands for memory.
//
//   a ─[f]─ b ─[g]─ c ─[h]─ d      counters: uses that are left      tag 0: a, then c     g cannot work on b (h reads it): c takes
//           └────────────┘         a 1, b 2, c 1                     tag 1: b, then       the tag that a has left;  h works in place
//                                                                            d            on b, of which it is the last use
#pragma once

#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

// The first three of section 5.1's lines.
enum class Sharing : uint8_t {
  kNone,  // every result of every operator has memory of its own
  kInPlace,  // a result takes over the memory of what it is made from, where the operator can and nothing else will read that
  kAll,  // and the memory of what nothing will read any more
};

struct Allocation {
  Bytes bytes = 0;              // of all tags
  std::vector<Bytes> tags;      // the largest result that each one holds
  std::vector<int32_t> tag_of;  // by storage; -1: it is not counted
};

// Feature maps and their gradients are counted, as in section 5.1: storages of kind kFeatureMap that are not given.
// `graph` must pass Check(). A result takes the smallest free tag that holds it and is at most r times its size, else
// the largest one that is at least an r-th of it, which grows, else a new one; of r = 1, 2, 4, 8, 16 the one that takes
// the least in all: the paper leaves open which tag is taken. O(size of the graph · log different sizes). Thread-safe.
Allocation Allocate(const Graph& graph, Sharing sharing);

}  // namespace hotpack::remat
