// A training step as the deep Q-network sees it (Chen, "GPU memory management for neural networks using deep
// Q-network", sections 3 and 4.2): a sequence of operations, each a node, and what may go away between two of them.
//
//   node   0 malloc x │ 1 read w │ 2 write x │ 3 read x │ 4 malloc y │ ... │ 20 read x │ 21 free x
//                                                └──── absence of x: gone after node 3, back before node 20 ────┘
//          remove x                 offload x       nodes that stand for an action: at most one each; node 0 of a sequence
//                                                   stands for doing nothing
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

// Contents of some memory. Several follow each other in one memory where something is changed in place.
struct Variable {
  int32_t memory;
  int32_t maker = -1;  // of Sequence::makers; -1: it cannot be made again
};

struct Memory {
  Bytes bytes = 0;
  Nanoseconds to_host = 0;  // time of the transfers
  Nanoseconds to_device = 0;
};

// What makes variables, all at once.
struct Maker {
  Nanoseconds cost = 0;
  std::vector<int32_t> needs;  // variables
  std::vector<int32_t> makes;
};

// A variable may go after the operation `after`, and has to be back before the operation `before`.
struct Absence {
  int32_t variable;
  int32_t access;  // the node that uses the variable before it may go
  int32_t open;    // from this node on it may be decided; its transfer may begin here, beside what runs (section 4.9)
  int32_t after;   // its memory is used until the end of this node; ≥ open - 1
  int32_t before;
  int32_t offload_node = -1;  // stands for the action; -1: it is none
  int32_t remove_node = -1;
  GapId gap = -1;
};

struct Sequence {
  std::vector<Operation> operations;
  std::vector<Variable> variables;
  std::vector<Memory> memories;
  std::vector<Maker> makers;      // in the order in which they run
  std::vector<Absence> absences;  // ascending by `open`
  std::vector<int32_t> given;     // variables that are there before the first operation
  Bytes always = 0;               // there all the time beside them
};

// Which node stands for which action: offloading is the node that uses the variable before it goes; removing is another
// node of the variable that stands for nothing yet, the one that allocates it first of all, else one before, else the
// one that uses it again. What finds no node is no action. Node 0 is left out. O(nodes + absences · nodes of a
// variable).
void AssignActions(Sequence* sequence);

// The operations of the program as it is (BuildSchedule() with everything held). An operator allocates, reads, and
// writes; all its time is that of its last read or write. Workspaces are allocated and freed. Storages below 1/256 of
// the largest are no nodes: the most that they take at once counts as always there, and the time of an operator that
// touches nothing else is that of the node before it. What may go are contents that the forward pass has made or read,
// or that were given, in gaps in which anything happens; removed may be what BuildSchedule() could make again. `graph`
// must pass Check(). O(size of the graph), and one BuildSchedule().
Sequence SequenceOf(const Graph& graph, const Values& values, const Machine& machine = {});

}  // namespace hotpack::remat
