// Learning against all sequences of actions, tried one after another.
#include <gtest/gtest.h>

#include <algorithm>

#include "remat/dqn/learning.h"
#include "tests/remat/dqn/sequences.h"

namespace hotpack::remat {
namespace {

// The least overhead of all sequences of actions.
void BruteForce(const Environment& environment, Nanoseconds* best, int64_t* states) {
  ++*states;
  if (environment.Won()) {
    *best = std::min(*best, environment.overhead());
    return;
  }
  for (const AgentAction& action : environment.Choices()) {
    Environment next = environment;
    next.Step(action);
    BruteForce(next, best, states);
  }
}

TEST(LearningTest, AsGoodAsAllSequencesOfActionsOfTinySteps) {
  std::mt19937_64 random(20261122);
  int compared = 0, with_overhead = 0;
  for (int i = 0; i < 30; ++i) {
    const Sequence sequence = RandomChain(random, 3 + i % 2);
    const Bytes limit = Environment(sequence, INT64_MAX).peak() * 8 / 10;
    Environment environment(sequence, limit);
    Nanoseconds best = INT64_MAX;
    int64_t states = 0;
    BruteForce(environment, &best, &states);
    const Learning learning = Learn(&environment, {.episodes = 500, .seed = 5});
    ASSERT_EQ(learning.best.has_value(), best < INT64_MAX) << i;
    if (!learning.best) continue;
    EXPECT_EQ(learning.best_cost, best) << i << ", of " << states << " states";
    ++compared;
    with_overhead += best > 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 12);
  EXPECT_GT(with_overhead, 8);
}

}  // namespace
}  // namespace hotpack::remat
