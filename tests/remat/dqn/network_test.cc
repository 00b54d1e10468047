#include "remat/dqn/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/remat/dqn/sequences.h"

namespace hotpack::remat {
namespace {

struct Edges {
  std::vector<std::vector<size_t>> neighbours;  // by node, with itself
  std::vector<Nanoseconds> begins;
};

// N(v) and w(u, v) as the paper says them (section 4.2), one by one.
Edges EdgesOf(const Sequence& sequence) {
  Edges edges;
  const size_t nodes = sequence.operations.size();
  const auto memory = [&](size_t v) {
    return sequence.variables[static_cast<size_t>(sequence.operations[v].variable)].memory;
  };
  edges.neighbours.resize(nodes);
  Nanoseconds time = 0;
  for (size_t v = 0; v < nodes; ++v) {
    edges.begins.push_back(time);
    time += sequence.operations[v].duration;
    for (size_t u = 0; u < nodes; ++u) {
      if (u == v || u + 1 == v || v + 1 == u || memory(u) == memory(v)) edges.neighbours[v].push_back(u);
    }
  }
  edges.begins.push_back(time);
  return edges;
}

std::vector<bool> SomeValid(std::mt19937_64& random, size_t nodes) {
  std::vector<bool> valid(nodes);
  for (size_t v = 0; v < nodes; ++v) valid[v] = random() % 3 == 0;
  return valid;
}

TEST(NetworkTest, SumsAndLagsAreThoseOfTheEdges) {
  std::mt19937_64 random(1);
  const Sequence sequence = RandomChain(random, 5);
  const Edges edges = EdgesOf(sequence);
  const StateGraph graph(sequence);
  const NodeStates states = NodeStates::Random(kWidth, graph.nodes());
  NodeStates sums;
  graph.SumNeighbours(states, &sums);
  for (size_t v = 0; v < edges.neighbours.size(); ++v) {
    QWeights::Column sum = QWeights::Column::Zero();
    double lags = 0;
    for (size_t u : edges.neighbours[v]) {
      sum += states.col(static_cast<Eigen::Index>(u));
      lags +=
          static_cast<double>(std::abs(edges.begins[u] - edges.begins[v])) / static_cast<double>(edges.begins.back());
    }
    EXPECT_NEAR((sum - sums.col(static_cast<Eigen::Index>(v))).norm(), 0, 1e-12) << v;
    EXPECT_NEAR(lags, graph.lags()(static_cast<Eigen::Index>(v)), 1e-12) << v;
  }
}

// Equations 1 to 3, term by term.
TEST(NetworkTest, EquationsAsTheyAreWritten) {
  std::mt19937_64 random(2);
  const Sequence sequence = RandomChain(random, 4);
  const Edges edges = EdgesOf(sequence);
  const StateGraph graph(sequence);
  const size_t nodes = edges.neighbours.size();
  QWeights weights = DrawWeights(nodes, &random);
  const std::vector<bool> valid = SomeValid(random, nodes);
  NodeFeatures x;
  graph.Features(valid, &x);
  std::vector<QWeights::Column> states(nodes, QWeights::Column::Zero());
  for (int t = 0; t < 4; ++t) {
    std::vector<QWeights::Column> next;
    for (size_t v = 0; v < nodes; ++v) {
      QWeights::Column sum = QWeights::Column::Zero(), lags = QWeights::Column::Zero();
      for (size_t u : edges.neighbours[v]) {
        sum += states[u];
        const double w =
            static_cast<double>(std::abs(edges.begins[u] - edges.begins[v])) / static_cast<double>(edges.begins.back());
        lags += (weights.w4() * w).cwiseMax(0.0);
      }
      next.push_back((weights.w1() * x.col(static_cast<Eigen::Index>(v)) + weights.w2() * sum + weights.w3() * lags)
                         .cwiseMax(0.0));
    }
    states = next;
  }
  QWeights::Column total = QWeights::Column::Zero();
  for (const QWeights::Column& state : states) total += state;
  Embedding embedding;
  Embed(graph, weights, valid, &embedding);
  for (size_t action : {size_t{0}, size_t{3}, nodes - 1}) {
    Eigen::VectorXd joined(3 * kWidth);
    joined << weights.w5() * total, weights.w6() * states[2], weights.w8() * states[action];
    const double expected = (weights.w7() * joined.cwiseMax(0.0))(0, 0);
    EXPECT_NEAR(QValue(weights, embedding, 2, static_cast<int32_t>(action)), expected, 1e-12);
  }
}

// Central differences in each of the weights.
TEST(NetworkTest, GradientsNumerically) {
  std::mt19937_64 random(3);
  int checked = 0, not_zero = 0;
  for (int i = 0; i < 5; ++i) {
    const Sequence sequence = RandomChain(random, 3 + i);
    const StateGraph graph(sequence);
    const auto nodes = static_cast<size_t>(graph.nodes());
    QWeights weights = DrawWeights(nodes, &random);
    const std::vector<bool> valid = SomeValid(random, nodes);
    const auto current = static_cast<int32_t>(random() % nodes), action = static_cast<int32_t>(random() % nodes);
    Embedding embedding;
    Embed(graph, weights, valid, &embedding);
    QWeights gradient;
    AddGradient(graph, weights, embedding, current, action, 1, &gradient);
    constexpr double kStep = 1e-6;
    for (Eigen::Index w = 0; w < weights.all().size(); ++w) {
      const double was = weights.all()(w);
      weights.all()(w) = was + kStep;
      Embed(graph, weights, valid, &embedding);
      const double above = QValue(weights, embedding, current, action);
      weights.all()(w) = was - kStep;
      Embed(graph, weights, valid, &embedding);
      const double below = QValue(weights, embedding, current, action);
      weights.all()(w) = was;
      const double slope = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient.all()(w), slope, 1e-6 * std::max(1.0, std::abs(slope))) << "weight " << w;
      ++checked;
      not_zero += slope != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(checked, 5 * QWeights().all().size());
  EXPECT_GT(not_zero, checked / 4);
}

// Six features; only whether the node's action is valid changes from state to state.
TEST(NetworkTest, SixFeatures) {
  const Sequence sequence = WorkedExample();
  const StateGraph graph(sequence);
  std::vector<bool> valid(10);
  valid[3] = true;
  NodeFeatures features;
  graph.Features(valid, &features);
  EXPECT_EQ(features(0, 3), 1);  // the largest
  EXPECT_EQ(features(0, 0), 0.1);
  EXPECT_EQ(features(1, 3), 1);  // transfers
  EXPECT_EQ(features(1, 4), 2.0 / 3);
  EXPECT_EQ(features(2, 3), 1);  // recomputed
  EXPECT_EQ(features(2, 4), 0);  // cannot be
  EXPECT_EQ(features(3, 3), 1);  // used again after 5 s, more than any other
  EXPECT_EQ(features(3, 4), 0.2);
  EXPECT_EQ(features(3, 9), 0);
  EXPECT_EQ(features(4, 3), 1);   // offloads
  EXPECT_EQ(features(4, 1), -1);  // removes
  EXPECT_EQ(features(4, 0), 0);
  EXPECT_EQ(features(5, 3), 1);
  EXPECT_EQ(features(5, 1), 0);
}

}  // namespace
}  // namespace hotpack::remat
