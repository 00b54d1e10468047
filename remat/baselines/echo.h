// Echo (Zheng, Vijaykumar, Pekhimenko 2020, "Compiler-based GPU memory footprint reduction for LSTM RNN training"):
// chooses by a dataflow analysis which results of the forward pass are recomputed.
//
//   [FC]─X─┐
//          (+)─ a ─(tanh)─ b ─►
//   [FC]─Y─┘
//
//   backward pass   walks from the outputs back to heavy operators (here both FC). The subgraph between them may run
//                   again
//   forward pass    removes an operator from that path if the operands that this frees (X and Y) have at least as many
//                   bytes as the results that it keeps instead (a)
#pragma once

#include <vector>

#include "remat/core/schedule_builder.h"

namespace hotpack::remat {

struct EchoOptions {
  // By operator: the others never run again, as if they had been removed from the path. Null: all are allowed. The
  // paper's Figure 17 switches layers on and off. Its dropouts run once, because their generator's state is not saved.
  const std::vector<bool>* allowed = nullptr;
  // If > 0: removes an operator from the path if it follows as many others, each from the result of the one before. 0:
  // no limit. Not in the paper. It is for a state that goes from step to step (c of an LSTM). Without it all steps are
  // recomputed for the last gradient and are resident at once. A state that is kept at intervals divides them.
  int64_t longest_path = 0;
};

struct EchoPlan {
  std::vector<bool> again;  // by operator: on the recomputation path
  // By operator: its subgraph; -1: none. Subgraphs are disjoint, and no result is used in two of them.
  std::vector<int32_t> subgraph_of;
  int32_t subgraphs = 0;
  std::vector<GapAction> ways;  // by gap; for BuildSchedule(), with `again` as `may_run_again`
  Outcome outcome;              // of that schedule
};

// Returns Echo's plan: Algorithm 1 over the operators of the forward pass. O(edges · log edges), and for each attempt a
// simulation, a packing by best fit and, if that is too high, one of at most 0.1 s. Thread-safe.
//
//  1. Edges are values. Edge references are counted over all operators, as the compiler's pass does.
//  2. Subgraphs that use the same edge are one subgraph, since the paper's have no reuse across them. Example: an
//     encoder's result that each step of a decoder uses. All users of an edge leave the path together.
//  3. A recomputed operand counts nothing, because keeping the result would not free it (Figure 13, where trimming ends
//     at once).
//  4. The gradients' dependencies (section V-B) are the operands of the graph's backward operators.
//  5. Heavy operators are never on the path. If their gradients read operands only, these are recomputed, but the heavy
//     operators are not (the paper's dead nodes). If an operator on the path or a gradient reads their results, these
//     are kept.
//  6. The plan's live peak is at most the program's: each operator once, everything dropped after its last use. The
//     packed arena is at most the program's live peak, so no arena of the program is smaller. If a plan violates this,
//     the subgraphs that save least are removed, half of them at a time.
EchoPlan PlanByEcho(const Graph& graph, const Values& values, const Machine& machine = {},
                    const EchoOptions& options = {});

}  // namespace hotpack::remat
