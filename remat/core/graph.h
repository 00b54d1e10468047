// A training step as the planners see it: operators, run one after another, over storages.
//
//   storage    memory that some operators fill, some read and some change in place
//   operator   a kernel or a library call: what it reads, makes and changes, and how long it takes
//   contents   what a storage holds between two operators that change it. A planner may let contents go, and run the
//              operators again that made them, or copy them to the host and back
//   given      contents that are there before the first operator: weights, the optimizer's state, inputs
//   kept       contents that must be there after the last one: weights, gradients, results
//
//        reads                 writes                   updates
//   x ────────► conv(x, w) ────────► y      relu_(y) ◄────────► y      (in place: y's contents before are lost)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "packer/types.h"

namespace hotpack::remat {

using StorageId = int32_t;
using OperatorId = int32_t;
using Nanoseconds = int64_t;

enum class StorageKind : uint8_t { kFeatureMap, kWeight, kWorkspace, kOther };
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

struct Storage {
  std::string name;
  Bytes bytes = 0;  // ≥ 0
  StorageKind kind = StorageKind::kFeatureMap;
  bool given = false;
  bool kept = false;
};

// The storage `made` may take over the memory of `read`, whose contents are lost then: an activation function in place.
struct InPlace {
  StorageId read;
  StorageId made;  // no larger
};

struct Operator {
  std::string name;
  Nanoseconds cost = 0;            // ≥ 0, of the compute engine
  std::vector<StorageId> reads;    // contents it uses
  std::vector<StorageId> writes;   // contents it makes without looking at what was there
  std::vector<StorageId> updates;  // contents it uses and changes in place
  std::vector<InPlace> in_place;   // as far as a planner wants to
  Bytes workspace = 0;             // ≥ 0, while it runs
  Phase phase = Phase::kForward;
  bool heavy = false;   // much work for its memory: convolutions, products of matrices
  bool random = false;  // another result each time it runs, unless the generator's state was saved
  bool once = false;    // never runs again: a collective of all ranks, input from outside
  std::vector<StorageId> masks =
      {};  // of `reads`: of each 4 bytes of these it needs one bit, such as where a ReLU let through
};

inline constexpr OperatorId kNever = INT32_MAX;

// Storages and operators are named by their indices; operators are in the order in which the program runs them.
struct Graph {
  std::vector<Storage> storages;
  std::vector<Operator> operators;
  // By storage, or empty: the last operator before the program itself lets go of it; -1: before the first one; kNever.
  // Where it is empty the program lets go of a storage after its last use. Plans let go when they like; this is what is
  // compared with.
  std::vector<OperatorId> released_after;
};

// Ok, or InvalidArgument with one line that names the first fault: an id that is none, a negative size or cost, a
// storage that is named twice by one operator, an operator that uses contents nobody has made, memory taken over from a
// smaller storage or from one that the operator does not read, contents to keep that are never made or that the program
// lets go of, sums beyond 2^62. O(size of the graph). Thread-safe.
absl::Status Check(const Graph& graph);

// For each storage the operators that touch it, ascending. O(size of the graph). Thread-safe.
std::vector<std::vector<OperatorId>> UsesOf(const Graph& graph);

// Sum of the costs, each operator once: the least time of any plan.
Nanoseconds TotalCost(const Graph& graph);

}  // namespace hotpack::remat
