#include "planner/dqn/network.h"

#include <algorithm>
#include <cmath>

namespace hotpack::planner {
namespace {

Eigen::MatrixXd Positive(const Eigen::MatrixXd& matrix) { return matrix.cwiseMax(0.0); }
// 1 where the result of a ReLU is above 0.
Eigen::MatrixXd Passes(const Eigen::MatrixXd& result) { return (result.array() > 0).cast<double>(); }

Eigen::VectorXd Hidden(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action) {
  const Eigen::Index width = weights.w5.rows();
  Eigen::VectorXd joined(3 * width);
  joined << weights.w5 * embedding.total, weights.w6 * embedding.states[kRounds].col(current), weights.w8 * embedding.states[kRounds].col(action);
  return joined.cwiseMax(0.0);
}

// When the variable of each node is used next, from the node's beginning; 0 after its last use.
std::vector<Nanoseconds> TimesToNext(const Sequence& sequence, const std::vector<Nanoseconds>& begins) {
  std::vector<Nanoseconds> times(begins.size());
  std::vector<int32_t> next(sequence.memories.size(), -1);
  for (size_t i = begins.size(); i-- > 0;) {
    const auto memory = static_cast<size_t>(sequence.variables[static_cast<size_t>(sequence.operations[i].variable)].memory);
    if (next[memory] >= 0) times[i] = begins[static_cast<size_t>(next[memory])] - begins[i];
    next[memory] = static_cast<int32_t>(i);
  }
  return times;
}

}  // namespace

QWeights ZeroWeights(int width) {
  QWeights weights;
  weights.w1.setZero(width, kNodeFeatures);
  weights.w4.setZero(width, 1);
  weights.w7.setZero(1, 3 * width);
  for (Eigen::MatrixXd* matrix : {&weights.w2, &weights.w3, &weights.w5, &weights.w6, &weights.w8}) matrix->setZero(width, width);
  return weights;
}

QWeights DrawWeights(int width, size_t nodes, std::mt19937_64* random) {
  QWeights weights = ZeroWeights(width);
  for (Eigen::MatrixXd* matrix : weights.all()) {
    const double most = 1 / std::sqrt(static_cast<double>(matrix->cols()));
    for (Eigen::Index i = 0; i < matrix->size(); ++i) {
      matrix->data()[i] = most * (2 * static_cast<double>((*random)() >> 11) / 0x1p53 - 1);
    }
  }
  constexpr double kNeighbours = 6;  // of a node, about: one before, one behind, and those of its memory
  weights.w2 /= kNeighbours;
  weights.w5 /= static_cast<double>(nodes);
  return weights;
}

StateGraph::StateGraph(const Sequence& sequence) : memories_(sequence.memories.size()) {
  const size_t nodes = sequence.operations.size();
  std::vector<Nanoseconds> begins(nodes);
  Nanoseconds time = 0;
  int64_t working = 0;
  for (size_t i = 0; i < nodes; ++i) {
    begins[i] = time;
    time += sequence.operations[i].duration;
    working += sequence.operations[i].duration > 0 ? 1 : 0;
  }
  const double whole = std::max<double>(1, static_cast<double>(time)), typical = whole / static_cast<double>(std::max<int64_t>(1, working));
  double largest = 1;
  for (const Memory& memory : sequence.memories) largest = std::max(largest, static_cast<double>(memory.bytes));
  const std::vector<Nanoseconds> to_next = TimesToNext(sequence, begins);
  features_.setZero(kNodeFeatures, static_cast<Eigen::Index>(nodes));
  for (size_t i = 0; i < nodes; ++i) {
    const Variable& variable = sequence.variables[static_cast<size_t>(sequence.operations[i].variable)];
    const Memory& memory = sequence.memories[static_cast<size_t>(variable.memory)];
    const Nanoseconds again = variable.maker < 0 ? 0 : sequence.makers[static_cast<size_t>(variable.maker)].cost;
    const auto column = static_cast<Eigen::Index>(i);
    features_(0, column) = static_cast<double>(memory.bytes) / largest;
    features_(1, column) = static_cast<double>(memory.to_host + memory.to_device) / typical;
    features_(2, column) = static_cast<double>(again) / typical;
    features_(3, column) = static_cast<double>(to_next[i]) / whole;
    memory_of_.push_back(variable.memory);
  }
  for (const Absence& absence : sequence.absences) {
    if (absence.offload_node >= 0) features_(4, absence.offload_node) = 1;
    if (absence.remove_node >= 0) features_(4, absence.remove_node) = -1;
  }
  // The sum over a memory's nodes of |begin - begin of v|, by sums from the left and from the right; and the lags to its neighbours.
  lags_.setZero(static_cast<Eigen::Index>(nodes));
  std::vector<std::vector<size_t>> nodes_of(memories_);
  for (size_t i = 0; i < nodes; ++i) nodes_of[static_cast<size_t>(memory_of_[i])].push_back(i);
  for (const std::vector<size_t>& list : nodes_of) {
    double left = 0, right = 0;
    for (size_t i : list) right += static_cast<double>(begins[i]);
    for (size_t k = 0; k < list.size(); ++k) {
      const double begin = static_cast<double>(begins[list[k]]);
      right -= begin;
      lags_(static_cast<Eigen::Index>(list[k])) += begin * static_cast<double>(k) - left + right - begin * static_cast<double>(list.size() - k - 1);
      left += begin;
    }
  }
  for (size_t i = 1; i < nodes; ++i) {
    if (memory_of_[i] == memory_of_[i - 1]) continue;
    const double lag = static_cast<double>(begins[i] - begins[i - 1]);
    lags_(static_cast<Eigen::Index>(i)) += lag;
    lags_(static_cast<Eigen::Index>(i) - 1) += lag;
  }
  lags_ /= whole;
}

Eigen::MatrixXd StateGraph::Features(const std::vector<bool>& valid) const {
  Eigen::MatrixXd features = features_;
  for (size_t i = 0; i < valid.size(); ++i) features(kNodeFeatures - 1, static_cast<Eigen::Index>(i)) = valid[i] ? 1 : 0;
  return features;
}

Eigen::MatrixXd StateGraph::SumNeighbours(const Eigen::MatrixXd& states) const {
  Eigen::MatrixXd by_memory = Eigen::MatrixXd::Zero(states.rows(), static_cast<Eigen::Index>(memories_));
  for (Eigen::Index i = 0; i < states.cols(); ++i) by_memory.col(memory_of_[static_cast<size_t>(i)]) += states.col(i);
  Eigen::MatrixXd sums(states.rows(), states.cols());
  for (Eigen::Index i = 0; i < states.cols(); ++i) {
    const int32_t memory = memory_of_[static_cast<size_t>(i)];
    sums.col(i) = by_memory.col(memory);
    if (i > 0 && memory_of_[static_cast<size_t>(i) - 1] != memory) sums.col(i) += states.col(i - 1);
    if (i + 1 < states.cols() && memory_of_[static_cast<size_t>(i) + 1] != memory) sums.col(i) += states.col(i + 1);
  }
  return sums;
}

Embedding Embed(const StateGraph& graph, const QWeights& weights, const std::vector<bool>& valid) {
  Embedding embedding;
  embedding.features = graph.Features(valid);
  // Lags are not negative, so that ReLU(W4 w) = w ReLU(W4), and the sum over neighbours is that of their lags.
  const Eigen::MatrixXd fixed = weights.w1 * embedding.features + (weights.w3 * Positive(weights.w4)) * graph.lags();
  embedding.states[0].setZero(weights.w2.rows(), graph.nodes());
  for (size_t t = 0; t < kRounds; ++t) {
    embedding.sums[t] = graph.SumNeighbours(embedding.states[t]);
    embedding.states[t + 1] = Positive(fixed + weights.w2 * embedding.sums[t]);
  }
  embedding.total = embedding.states[kRounds].rowwise().sum();
  return embedding;
}

double QValue(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action) {
  return (weights.w7 * Hidden(weights, embedding, current, action))(0, 0);
}

void AddGradient(const StateGraph& graph, const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action,
                 double slope, QWeights* gradient) {
  const Eigen::Index width = weights.w5.rows();
  const Eigen::MatrixXd& last = embedding.states[kRounds];
  const Eigen::VectorXd hidden = Hidden(weights, embedding, current, action);
  gradient->w7 += slope * hidden.transpose();
  const Eigen::VectorXd inner = (slope * weights.w7.transpose()).cwiseProduct(Passes(hidden));
  const Eigen::VectorXd of_total = inner.head(width), of_current = inner.segment(width, width), of_action = inner.tail(width);
  gradient->w5 += of_total * embedding.total.transpose();
  gradient->w6 += of_current * last.col(current).transpose();
  gradient->w8 += of_action * last.col(action).transpose();
  Eigen::MatrixXd of_states = (weights.w5.transpose() * of_total).replicate(1, last.cols());
  of_states.col(current) += weights.w6.transpose() * of_current;
  of_states.col(action) += weights.w8.transpose() * of_action;
  const Eigen::VectorXd lag = Positive(weights.w4);
  for (size_t t = kRounds; t-- > 0;) {
    const Eigen::MatrixXd before = of_states.cwiseProduct(Passes(embedding.states[t + 1]));
    const Eigen::VectorXd by_lag = before * graph.lags().transpose();
    gradient->w1 += before * embedding.features.transpose();
    gradient->w2 += before * embedding.sums[t].transpose();
    gradient->w3 += by_lag * lag.transpose();
    gradient->w4 += (weights.w3.transpose() * by_lag).cwiseProduct(Passes(lag));
    if (t > 0) of_states = graph.SumNeighbours(weights.w2.transpose() * before);
  }
}

}  // namespace hotpack::planner
