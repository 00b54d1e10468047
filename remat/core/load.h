// Resident bytes of a schedule, and a lower bound on the memory of any schedule.
#pragma once

#include <string>
#include <vector>

#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

// Returns the resident bytes at each clock value from 0 on. O(residencies + clock values).
std::vector<Bytes> LoadOf(const std::vector<StorageResidency>& residencies);

// The moment at which every plan needs the most memory, and what makes it.
struct LeastMoment {
  Bytes bytes = 0;     // the sum of those below
  OperatorId op = -1;  // -1: before the first operator; the number of operators: at the end
  Bytes own = 0;       // operands, results and workspace of the operator, less what it may take over in place
  // Other contents that cannot leave the device then, by kind.
  Bytes weights = 0;  // and the optimizer's state
  Bytes results = 0;  // feature maps
  Bytes others = 0;   // gradients and inputs
};

// Returns the moment of the largest lower bound on the memory of any plan. O(size of the graph). It is the largest of:
//  - for each operator, its operands and workspace, and, unless `swap`, all contents that are both given and kept. Of a
//    recorded step, which keeps its order, also all other contents that cannot leave then: those that the program
//    holds, and, unless `swap`, those that no operator can make again;
//  - all given contents, at the beginning;
//  - all kept contents, at the end.
LeastMoment LeastMemoryAt(const Graph& graph, bool swap);

// Returns the moment for a message: the operator, "at the beginning" or "at the end", and what is live then, in bytes.
std::string TextOf(const Graph& graph, const LeastMoment& moment);

// Returns by operator the bytes of LeastMemoryAt() while it runs. O(size of the graph).
std::vector<Bytes> LeastByOperator(const Graph& graph, bool swap);

// Returns by operator the bytes of all values that are made by then and used then or later, or kept, and its workspace:
// what is live if nothing leaves. O(values + operators).
std::vector<Bytes> WantedByOperator(const Graph& graph, const Values& values);

// Returns LeastMemoryAt() in bytes.
Bytes LeastMemory(const Graph& graph, bool swap);

}  // namespace hotpack::remat
