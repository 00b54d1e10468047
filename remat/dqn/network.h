// The deep Q-network (sections 4.4 and 4.9): from the nodes of a sequence to the value of an action, by equations 1 to
// 3.
//
//   s_v ← ReLU(W1 x_v + W2 Σ_{u ∈ N(v)} s_u + W3 Σ_{u ∈ N(v)} ReLU(W4 w(u, v)))   T rounds, from 0     (1)
//   g = [W5 Σ_u s_u, W6 s_c]                                                     c: under execution   (2)
//   Q(g, s_a) = W7 ReLU([g, W8 s_a])                                             a: the action's node (3)
//
// N(v): v itself, the nodes before and behind it, and all nodes of the same memory. Sums are taken by memory, so that a
// round costs O(nodes) for any number of edges.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "remat/dqn/operations.h"
#include "remat/dqn/weights.h"

namespace hotpack::remat {

using NodeFeatures = Eigen::Matrix<double, kNodeFeatures, Eigen::Dynamic>;  // one column per node
using NodeStates = Eigen::Matrix<double, kWidth, Eigen::Dynamic>;

// Nodes, edges and features of a sequence. Each feature is in units of its largest value in the sequence. Edge weights
// are the times between the beginnings of two nodes, in units of the whole step.
class StateGraph {
 public:
  explicit StateGraph(const Sequence& sequence);

  Eigen::Index nodes() const { return features_.cols(); }
  // Writes x_v. The last of the six features says whether the node's action is valid now.
  void Features(const std::vector<bool>& valid, NodeFeatures* features) const;
  // Writes by column the sum of the columns N(v).
  void SumNeighbours(const NodeStates& states, NodeStates* sums) const;
  // Returns by node Σ_{u ∈ N(v)} w(u, v).
  const Eigen::RowVectorXd& lags() const { return lags_; }

 private:
  NodeFeatures features_;
  std::vector<int32_t> memory_of_;  // by node
  size_t memories_ = 0;
  Eigen::RowVectorXd lags_;
};

inline constexpr int kRounds = 4;  // T

// The states of all nodes, and the intermediate values for the gradient.
struct Embedding {
  NodeFeatures features;
  std::array<NodeStates, kRounds + 1> states;  // s^0 to s^T
  std::array<NodeStates, kRounds> sums;        // over neighbours of s^0 to s^(T-1)
  NodeStates fixed;                            // the part that is the same in every round
  QWeights::Column total;                      // Σ_u s_u^T
};

// Computes the states into `embedding` and reuses its memory.
void Embed(const StateGraph& graph, const QWeights& weights, const std::vector<bool>& valid, Embedding* embedding);

double QValue(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action);

// Adds `slope` times the gradient of QValue() to `gradient`.
void AddGradient(const StateGraph& graph, const QWeights& weights, const Embedding& embedding, int32_t current,
                 int32_t action, double slope, QWeights* gradient);

}  // namespace hotpack::remat
