// The deep Q-network (sections 4.4 and 4.9): from the nodes of a sequence to the value of an action, equations 1 to 3.
//
//   s_v ← ReLU(W1 x_v + W2 Σ_{u ∈ N(v)} s_u + W3 Σ_{u ∈ N(v)} ReLU(W4 w(u, v)))   T rounds, from 0     (1)
//   g = [W5 Σ_u s_u, W6 s_c]                                                     c: under execution   (2)
//   Q(g, s_a) = W7 ReLU([g, W8 s_a])                                             a: the action's node (3)
//
// N(v): v itself, the nodes before and behind it, and all of the same memory. Their sum is taken by memory, so that a round costs
// O(nodes), whatever the number of edges.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <Eigen/Dense>

#include "planner/dqn/operations.h"

namespace hotpack::planner {

inline constexpr int kNodeFeatures = 6;

struct QWeights {
  Eigen::MatrixXd w1, w2, w3, w4, w5, w6, w7, w8;
  std::array<Eigen::MatrixXd*, 8> all() { return {&w1, &w2, &w3, &w4, &w5, &w6, &w7, &w8}; }
  std::array<const Eigen::MatrixXd*, 8> all() const { return {&w1, &w2, &w3, &w4, &w5, &w6, &w7, &w8}; }
};

// p = `width`; drawn evenly from ±1/√columns, those that stand before a sum over neighbours or nodes smaller, so that four rounds of
// sums begin of the order of one.
QWeights DrawWeights(int width, size_t nodes, std::mt19937_64* random);
QWeights ZeroWeights(int width);

// Nodes, edges and features of a sequence. Sizes are in units of the largest memory, times in units of what an operation takes on
// average, lags (edge weights, the time from the beginning of one node to that of the other; features) in units of the whole step.
class StateGraph {
 public:
  explicit StateGraph(const Sequence& sequence);

  Eigen::Index nodes() const { return features_.cols(); }
  // x_v, but for the last one of the six, whether the node's action is valid now.
  Eigen::MatrixXd Features(const std::vector<bool>& valid) const;
  // By column: the sum of the columns N(v).
  Eigen::MatrixXd SumNeighbours(const Eigen::MatrixXd& states) const;
  // By node: Σ_{u ∈ N(v)} w(u, v).
  const Eigen::RowVectorXd& lags() const { return lags_; }

 private:
  Eigen::MatrixXd features_;
  std::vector<int32_t> memory_of_;  // by node
  size_t memories_ = 0;
  Eigen::RowVectorXd lags_;
};

inline constexpr int kRounds = 4;  // T

// The states of all nodes, with what the gradient needs.
struct Embedding {
  Eigen::MatrixXd features;
  std::array<Eigen::MatrixXd, kRounds + 1> states;  // s^0 to s^T
  std::array<Eigen::MatrixXd, kRounds> sums;        // over neighbours of s^0 to s^(T-1)
  Eigen::VectorXd total;                            // Σ_u s_u^T
};

Embedding Embed(const StateGraph& graph, const QWeights& weights, const std::vector<bool>& valid);

double QValue(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action);

// Adds `slope` times the gradient of QValue() to `gradient`.
void AddGradient(const StateGraph& graph, const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action,
                 double slope, QWeights* gradient);

}  // namespace hotpack::planner
