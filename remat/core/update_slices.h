// Divides an optimizer's update into slices, which run one after the other. So only one slice's state and temporaries
// need be on the device at a time.
//
//   update        mul(m1 m2 m3)   add(m1 m2 m3, g1 g2 g3)   step(p1 p2 p3, m1 m2 m3)
//   two slices    mul(m1 m2) add(m1 m2, g1 g2) step(p1 p2, m1 m2)   mul(m3) add(m3, g3) step(p3, m3)
//
// An operator's part of a slice reads, writes and changes what its operands have of the slice. It has the operator's
// flags, and its cost in proportion to the bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

struct SlicedGraph {
  Graph graph;  // passes Check(); without `updates`
  // By slice: the storages of the update that belong to it, ascending.
  std::vector<std::vector<StorageId>> slices;
  // By operator of `graph`: the operator of the original graph that it is, or that it is a part of.
  std::vector<OperatorId> original;
};

// Returns the graph with the parts of each divisible update joined to slices of at least `slice_bytes` bytes, as far as
// there are parts. 0: every part by itself. `graph` must pass Check(). The costs add up to the original's. Operators
// without cost and results, such as reads of a scalar, are joined in each slice. O(size of the graph · slices).
// Thread-safe.
SlicedGraph SliceUpdates(const Graph& graph, Bytes slice_bytes);

// Returns the storages of each divisible update, as one slice each. O(storages · updates). Thread-safe.
std::vector<std::vector<StorageId>> WholeUpdates(const std::vector<DivisibleUpdate>& updates);

// Lets the optimizers' state of the first `count` slices begin and end the step on the host (Storage::away). Returns
// whether there is any. O(storages).
bool SendStateAway(const std::vector<std::vector<StorageId>>& slices, size_t count, Graph* graph);

// Returns a size of slices at which an update has about `count` slices, or fewer if single parts are larger. ≥ 0.
// O(storages).
Bytes SliceBytes(const Graph& graph, int count);

}  // namespace hotpack::remat
