// Echo (Zheng, Vijaykumar, Pekhimenko 2020, "Compiler-based GPU memory footprint reduction for LSTM RNN training"): which results
// of the forward pass are computed again, by a dataflow analysis.
//
//   [FC]─X─┐
//          (+)─ a ─(tanh)─ b ─►        backward pass: from the outputs back, up to what is heavy (here both FC): a subgraph whose
//   [FC]─Y─┘                           operators may all run again. forward pass: an operator is taken out of it if what would be
//                                      let go before it (X and Y) is at least what would be kept behind it (a)
#pragma once

#include <vector>

#include "planner/rebuild.h"

namespace hotpack::planner {

struct EchoPlan {
  std::vector<bool> again;  // by operator: on the recomputation path
  int64_t subgraphs = 0;    // they are disjoint
  std::vector<Way> ways;    // by gap; for Rebuild(), with `again` for what may run again
};

// Algorithm 1 over the operators of the forward pass. Edges are values; use references are counted over all operators, in other
// subgraphs too (an encoder's result that each step of a decoder uses), and all that use one edge leave the path together. The gradient's dependencies are what the graph's backward operators read, so that a heavy
// operator whose results only operators on the path use need not run again (section V-B's dead nodes). Results that could not be
// made again (Rebuild) are kept. If the plan's live peak were above that of the program, nothing is computed again. O(edges · log
// edges), and one simulation.
EchoPlan PlanByEcho(const Graph& graph, const Values& values, const Machine& machine = {});

}  // namespace hotpack::planner
