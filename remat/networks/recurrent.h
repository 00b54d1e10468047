// Unrolled recurrent layers: each step has its own small operators between two matrix products, as MXNet's cells do.
//
//   x ── fully connected 4h ──┐              ┌─ sigmoid i ─┐
//                            (+) ── slice ───┼─ tanh g ────┴ (·) ─┐
//   h ── fully connected 4h ──┘              ├─ sigmoid f ── (·) (+) ──► c ── tanh ── (·) ──► h
//   c ───────────────────────────────────────┼──────────────┘                         │
//                                            └─ sigmoid o ─────────────────────────────┘
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/builder.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// Weights of one layer, shared by all its steps. Biases are left out: they are a thousandth of the rest.
struct CellWeights {
  std::vector<TensorId> of_input;  // LSTM: gates. GRU: gates, candidate
  std::vector<TensorId> of_hidden;
};
CellWeights MakeLstmWeights(NetworkBuilder* net, int64_t inputs, int64_t hidden);
CellWeights MakeGruWeights(NetworkBuilder* net, int64_t inputs, int64_t hidden);

struct CellState {
  TensorId h = -1;
  TensorId c = -1;  // LSTM
};
// Returns a given state.
CellState ZeroState(NetworkBuilder* net, int64_t batch, int64_t hidden);

// `x`: batch, inputs. Hochreiter and Schmidhuber 1997 with forget gates: 25 · batch · hidden elements of results.
CellState LstmStep(NetworkBuilder* net, const CellWeights& weights, TensorId x, CellState before);

// Cho et al. 2014: update and reset gates, h' = h + u · (tanh(Wx + U(r · h)) - h). `normalise`: batch normalisation of
// the gates' product with the input, with its own scale at each step.
CellState GruStep(NetworkBuilder* net, const CellWeights& weights, TensorId x, CellState before, bool normalise);

// Copies `x`, divided along its first dimension into `parts`, each of shape `shape`; and the reverse.
std::vector<TensorId> Split(NetworkBuilder* net, TensorId x, int64_t parts, std::vector<int64_t> shape);
// Copies `x` with its dimensions, or its steps, in another order.
TensorId Rearranged(NetworkBuilder* net, TensorId x, std::vector<int64_t> shape);

// A stack of LSTM layers over steps, with a matrix product and a softmax at each step. The defaults are section 5.3 of
// Chen et al. 2016: inputs of 50, 5000 classes.
struct LstmOptions {
  int64_t layers = 4;
  int64_t hidden = 1024;
  int64_t steps = 64;
  int64_t batch = 64;
  int64_t inputs = 50;
  int64_t classes = 5000;
};
absl::StatusOr<Network> Lstm(const LstmOptions& options);

std::vector<Generator> LstmGenerators();

}  // namespace hotpack::remat
