#include "remat/core/update_slices.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/core/simulator.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

Bytes PeakOf(const Graph& graph) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, Baseline(graph));
  return outcome.ok() ? outcome->live_peak : -1;
}

TEST(UpdateSlicesTest, EachSliceRunsByItself) {
  const Graph graph = UpdateStep(3, 1000);
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
  const SlicedGraph sliced = SliceUpdates(UpdateStep(4, 1000), SliceBytes(UpdateStep(4, 1000), 3));
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
    Graph graph = UpdateStep(1 + i % 9, 1 + static_cast<Bytes>(random() % 5000));
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
  Graph graph = UpdateStep(2, 10);
  graph.updates.clear();
  const SlicedGraph sliced = SliceUpdates(graph, 0);
  EXPECT_EQ(sliced.graph.operators.size(), graph.operators.size());
  EXPECT_EQ(sliced.graph.released_after, graph.released_after);
  EXPECT_TRUE(sliced.slices.empty());
  EXPECT_EQ(SliceBytes(graph, 16), 0);
}

}  // namespace
}  // namespace hotpack::remat
