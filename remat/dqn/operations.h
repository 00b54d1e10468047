// A training step as the deep Q-network sees it (Chen, "GPU memory management for neural networks using deep
// Q-network", sections 3 and 4.2): a sequence of operations, each a node, and the variables that may be absent between
// two of them.
//
//   node   0 malloc x │ 1 read w │ 2 write x │ 3 read x │ 4 malloc y │ ... │ 20 read x │ 21 free x
//          remove x                            offload x
//                                                └──── absence of x: gone after node 3, back before node 20 ────┘
//
// A node stands for at most one action. Node 0 of a sequence stands for doing nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "remat/core/schedule_builder.h"

namespace hotpack::remat {

enum class OperationKind : uint8_t { kMalloc, kFree, kRead, kWrite };

struct Operation {
  OperationKind kind;
  int32_t variable;
  Nanoseconds duration = 0;  // ≥ 0
};

// Contents of some memory. Changes in place put several variables one after the other into one memory.
struct Variable {
  int32_t memory;
  int32_t maker = -1;  // index in Sequence::makers; -1: it cannot be recomputed
};

struct Memory {
  Bytes bytes = 0;
  Nanoseconds to_host = 0;  // durations of the transfers
  Nanoseconds to_device = 0;
};

// An operation that makes several variables at once.
struct Maker {
  Nanoseconds cost = 0;
  std::vector<int32_t> needs;  // variables
  std::vector<int32_t> makes;
};

// A variable may be absent after the operation `after`, and must be back before the operation `before`.
struct Absence {
  int32_t variable;
  int32_t access;  // the last node that uses the variable before the absence
  // From this node on the agent may choose it, and its transfer may begin, in parallel with operations (section 4.9).
  int32_t open;
  int32_t after;  // the variable's memory is in use until the end of this node; ≥ open - 1
  int32_t before;
  int32_t offload_node = -1;  // the node that stands for the action; -1: not possible
  int32_t remove_node = -1;
  GapId gap = -1;
};

struct Sequence {
  std::vector<Operation> operations;
  std::vector<Variable> variables;
  std::vector<Memory> memories;
  std::vector<Maker> makers;      // in the order in which they run
  std::vector<Absence> absences;  // ascending by `open`
  std::vector<int32_t> given;     // variables that exist before the first operation
  Bytes always = 0;               // bytes that are always resident, without the variables
};

// Chooses the node that stands for each action. O(nodes + absences · nodes of a variable).
//   offload   the last node that uses the variable before the absence
//   remove    another node of the variable that stands for nothing yet: preferably the one that allocates it, else an
//             earlier one, else the one that uses it again
// An action for which no node is free is not possible. Node 0 is not used.
void AssignActions(Sequence* sequence);

// Returns the operations of the unmodified program (BuildSchedule() with everything held). `graph` must pass Check().
// O(size of the graph), and one BuildSchedule().
//  1. An operator allocates, reads and writes. All its time counts for its last read or write.
//  2. Workspaces are allocated and freed.
//  3. Storages below 1/256 of the largest are not nodes. Their peak counts as always resident. If an operator touches
//     nothing else, its time counts for the node before it.
//  4. Offloading is possible for contents that the forward pass has made or read, or that were given, in gaps in which
//     an operation runs. Removing is possible for those of them that BuildSchedule() can recompute.
Sequence SequenceOf(const Graph& graph, const Values& values, const Machine& machine = {});

}  // namespace hotpack::remat
