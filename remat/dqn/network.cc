#include "remat/dqn/network.h"

#include <algorithm>
#include <cmath>

namespace hotpack::remat {
namespace {

using Hidden = Eigen::Matrix<double, 3 * kWidth, 1>;

Hidden HiddenOf(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action) {
  Hidden joined;
  joined << weights.w5() * embedding.total, weights.w6() * embedding.states[kRounds].col(current),
      weights.w8() * embedding.states[kRounds].col(action);
  return joined.cwiseMax(0.0);
}

// Returns the time from each node's beginning to the next use of its variable; 0 after its last use.
std::vector<Nanoseconds> TimesToNext(const Sequence& sequence, const std::vector<Nanoseconds>& begins) {
  std::vector<Nanoseconds> times(begins.size());
  std::vector<int32_t> next(sequence.memories.size(), -1);
  for (size_t i = begins.size(); i-- > 0;) {
    const auto memory =
        static_cast<size_t>(sequence.variables[static_cast<size_t>(sequence.operations[i].variable)].memory);
    if (next[memory] >= 0) times[i] = begins[static_cast<size_t>(next[memory])] - begins[i];
    next[memory] = static_cast<int32_t>(i);
  }
  return times;
}

}  // namespace

QWeights DrawWeights(size_t nodes, std::mt19937_64* random) {
  QWeights weights;
  const auto draw = [random](auto matrix) {
    const double most = 1 / std::sqrt(static_cast<double>(matrix.cols()));
    for (Eigen::Index i = 0; i < matrix.size(); ++i)
      matrix.data()[i] = most * (2 * static_cast<double>((*random)() >> 11) / 0x1p53 - 1);
  };
  draw(weights.w1()), draw(weights.w2()), draw(weights.w3()), draw(weights.w4());
  draw(weights.w5()), draw(weights.w6()), draw(weights.w7()), draw(weights.w8());
  // Approximate neighbours of a node: one before, one behind, and those of its memory.
  constexpr double kNeighbours = 6;
  weights.w2() /= kNeighbours;
  weights.w5() /= static_cast<double>(nodes);
  return weights;
}

StateGraph::StateGraph(const Sequence& sequence) : memories_(sequence.memories.size()) {
  const size_t nodes = sequence.operations.size();
  std::vector<Nanoseconds> begins(nodes);
  Nanoseconds time = 0;
  for (size_t i = 0; i < nodes; ++i) {
    begins[i] = time;
    time += sequence.operations[i].duration;
  }
  const double whole = std::max<double>(1, static_cast<double>(time));
  const std::vector<Nanoseconds> to_next = TimesToNext(sequence, begins);
  features_.setZero(kNodeFeatures, static_cast<Eigen::Index>(nodes));
  for (size_t i = 0; i < nodes; ++i) {
    const Variable& variable = sequence.variables[static_cast<size_t>(sequence.operations[i].variable)];
    const Memory& memory = sequence.memories[static_cast<size_t>(variable.memory)];
    const Nanoseconds again = variable.maker < 0 ? 0 : sequence.makers[static_cast<size_t>(variable.maker)].cost;
    const auto column = static_cast<Eigen::Index>(i);
    features_(0, column) = static_cast<double>(memory.bytes);
    features_(1, column) = static_cast<double>(memory.to_host + memory.to_device);
    features_(2, column) = static_cast<double>(again);
    features_(3, column) = static_cast<double>(to_next[i]);
    memory_of_.push_back(variable.memory);
  }
  for (Eigen::Index row = 0; row < 4; ++row) features_.row(row) /= std::max(1.0, features_.row(row).maxCoeff());
  for (const Absence& absence : sequence.absences) {
    if (absence.offload_node >= 0) features_(4, absence.offload_node) = 1;
    if (absence.remove_node >= 0) features_(4, absence.remove_node) = -1;
  }
  // Computes the sum over a memory's nodes of |begin - begin of v| by sums from the left and from the right. Adds the
  // lags to the neighbours in time.
  lags_.setZero(static_cast<Eigen::Index>(nodes));
  std::vector<std::vector<size_t>> nodes_of(memories_);
  for (size_t i = 0; i < nodes; ++i) nodes_of[static_cast<size_t>(memory_of_[i])].push_back(i);
  for (const std::vector<size_t>& list : nodes_of) {
    double left = 0, right = 0;
    for (size_t i : list) right += static_cast<double>(begins[i]);
    for (size_t k = 0; k < list.size(); ++k) {
      const double begin = static_cast<double>(begins[list[k]]);
      right -= begin;
      lags_(static_cast<Eigen::Index>(list[k])) +=
          begin * static_cast<double>(k) - left + right - begin * static_cast<double>(list.size() - k - 1);
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

void StateGraph::Features(const std::vector<bool>& valid, NodeFeatures* features) const {
  *features = features_;
  for (size_t i = 0; i < valid.size(); ++i)
    (*features)(kNodeFeatures - 1, static_cast<Eigen::Index>(i)) = valid[i] ? 1 : 0;
}

void StateGraph::SumNeighbours(const NodeStates& states, NodeStates* sums) const {
  NodeStates by_memory = NodeStates::Zero(kWidth, static_cast<Eigen::Index>(memories_));
  for (Eigen::Index i = 0; i < states.cols(); ++i) by_memory.col(memory_of_[static_cast<size_t>(i)]) += states.col(i);
  sums->resize(kWidth, states.cols());
  for (Eigen::Index i = 0; i < states.cols(); ++i) {
    const int32_t memory = memory_of_[static_cast<size_t>(i)];
    sums->col(i) = by_memory.col(memory);
    if (i > 0 && memory_of_[static_cast<size_t>(i) - 1] != memory) sums->col(i) += states.col(i - 1);
    if (i + 1 < states.cols() && memory_of_[static_cast<size_t>(i) + 1] != memory) sums->col(i) += states.col(i + 1);
  }
}

void Embed(const StateGraph& graph, const QWeights& weights, const std::vector<bool>& valid, Embedding* embedding) {
  graph.Features(valid, &embedding->features);
  const QWeights::OfFeatures w1 = weights.w1();
  const QWeights::Square w2 = weights.w2();
  // Lags are not negative, so ReLU(W4 w) = w ReLU(W4), and the sum over neighbours is that of their lags.
  const QWeights::Column by_lag = weights.w3() * weights.w4().cwiseMax(0.0);
  NodeStates& fixed = embedding->fixed;
  fixed.resize(kWidth, graph.nodes());
  for (Eigen::Index v = 0; v < graph.nodes(); ++v)
    fixed.col(v) = w1.lazyProduct(embedding->features.col(v)) + by_lag * graph.lags()(v);
  embedding->states[0].setZero(kWidth, graph.nodes());
  for (size_t t = 0; t < kRounds; ++t) {
    graph.SumNeighbours(embedding->states[t], &embedding->sums[t]);
    NodeStates& next = embedding->states[t + 1];
    next.resize(kWidth, graph.nodes());
    for (Eigen::Index v = 0; v < graph.nodes(); ++v)
      next.col(v) = (fixed.col(v) + w2.lazyProduct(embedding->sums[t].col(v))).cwiseMax(0.0);
  }
  embedding->total = embedding->states[kRounds].rowwise().sum();
}

double QValue(const QWeights& weights, const Embedding& embedding, int32_t current, int32_t action) {
  return weights.w7().dot(HiddenOf(weights, embedding, current, action));
}

void AddGradient(const StateGraph& graph, const QWeights& weights, const Embedding& embedding, int32_t current,
                 int32_t action, double slope, QWeights* gradient) {
  const NodeStates& last = embedding.states[kRounds];
  const Hidden hidden = HiddenOf(weights, embedding, current, action);
  gradient->w7() += slope * hidden.transpose();
  const Hidden inner = (slope * weights.w7().transpose().array() * (hidden.array() > 0).cast<double>()).matrix();
  const QWeights::Column of_total = inner.head<kWidth>(), of_current = inner.segment<kWidth>(kWidth),
                         of_action = inner.tail<kWidth>();
  gradient->w5() += of_total * embedding.total.transpose();
  gradient->w6() += of_current * last.col(current).transpose();
  gradient->w8() += of_action * last.col(action).transpose();
  const QWeights::Column everywhere = weights.w5().transpose() * of_total;
  NodeStates of_states = everywhere.replicate(1, last.cols()), of_sums;
  of_states.col(current) += weights.w6().transpose() * of_current;
  of_states.col(action) += weights.w8().transpose() * of_action;
  const QWeights::Column lag = weights.w4().cwiseMax(0.0);
  const QWeights::Square back = weights.w2().transpose();
  QWeights::OfFeatures of_w1 = QWeights::OfFeatures::Zero();
  QWeights::Square of_w2 = QWeights::Square::Zero();
  QWeights::Column by_lag = QWeights::Column::Zero();
  for (size_t t = kRounds; t-- > 0;) {
    for (Eigen::Index v = 0; v < last.cols(); ++v) {
      const QWeights::Column before =
          (of_states.col(v).array() * (embedding.states[t + 1].col(v).array() > 0).cast<double>()).matrix();
      of_w1 += before.lazyProduct(embedding.features.col(v).transpose());
      of_w2 += before.lazyProduct(embedding.sums[t].col(v).transpose());
      by_lag += before * graph.lags()(v);
      of_states.col(v) = back.lazyProduct(before);
    }
    graph.SumNeighbours(of_states, &of_sums);
    of_states.swap(of_sums);
  }
  gradient->w1() += of_w1;
  gradient->w2() += of_w2;
  gradient->w3() += by_lag * lag.transpose();
  gradient->w4() += ((weights.w3().transpose() * by_lag).array() * (lag.array() > 0).cast<double>()).matrix();
}

}  // namespace hotpack::remat
