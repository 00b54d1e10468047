#include "remat/core/verifier.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

std::string FaultOf(const Graph& graph, std::vector<Action> actions, std::vector<OperatorId> saved = {}) {
  return Verify(graph, {std::move(actions), std::move(saved)});
}

TEST(VerifierTest, TheProgramItself) {
  for (int layers : {1, 2, 7}) EXPECT_EQ(Verify(Chain(layers), Baseline(Chain(layers))), "");
}

TEST(VerifierTest, ComputedAgainOrCopiedBack) {
  const Graph graph = Chain(2);
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0), Op(3), Op(4)}), "");
  EXPECT_EQ(FaultOf(graph, {Op(0), Offload(1), Op(1), Drop(1), Op(2), Prefetch(1), Op(3), Op(4)}), "");
}

TEST(VerifierTest, ContentsThatAreGone) {
  const Graph graph = Chain(2);
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(3)}),
            "action 4: operator 3 (b2) finds nothing in storage x1 ");
  EXPECT_EQ(FaultOf(graph, {Drop(1)}), "action 0: storage x1 is dropped and has no memory");
  EXPECT_EQ(FaultOf(graph, {Prefetch(0)}), "action 0: storage x0 is copied back and is not on the host");
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3), Op(4), Drop(5)}), "storage g0 is not on the device at the end");
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3)}), "operator 4 (b1) never runs");
}

// f1 changes x0 in place: it cannot run twice unless x0 was copied before.
TEST(VerifierTest, WhatTheProgramHolds) {
  Graph graph = Chain(2);
  graph.storages[1].held = true;
  graph.released_after.assign(graph.storages.size(), kNever);
  graph.released_after[1] = 3;  // b2, which uses it last
  const std::string held = "storage x1 is dropped while the program holds it";
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0), Op(3), Op(4)}), "action 2: " + held);
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3), Drop(1), Op(4)}), "");
  graph.released_after[1] = 1;  // then b2 finds it again
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0), Op(3), Op(4)}), "");
  EXPECT_EQ(FaultOf(graph, {Op(0), Drop(1), Op(0), Op(1)}), "action 1: " + held);
}

TEST(VerifierTest, WhatIsHeldMayMoveWithACopy) {
  Graph graph = Chain(1);  // f1 loss b1
  graph.storages[1].held = graph.storages[1].kept = graph.storages[1].movable = true;
  graph.released_after.assign(graph.storages.size(), kNever);
  const auto after = [&graph](std::vector<Action> actions) {
    std::vector<Action> all = {Op(0), Op(1)};
    all.insert(all.end(), actions.begin(), actions.end());
    all.push_back(Op(2));
    return FaultOf(graph, all);
  };
  EXPECT_EQ(after({Offload(1), Drop(1), Prefetch(1)}), "");
  EXPECT_EQ(after({Drop(1), Op(0)}), "action 2: storage x1 is dropped while the program holds it");
  EXPECT_EQ(after({Offload(1), Drop(1), {ActionKind::kForget, 1}, Op(0)}),
            "action 4: storage x1 is forgotten while the program holds it");
  EXPECT_EQ(after({Offload(1), {ActionKind::kForget, 1}, Drop(1)}),
            "action 4: storage x1 is dropped while the program holds it");
  EXPECT_EQ(after({Offload(1), Drop(1)}), "storage x1 is not on the device at the end");
  const std::string again = " makes storage x1 again, which the program holds";
  EXPECT_EQ(after({Offload(1), Drop(1), Op(0)}), "action 4: operator 0 (f1)" + again);
  EXPECT_EQ(after({Op(0)}), "") << "the same contents, where they are";
  graph.released_after[1] = 1;  // x1 is released after the loss. Then it may be recomputed
  EXPECT_EQ(after({Offload(1), Drop(1), Op(0)}), "");
}

// Of two contents of one storage the program holds the later ones.
TEST(VerifierTest, WhatIsHeldIsNotOverwrittenByARepeatedRun) {
  Graph graph;
  graph.storages = {{.name = "w", .bytes = 8, .given = true, .kept = true}, {.name = "y", .bytes = 8}};
  graph.storages[0].held = true;
  graph.released_after = {kNever, kNever};
  graph.operators = {{.name = "make", .writes = {0}},
                     {.name = "use", .reads = {0}, .writes = {1}},
                     {.name = "change", .updates = {0}}};
  const std::string fault = "action 3: operator 0 (make) makes storage w again, which the program holds";
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(0), Op(2)}), fault);
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(0), Op(1), Op(2)}), "");
}

TEST(VerifierTest, WhatIsAwayBeginsAndEndsOnTheHost) {
  Graph graph = Chain(1);
  graph.storages[0].kept = graph.storages[0].away = true;
  graph.operators[2].reads = {1, 2};
  Operator update = {.name = "update", .updates = {0}};
  graph.operators.push_back(update);
  ASSERT_TRUE(Check(graph).ok());
  const Action back = {ActionKind::kPrefetch, 0};
  EXPECT_EQ(FaultOf(graph, {Op(0)}), "action 0: operator 0 (f1) finds nothing in storage x0 ");
  EXPECT_EQ(FaultOf(graph, {back, Op(0), Op(1), Op(2), Op(3), Offload(0)}), "");
  EXPECT_EQ(FaultOf(graph, {back, Op(0), Op(1), Op(2), Op(3)}),
            "storage x0 has other contents at the end than in the program");
  EXPECT_EQ(FaultOf(graph, {back, {ActionKind::kForget, 0}, Op(0), Op(1), Op(2), Op(3)}),
            "storage x0 is not on the host at the end");
  graph.storages[0].kept = false;
  EXPECT_FALSE(Check(graph).ok());
}

TEST(VerifierTest, ContentsThatHaveChanged) {
  Graph graph = Chain(2);
  graph.operators[0].reads = {};
  graph.operators[0].updates = {0};
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0)}),
            "action 4: operator 0 (f1) finds other contents than in the program in storage x0 ");
  // Its copy from before may be brought back, and is changed again.
  EXPECT_EQ(FaultOf(graph, {Offload(0), Op(0), Op(1), Drop(1), Op(2), Drop(0), Prefetch(0), Op(0), Op(3), Op(4)}), "");
  // A copy from before the change is not what b1 sees in the program.
  EXPECT_EQ(FaultOf(graph, {Offload(0), Op(0), Op(1), Op(2), Drop(0), Prefetch(0), Op(3), Op(4)}),
            "action 7: operator 4 (b1) finds other contents than in the program in storage x0 ");
}

TEST(VerifierTest, WhatIsKeptIsWhatTheProgramLeaves) {
  Graph graph = Chain(1);
  graph.storages[0].kept = true;
  Operator op;
  op.name = "update";
  op.updates = {0};
  graph.operators.push_back(op);
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Op(2), Op(3)}), "");
  EXPECT_EQ(FaultOf(graph, {Offload(0), Op(0), Op(1), Op(2), Op(3), Drop(0), Prefetch(0)}),
            "storage x0 has other contents at the end than in the program");
}

TEST(VerifierTest, RandomNumbers) {
  Graph graph = Chain(3);
  graph.operators[0].random = true;
  graph.operators[1].random = true;
  const std::vector<Action> again = {Op(0), Op(1), Drop(1), Op(2), Op(3), Op(4), Op(0), Op(5), Op(6)};
  EXPECT_EQ(FaultOf(graph, again), "action 6: operator 0 (f1) draws random numbers and runs again without its state");
  EXPECT_EQ(FaultOf(graph, again, {0}), "");
}

TEST(VerifierTest, OnceOnly) {
  Graph graph = Chain(2);
  graph.operators[0].once = true;
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1), Drop(1), Op(2), Op(0)}),
            "action 4: operator 0 (f1) may run once only and runs again");
}

TEST(VerifierTest, InPlace) {
  Graph graph = Chain(2);
  graph.operators[1].in_place = {{1, 2}};  // x2 where x1 was, which b2 still needs
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1, {0}), Op(2), Op(3)}),
            "action 3: operator 3 (b2) finds nothing in storage x1 ");
  EXPECT_EQ(FaultOf(graph, {Op(0), Op(1, {0}), Op(2), Op(0), Op(3), Op(4)}), "");
  EXPECT_EQ(FaultOf(graph, {Op(0, {0})}), "action 0: operator 0 (f1) has no such pair in place");
}

}  // namespace
}  // namespace hotpack::remat
