#include "remat/dqn/learning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/remat/dqn/sequences.h"

namespace hotpack::remat {
namespace {

Experience SomeExperience(std::mt19937_64& random, size_t nodes, bool terminal) {
  Experience experience;
  experience.valid.resize(nodes);
  experience.next_valid.resize(nodes);
  for (size_t v = 0; v < nodes; ++v)
    experience.valid[v] = random() % 2 == 0, experience.next_valid[v] = random() % 2 == 0;
  experience.next_valid[1] = true;
  experience.current = static_cast<int32_t>(random() % nodes);
  experience.next_current = static_cast<int32_t>(random() % nodes);
  experience.action = static_cast<int32_t>(random() % nodes);
  experience.reward = -0.25;
  experience.terminal = terminal;
  return experience;
}

// Equation 5: the terminal state's Q is zero; otherwise the largest Q of the next valid actions, decayed.
TEST(LearningTest, Targets) {
  std::mt19937_64 random(1);
  const StateGraph graph(RandomChain(random, 4));
  const auto nodes = static_cast<size_t>(graph.nodes());
  const QWeights weights = DrawWeights(nodes, &random);
  Embedding scratch;
  const Experience last = SomeExperience(random, nodes, true), inner = SomeExperience(random, nodes, false);
  EXPECT_EQ(Target(graph, weights, last, 0.9, &scratch), -0.25);
  Embed(graph, weights, inner.next_valid, &scratch);
  double most = -INFINITY;
  for (size_t v = 0; v < nodes; ++v) {
    if (inner.next_valid[v])
      most = std::max(most, QValue(weights, scratch, inner.next_current, static_cast<int32_t>(v)));
  }
  EXPECT_EQ(Target(graph, weights, inner, 0.9, &scratch), -0.25 + 0.9 * most);
}

// Equation 4: the step is down the gradient of (y - Q)², y fixed; that of a batch is the mean of its experiences'.
TEST(LearningTest, UpdatesGoDownTheMeanLoss) {
  std::mt19937_64 random(2);
  const StateGraph graph(RandomChain(random, 4));
  const auto nodes = static_cast<size_t>(graph.nodes());
  const QWeights start = DrawWeights(nodes, &random);
  const Experience a = SomeExperience(random, nodes, true), b = SomeExperience(random, nodes, true);
  Embedding scratch;
  QWeights flat = start;  // so that no gradient is so long that it is shortened
  flat.all() *= 0.5;
  const auto move = [&](const std::vector<const Experience*>& batch) {
    QWeights weights = flat;
    Update(graph, batch, 1e-4, 0.9, &weights, &scratch);
    return Eigen::VectorXd(weights.all() - flat.all());
  };
  EXPECT_NEAR((move({&a, &b}) - 0.5 * (move({&a}) + move({&b}))).norm(), 0, 1e-15);
  EXPECT_GT(move({&a}).norm(), 0);
  QWeights weights = start;
  double before = INFINITY;
  for (int i = 0; i < 50; ++i) {
    const double loss = Update(graph, {&a, &b}, 0.01, 0.9, &weights, &scratch);
    EXPECT_LE(loss, before + 1e-12);
    before = loss;
  }
  EXPECT_LT(before, 0.5 * Update(graph, {&a, &b}, 0, 0.9, const_cast<QWeights*>(&start), &scratch));
}

TEST(LearningTest, TheSameAgainByItsSeed) {
  std::mt19937_64 random(4);
  const Sequence sequence = RandomChain(random, 8);
  const Bytes limit = Environment(sequence, INT64_MAX).peak() * 6 / 10;
  const auto learn = [&](uint64_t seed) {
    Environment environment(sequence, limit);
    return Learn(&environment, {.episodes = 20, .seed = seed});
  };
  const Learning one = learn(1), same = learn(1), other = learn(2);
  EXPECT_EQ(one.overheads, same.overheads);
  EXPECT_EQ(one.weights.all(), same.weights.all());
  EXPECT_NE(one.weights.all(), other.weights.all());
}

// The best episode is the cheapest of those won. An episode that the judge rejects is none.
TEST(LearningTest, TheBestEpisodeIsKept) {
  std::mt19937_64 random(6);
  const Sequence sequence = RandomChain(random, 8);
  Environment environment(sequence, Environment(sequence, INT64_MAX).peak() * 6 / 10);
  const Learning learning = Learn(&environment, {.episodes = 30});
  ASSERT_TRUE(learning.best);
  EXPECT_EQ(learning.best_cost, *std::min_element(learning.overheads.begin(), learning.overheads.end()));
  EXPECT_EQ(learning.best->overhead, learning.best_cost);
  int asked = 0;
  const Judge none = [&](const Episode&) { return ++asked, std::nullopt; };
  EXPECT_FALSE(Learn(&environment, {.episodes = 30}, nullptr, none).best);
  EXPECT_EQ(asked, std::count_if(learning.overheads.begin(), learning.overheads.end(),
                                 [](Nanoseconds each) { return each < INT64_MAX; }));
}

// ε = episode / l: from chance alone to the learnt policy alone. In the last episode nothing is random. With a rate of
// zero, the same weights choose the same actions, whatever was drawn before.
TEST(LearningTest, TheLastEpisodeIsGreedy) {
  std::mt19937_64 random(9);
  const Sequence sequence = RandomChain(random, 10);
  const Bytes limit = Environment(sequence, INT64_MAX).peak() * 6 / 10;
  const QWeights start = DrawWeights(sequence.operations.size(), &random);
  std::vector<Nanoseconds> first, last;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Environment environment(sequence, limit);
    const Learning learning = Learn(&environment, {.episodes = 20, .rate = 0, .seed = seed}, &start);
    first.push_back(learning.overheads.front());
    last.push_back(learning.overheads.back());
  }
  EXPECT_EQ(std::count(last.begin(), last.end(), last.front()), 8);
  EXPECT_LT(std::count(first.begin(), first.end(), first.front()), 8);
}

// With a replay of one experience only the last one is learnt from: another way than with all of them.
TEST(LearningTest, TheReplayKeepsTheLatest) {
  std::mt19937_64 random(10);
  const Sequence sequence = RandomChain(random, 8);
  const Bytes limit = Environment(sequence, INT64_MAX).peak() * 6 / 10;
  const auto learn = [&](size_t replay, int batch) {
    Environment environment(sequence, limit);
    return Learn(&environment, {.episodes = 3, .batch = batch, .replay = replay}).weights.all();
  };
  EXPECT_NE(learn(1, 1), learn(100, 1));
}

}  // namespace
}  // namespace hotpack::remat
