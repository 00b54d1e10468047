// Echo (Zheng, Vijaykumar, Pekhimenko 2020, "Compiler-based GPU memory footprint reduction for LSTM RNN training"):
// which results of the forward pass are computed again, by a dataflow analysis.
//
//   [FC]─X─┐
//          (+)─ a ─(tanh)─ b ─►        backward pass: from the outputs back, up to what is heavy (here both FC): a subgraph whose
//   [FC]─Y─┘                           operators may all run again. forward pass: an operator is taken out of it if what would be
//                                      let go before it (X and Y) is at least what would be kept behind it (a)
#pragma once

#include <vector>

#include "remat/core/schedule_builder.h"

namespace hotpack::remat {

struct EchoOptions {
  // By operator: of the others nothing runs again, as if they had been taken out of the path. Null: all. (The paper's
  // Figure 17 switches layers on and off; its dropouts, whose generator has no state to save, run once.)
  const std::vector<bool>* allowed = nullptr;
  // > 0: an operator that would run again behind as many others, each from the result of the one before, is taken out
  // of the path: not in the paper. Where a state goes from step to step (c of an LSTM), all steps are made again for
  // the last one's gradient, and are there at once; a state kept here and there parts them.
  int64_t longest_path = 0;
};

struct EchoPlan {
  std::vector<bool> again;  // by operator: on the recomputation path
  std::vector<int32_t>
      subgraph_of;  // by operator: which subgraph it is in; -1: none. They are disjoint, and no result is used in two
  int32_t subgraphs = 0;
  std::vector<GapAction> ways;  // by gap; for BuildSchedule(), with `again` for what may run again
  Outcome outcome;              // of that schedule
};

// Algorithm 1 over the operators of the forward pass. Edges are values. Edge use references are counted over all
// operators, as the compiler's pass does: subgraphs that would use one edge (an encoder's result that each step of a
// decoder uses) are one subgraph, since the paper's have no reuse across them; all that use an edge leave the path
// together. An operand that is made again counts nothing: to keep the result would not let go of it (Figure 13, where
// trimming ends at once).
//
// The gradient's dependencies (section V-B) are what the graph's backward operators read. Heavy operators are never on
// the path: where their gradients read their operands only, these are made again and they are not (its dead nodes);
// where an operator on the path or a gradient reads their results, these are kept.
//
// The plan's live peak is at most that of the program (each operator once, everything dropped after its last use), and
// its packed arena at most the program's live peak, so that no arena of the program is smaller: where it would not be
// so, the subgraphs that save least are left out, half of them at a time. O(edges · log edges), and for each attempt a
// simulation, a packing by best fit and, if that is too high, one of at most 0.1 s. Thread-safe.
EchoPlan PlanByEcho(const Graph& graph, const Values& values, const Machine& machine = {},
                    const EchoOptions& options = {});

}  // namespace hotpack::remat
