// The values of a graph: each contents of a storage, which operator makes it and which operators use it.
//
//   storage y:   conv writes y          relu_ updates y         loss reads y
//   value 0      made by conv ─ gap ─► used by relu_ (ends)
//   value 1                             made by relu_ ── gap ──► used by loss ─ gap ─► end, if y is kept
//
// In each gap a plan may keep a value, or discard it and recompute or copy it back for the next use.
#pragma once

#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

using ValueId = int32_t;
using GapId = int32_t;

inline constexpr ValueId kNoValue = -1;  // no value

struct Value {
  StorageId storage;
  OperatorId maker;              // -1: given
  std::vector<OperatorId> uses;  // ascending; an operator that changes it in place is the last
  // It is the storage's contents at the end, and the storage is kept on the device (not Storage::away).
  bool left = false;
  OperatorId overwritten = kNever;  // the operator that makes other contents of the storage
  // Its gaps have consecutive ids: one before each use, and one more before the end if `left`.
  GapId first_gap = 0;
};

struct Gap {
  ValueId value;
  // Its maker or a use; -1: the beginning. Of a storage that the program holds and that may not move: before - 1, since
  // no operator finds the storage without its contents.
  OperatorId after;
  OperatorId before;  // the next use; the number of operators: the end
};

struct Values {
  std::vector<Value> values;
  std::vector<Gap> gaps;
  std::vector<std::vector<ValueId>> inputs;   // by operator: values that it reads, then values that it changes
  std::vector<std::vector<ValueId>> outputs;  // by operator: values that it writes, then values that it changes

  int32_t GapsOf(ValueId value) const {
    const Value& of = values[static_cast<size_t>(value)];
    return static_cast<int32_t>(of.uses.size()) + (of.left ? 1 : 0);
  }
};

// Returns the values of a graph that passes Check(). O(size of the graph).
Values ValuesOf(const Graph& graph);

}  // namespace hotpack::remat
