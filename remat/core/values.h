// The contents of a graph's storages, one by one: which operator makes them and which use them.
//
//   storage y:   conv writes y          relu_ updates y         loss reads y
//   value 0      made by conv ─ gap ─► used by relu_ (ends)
//   value 1                             made by relu_ ── gap ──► used by loss ─ gap ─► end, if y is kept
//
// In each gap a plan may hold a value, or let it go and make it or bring it back for the next use.
#pragma once

#include <vector>

#include "remat/core/graph.h"

namespace hotpack::remat {

using ValueId = int32_t;
using GapId = int32_t;

struct Value {
  StorageId storage;
  OperatorId maker;                 // -1: given
  std::vector<OperatorId> uses;     // ascending; the one that changes it in place is the last
  bool left = false;                // it is the storage's contents at the end, and they are kept
  OperatorId overwritten = kNever;  // makes other contents of the storage
  GapId first_gap = 0;  // its gaps follow each other: one before each use, one more before the end if it is left
};

struct Gap {
  ValueId value;
  OperatorId after;   // its maker or a use; -1: the beginning
  OperatorId before;  // the next use; the number of operators: the end
};

struct Values {
  std::vector<Value> values;
  std::vector<Gap> gaps;
  std::vector<std::vector<ValueId>> inputs;   // by operator: what it reads, then what it changes
  std::vector<std::vector<ValueId>> outputs;  // by operator: what it writes, then what it changes

  int32_t GapsOf(ValueId value) const {
    const Value& of = values[static_cast<size_t>(value)];
    return static_cast<int32_t>(of.uses.size()) + (of.left ? 1 : 0);
  }
};

// `graph` must pass Check(). O(size of the graph).
Values ValuesOf(const Graph& graph);

}  // namespace hotpack::remat
