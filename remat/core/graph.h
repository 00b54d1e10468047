// A training step as the planners see it: operators over storages, run one after another.
//
//   storage    memory that some operators write, some read and some change in place
//   operator   a kernel or a library call: what it reads, writes and changes, and how long it takes
//   contents   what a storage holds between two operators that change it. A planner may discard contents and restore
//              them later: by running the operators again that made them, or by a copy to the host and back
//   given      contents that exist before the first operator: weights, the optimizer's state, inputs
//   held       contents that the program itself keeps until it frees them: no plan may discard them before
//   kept       contents that must exist after the last operator: weights, gradients, results
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
  // The program itself keeps the contents until it frees the storage (Graph::released_after): by a name in its source,
  // or as a gradient. No plan discards or moves them before. Afterwards they may be recomputed like others.
  bool held = false;
  // The contents may leave the device although they are held, if the host has a copy: parameters, gradients and the
  // optimizer's state. No plan discards them without. Such storages are never released.
  bool movable = false;
  // It begins and ends the step on the host, not on the device: given and kept, and not held.
  bool away = false;
};

// The storage `made` may take over the memory of `read`, whose contents are then lost. Example: an activation in place.
struct InPlace {
  StorageId read;
  StorageId made;  // at most as large as `read`
};

struct Operator {
  std::string name;
  Nanoseconds cost = 0;            // ≥ 0, on the compute engine
  std::vector<StorageId> reads;    // contents it uses
  std::vector<StorageId> writes;   // contents it makes; the earlier contents do not matter
  std::vector<StorageId> updates;  // contents it uses and changes in place
  std::vector<InPlace> in_place;   // pairs that a planner may use
  Bytes workspace = 0;             // ≥ 0, while it runs
  Phase phase = Phase::kForward;
  bool heavy = false;   // much work for its memory: convolutions, matrix products
  bool random = false;  // each run has another result, unless the generator's state was saved
  bool once = false;    // never runs again: a collective of all ranks, input from outside
  // A subset of `reads`. Of each 4 bytes of these the operator needs one bit, such as where a ReLU let through.
  std::vector<StorageId> masks = {};
};

inline constexpr OperatorId kNever = INT32_MAX;

// The index that an id is; ≥ 0.
inline size_t At(int32_t id) { return static_cast<size_t>(id); }

inline bool IsForward(const Operator& op) { return op.phase == Phase::kForward; }

// Operators of an optimizer's update that may run slice by slice: each has equal results if it treats the parameters
// one after the other (remat/core/update_slices.h).
struct DivisibleUpdate {
  OperatorId begin = 0;
  OperatorId end = 0;  // behind the last one
  // By storage: the smallest part of the update that it belongs to, from 0 on: one parameter with its gradient, its
  // state and its temporaries. -1: of all parts, or not of the update.
  std::vector<int32_t> part_of;
  int32_t parts = 0;
};

// Storages and operators are named by their indices. Operators are in the program's order.
struct Graph {
  std::vector<Storage> storages;
  std::vector<Operator> operators;
  // By storage: the last operator before the program itself frees it. -1: before the first operator; kNever: never.
  // Empty: the program frees each storage after its last use. Plans free storages when they like. This is what plans
  // are compared with.
  std::vector<OperatorId> released_after;
  std::vector<DivisibleUpdate> updates = {};  // ascending, disjoint
};

// Returns Ok, or InvalidArgument with one line that names the first fault. O(size of the graph). Thread-safe. Faults:
//  - an id out of range, a negative size or cost, a sum beyond 2^62;
//  - a storage that one operator names twice;
//  - an operator that uses contents that no operator has made;
//  - memory taken over from a smaller storage, or from one that the operator does not read;
//  - contents to keep that are never made, or that the program frees.
absl::Status Check(const Graph& graph);

// Returns for each storage the operators that touch it, ascending. O(size of the graph). Thread-safe.
std::vector<std::vector<OperatorId>> UsesOf(const Graph& graph);

// Returns the sum of the costs, each operator once. No plan takes less time.
Nanoseconds TotalCost(const Graph& graph);

}  // namespace hotpack::remat
