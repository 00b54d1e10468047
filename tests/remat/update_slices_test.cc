#include "remat/core/update_slices.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

// A step of `parameters`: forward and backward make the gradients; then the optimizer's operators go over all of them:
// temporary = gradient + parameter; state is changed by the temporary; the parameter by the state.
Graph Step(int parameters, Bytes bytes) {
  Graph graph;
  const auto add = [&](const char* name, int number, Bytes size, bool given, bool kept, bool held) {
    const auto id = static_cast<StorageId>(graph.storages.size());
    graph.storages.push_back({.name = absl::StrCat(name, number), .bytes = size, .given = given, .kept = kept});
    graph.storages.back().held = held;
    graph.storages.back().movable = held && kept;
    graph.released_after.push_back(kNever);
    return id;
  };
  std::vector<StorageId> weights, gradients, states, temporaries;
  for (int i = 0; i < parameters; ++i) weights.push_back(add("w", i, bytes + i, true, true, true));
  for (int i = 0; i < parameters; ++i) gradients.push_back(add("g", i, bytes + i, false, true, true));
  for (int i = 0; i < parameters; ++i) states.push_back(add("m", i, bytes + i, true, true, false));
  for (int i = 0; i < parameters; ++i) temporaries.push_back(add("t", i, bytes + i, false, false, true));
  const StorageId rate = add("rate", 0, 8, false, false, false);
  for (int i = parameters; i-- > 0;) {
    graph.operators.push_back({.name = absl::StrCat("backward", i),
                               .cost = 100,
                               .reads = {weights[At(i)]},
                               .writes = {gradients[At(i)]},
                               .phase = Phase::kBackward});
  }
  DivisibleUpdate update = {.begin = static_cast<OperatorId>(graph.operators.size())};
  const auto run = [&](const char* name, Nanoseconds cost, std::vector<StorageId> reads, std::vector<StorageId> writes,
                       std::vector<StorageId> updates) {
    graph.operators.push_back({.name = name,
                               .cost = cost,
                               .reads = std::move(reads),
                               .writes = std::move(writes),
                               .updates = std::move(updates),
                               .phase = Phase::kUpdate});
  };
  run("rate", 1, {}, {rate}, {});
  std::vector<StorageId> both = gradients;
  both.insert(both.end(), weights.begin(), weights.end());
  run("decay", 31, both, temporaries, {});
  std::vector<StorageId> with_rate = temporaries;
  with_rate.push_back(rate);
  run("momentum", 17, with_rate, {}, states);
  for (StorageId id : temporaries) graph.released_after[At(id)] = static_cast<OperatorId>(graph.operators.size()) - 1;
  graph.released_after[At(rate)] = static_cast<OperatorId>(graph.operators.size()) - 1;
  for (int i = 0; i < parameters; ++i) run("item", 0, {states[At(i)]}, {}, {});
  run("step", 23, states, {}, weights);
  update.end = static_cast<OperatorId>(graph.operators.size());
  update.parts = parameters;
  update.part_of.assign(graph.storages.size(), -1);
  for (int i = 0; i < parameters; ++i) {
    for (const auto* list : {&weights, &gradients, &states, &temporaries}) update.part_of[At((*list)[At(i)])] = i;
  }
  graph.updates.push_back(update);
  return graph;
}

Bytes PeakOf(const Graph& graph) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, Baseline(graph));
  return outcome.ok() ? outcome->live_peak : -1;
}

TEST(UpdateSlicesTest, EachSliceRunsByItself) {
  const Graph graph = Step(3, 1000);
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const SlicedGraph sliced = SliceUpdates(graph, 0);
  ASSERT_TRUE(Check(sliced.graph).ok()) << Check(sliced.graph);
  std::string names;
  for (const Operator& op : sliced.graph.operators) absl::StrAppend(&names, op.name, " ");
  EXPECT_EQ(names,
            "backward2 backward1 backward0 rate decay momentum item step decay momentum item step decay momentum item "
            "step ");
  EXPECT_EQ(sliced.original, (std::vector<OperatorId>{0, 1, 2, 3, 4, 5, 6, 9, 4, 5, 7, 9, 4, 5, 8, 9}));
  ASSERT_EQ(sliced.slices.size(), 3u);
  EXPECT_EQ(sliced.slices[1], (std::vector<StorageId>{1, 4, 7, 10}));
  EXPECT_EQ(sliced.graph.operators[9].updates, std::vector<StorageId>{7});
  EXPECT_EQ(sliced.graph.operators[9].reads, (std::vector<StorageId>{10, 12}));  // its temporary, and the rate of all
  // A temporary lives in its slice alone; what all slices read, until the last.
  EXPECT_EQ(sliced.graph.released_after[9], 5);
  EXPECT_EQ(sliced.graph.released_after[12], 15);
  EXPECT_EQ(PeakOf(graph) - PeakOf(sliced.graph), 1000 + 1001);
  EXPECT_EQ(Verify(sliced.graph, Baseline(sliced.graph)), "");
  EXPECT_EQ(Verify(sliced.graph, Baseline(sliced.graph, Release::kAsTheProgram)), "");
}

TEST(UpdateSlicesTest, ScalarsOfASliceAreReadTogether) {
  const SlicedGraph sliced = SliceUpdates(Step(4, 1000), SliceBytes(Step(4, 1000), 3));
  ASSERT_EQ(sliced.slices.size(), 2u);
  std::vector<std::vector<StorageId>> items;
  for (const Operator& op : sliced.graph.operators) {
    if (op.name == "item") items.push_back(op.reads);
  }
  EXPECT_EQ(items, (std::vector<std::vector<StorageId>>{{8, 9}, {10, 11}}));
}

TEST(UpdateSlicesTest, AnySizeKeepsCostsAndResults) {
  std::mt19937_64 random(26);
  for (int i = 0; i < 200; ++i) {
    Graph graph = Step(1 + i % 9, 1 + static_cast<Bytes>(random() % 5000));
    for (Operator& op : graph.operators) op.cost = static_cast<Nanoseconds>(random() % 1000);
    const SlicedGraph sliced = SliceUpdates(graph, static_cast<Bytes>(random() % 40000));
    ASSERT_TRUE(Check(sliced.graph).ok()) << Check(sliced.graph);
    EXPECT_EQ(TotalCost(sliced.graph), TotalCost(graph));
    EXPECT_EQ(sliced.original.size(), sliced.graph.operators.size());
    EXPECT_LE(PeakOf(sliced.graph), PeakOf(graph));
    EXPECT_EQ(Verify(sliced.graph, Baseline(sliced.graph, Release::kAsTheProgram)), "");
  }
}

TEST(UpdateSlicesTest, WithoutUpdatesNothingChanges) {
  Graph graph = Step(2, 10);
  graph.updates.clear();
  const SlicedGraph sliced = SliceUpdates(graph, 0);
  EXPECT_EQ(sliced.graph.operators.size(), graph.operators.size());
  EXPECT_EQ(sliced.graph.released_after, graph.released_after);
  EXPECT_TRUE(sliced.slices.empty());
  EXPECT_EQ(SliceBytes(graph, 16), 0);
}

}  // namespace
}  // namespace hotpack::remat
