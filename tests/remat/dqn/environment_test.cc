#include "remat/dqn/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/remat/dqn/sequences.h"

namespace hotpack::remat {
namespace {

using enum OperationKind;

constexpr AgentAction kOffloadX = {Deed::kOffload, 0}, kRemoveX = {Deed::kRemove, 0};

Environment AtNode(const Sequence& sequence, Bytes limit, int node) {
  Environment environment(sequence, limit);
  while (environment.node() < node) environment.Step({});
  return environment;
}

// Section 4.6: "If we choose an action which is doing nothing or removing, the agent will be in the 4th node. If the
// action is offloading, the agent will be in the 5th node."
TEST(EnvironmentTest, NothingAndRemovingGoToTheNextNodeOffloadingRoundsUp) {
  const Sequence sequence = WorkedExample();
  const Environment start = AtNode(sequence, 100, 3);
  Environment nothing = start, remove = start, offload = start;
  nothing.Step({});
  remove.Step(kRemoveX);
  offload.Step(kOffloadX);
  EXPECT_EQ(nothing.node(), 4);
  EXPECT_EQ(remove.node(), 4);
  EXPECT_EQ(offload.node(), 5);
  EXPECT_EQ(offload.time(), 5 * kSecond);
  EXPECT_EQ(offload.paused(), 0);
  EXPECT_EQ(remove.usage(), 1);
  EXPECT_EQ(offload.usage(), 11);  // y
}

// "... and the current memory usage is equal to the memory limit, the agent will be in the 4th node ... overhead ...
// 0.5 seconds".
TEST(EnvironmentTest, AtTheLimitTheNextNodeWaitsForTheOffload) {
  const Sequence sequence = WorkedExample();
  Environment environment = AtNode(sequence, 11, 3);
  EXPECT_EQ(environment.usage(), 11);
  environment.Step(kOffloadX);
  EXPECT_EQ(environment.node(), 4);
  EXPECT_EQ(environment.paused(), kSecond / 2);
  EXPECT_EQ(environment.time(), 4 * kSecond + kSecond / 2);
  EXPECT_EQ(environment.usage(), 1);
}

TEST(EnvironmentTest, WithoutMemoryTheAgentStaysWhereItIsUntilSomethingGoes) {
  const Sequence sequence = WorkedExample();
  Environment environment = AtNode(sequence, 11, 3);
  environment.Step({});
  EXPECT_EQ(environment.node(), 4);
  EXPECT_EQ(environment.Choices(), (std::vector<AgentAction>{kOffloadX, kRemoveX}));  // doing nothing is none
  Environment offload = environment;
  offload.Step(kOffloadX);
  EXPECT_EQ(offload.node(), 4);  // the agent acts again, with memory
  EXPECT_EQ(offload.paused(), kSecond * 3 / 2);
  environment.Step(kRemoveX);
  EXPECT_EQ(environment.node(), 5);
  EXPECT_EQ(environment.paused(), 0);
}

TEST(EnvironmentTest, WhatIsOffloadedCannotBeRemovedAndTheReverse) {
  const Sequence sequence = WorkedExample();
  for (const AgentAction action : {kOffloadX, kRemoveX}) {
    Environment environment = AtNode(sequence, 11, 3);
    EXPECT_EQ(environment.Choices(), (std::vector<AgentAction>{{}, kOffloadX, kRemoveX}));
    environment.Step(action);
    for (const AgentAction& other : environment.Choices()) EXPECT_EQ(other.deed, Deed::kNothing);
  }
}

// Section 4.7: removing costs the time to make x again; offloading the pauses before and behind: 0.5 s, and 1.5 s for
// the transfer back, which cannot begin before y has gone.
TEST(EnvironmentTest, RewardsAreWhatIsMadeAgainAndWhatIsWaitedFor) {
  const Sequence sequence = WorkedExample();
  Environment remove = AtNode(sequence, 11, 3), offload = remove, nothing = remove;
  EXPECT_FALSE(remove.Won());
  EXPECT_EQ(remove.Step(kRemoveX), -2 * kSecond);
  EXPECT_TRUE(remove.Won());
  EXPECT_EQ(offload.Step(kOffloadX), -2 * kSecond);
  EXPECT_TRUE(offload.Won());
  EXPECT_EQ(nothing.Step({}), 0);
  EXPECT_FALSE(nothing.Terminal());
  while (offload.node() < 10) offload.Step({});
  EXPECT_EQ(offload.paused(), 2 * kSecond);  // as foreseen
  EXPECT_EQ(offload.overhead(), 2 * kSecond);
}

TEST(EnvironmentTest, TheTransferBackBeginsAsSoonAsNothingIsAboveTheLimit) {
  Sequence sequence = WorkedExample();
  sequence.operations.insert(sequence.operations.begin() + 8, {{kRead, 0, kSecond}, {kRead, 0, kSecond}});
  sequence.absences[0].before = 10;
  Environment environment = AtNode(sequence, 11, 3);
  environment.Step(kOffloadX);
  EXPECT_EQ(environment.overhead(), kSecond / 2);  // 1.5 s in parallel to the two nodes after y has gone
  Environment roomy = AtNode(sequence, 20, 3);     // x and y together are still too much
  roomy.Step(kOffloadX);
  EXPECT_EQ(roomy.overhead(), kSecond / 2);
}

// Two variables on the host: the one used again first comes back first, and the other one after it, over one engine.
TEST(EnvironmentTest, TransfersBackComeInTheOrderOfTheirUse) {
  for (const int idle : {2, 3, 4, 5}) {
    Sequence sequence;
    sequence.memories = {{1, 0, 0}, {10, kSecond, 2 * kSecond}, {10, kSecond, 2 * kSecond}, {20, 0, 0}};
    sequence.variables = {{0, -1}, {1, -1}, {2, -1}, {3, -1}};
    sequence.given = {0, 1, 2};
    const auto add = [&](OperationKind kind, int32_t variable) {
      sequence.operations.push_back({kind, variable, kSecond});
    };
    add(kRead, 0);
    add(kRead, 1);
    add(kRead, 2);
    add(kMalloc, 3);
    add(kFree, 3);
    for (int i = 0; i < idle; ++i) add(kRead, 0);
    add(kRead, 2);
    add(kRead, 1);
    const int32_t uses = 5 + idle;
    sequence.absences = {{.variable = 1, .access = 1, .open = 1, .after = 1, .before = uses + 1},
                         {.variable = 2, .access = 2, .open = 2, .after = 2, .before = uses}};
    AssignActions(&sequence);
    Environment environment = AtNode(sequence, 21, 1);
    environment.Step({Deed::kOffload, 0});
    ASSERT_EQ(environment.node(), 2);
    environment.Step({Deed::kOffload, 1});
    EXPECT_TRUE(environment.Won());
    // 4 s of transfers in parallel to the idle nodes and the first use.
    EXPECT_EQ(environment.overhead(), std::max(0, 3 - idle) * kSecond) << idle;
  }
}

TEST(EnvironmentTest, LostWhereNothingCanGo) {
  Sequence sequence = WorkedExample();
  sequence.absences.clear();
  Environment environment = AtNode(sequence, 11, 3);
  EXPECT_EQ(environment.Step({}), -10 * kSecond);  // the step's time
  EXPECT_TRUE(environment.Lost());
  EXPECT_TRUE(environment.Terminal());
}

// The prediction after the last action is correct, and rewards add up to it.
TEST(EnvironmentTest, RewardsAddUpToWhatHappens) {
  std::mt19937_64 random(7);
  int won = 0, actions = 0;
  for (int i = 0; i < 300; ++i) {
    const Sequence sequence = RandomChain(random, 3 + i % 8);
    const Bytes peak = Environment(sequence, INT64_MAX).peak();
    Environment limited(sequence, peak * (60 + i % 40) / 100);
    Nanoseconds rewards = 0;
    while (!limited.Terminal()) {
      const std::vector<AgentAction> choices = limited.Choices();
      const AgentAction action = choices[random() % choices.size()];
      actions += action.deed == Deed::kNothing ? 0 : 1;
      rewards += limited.Step(action);
    }
    if (!limited.Won()) continue;
    ++won;
    const Nanoseconds foreseen = limited.overhead();
    EXPECT_EQ(rewards, -foreseen);
    while (limited.node() < static_cast<int32_t>(sequence.operations.size())) limited.Step({});
    EXPECT_EQ(limited.time(), limited.duration() + foreseen) << i;
    EXPECT_EQ(limited.overhead(), foreseen) << i;
  }
  EXPECT_GT(won, 150);
  EXPECT_GT(actions, 300);
}

// Skipping nodes without new choices changes when the agent acts, but not the results.
TEST(EnvironmentTest, NodesAreSkippedWithoutAnythingToChoose) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    const Sequence sequence = RandomChain(random, 6);
    Environment all(sequence, 200), some(sequence, 200, true);
    int asked_all = 0, asked_some = 0;
    while (!all.Terminal() && all.Choices().front().deed == Deed::kNothing) all.Step({}), ++asked_all;
    while (!some.Terminal() && some.Choices().front().deed == Deed::kNothing) some.Step({}), ++asked_some;
    EXPECT_EQ(all.node(), some.node());
    EXPECT_EQ(all.time(), some.time());
    EXPECT_LE(asked_some, asked_all);
  }
}

}  // namespace
}  // namespace hotpack::remat
