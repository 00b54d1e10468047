// Smaller cases of steps.
#include "bench/plans/coarsen.h"

#include <gtest/gtest.h>

#include <random>

#include "remat/core/load.h"
#include "remat/core/update_slices.h"
#include "remat/exact/all_plans.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

Graph Step() { return SliceUpdates(UpdateStep(3, 1 << 20), 0).graph; }

Bytes BytesOf(const Graph& graph) {
  Bytes bytes = 0;
  for (const Storage& storage : graph.storages) bytes += storage.bytes;
  return bytes;
}

TEST(CoarsenTest, TakesAsLongAsTheStep) {
  const Graph step = Step();
  for (size_t operators = step.operators.size(); operators > 0; --operators) {
    const Graph coarse = Coarsen(step, operators, 100);
    ASSERT_TRUE(Check(coarse).ok()) << Check(coarse);
    EXPECT_EQ(coarse.operators.size(), operators);
    EXPECT_EQ(TotalCost(coarse), TotalCost(step));
    EXPECT_GE(LeastMemory(coarse, true), LeastMemory(step, true));
  }
}

TEST(CoarsenTest, LeavesOutTheSmallest) {
  const Graph step = Step(), all = Coarsen(step, 8, 100);
  Bytes before = BytesOf(all);
  for (size_t storages = all.storages.size(); storages > 0; --storages) {
    const Graph coarse = Coarsen(step, 8, storages);
    ASSERT_TRUE(Check(coarse).ok()) << Check(coarse);
    EXPECT_LE(coarse.storages.size(), storages);
    EXPECT_LE(BytesOf(coarse), before);
    before = BytesOf(coarse);
  }
  EXPECT_LT(before, BytesOf(all));
}

// Joins that leave no choice out: no plan drops, copies or repeats anything between the joined operators.
TEST(CoarsenTest, OperatorsOfOwnStoragesAreOne) {
  const Graph chain = Chain(3, 64, 10);
  Graph longer = chain;  // each operator is two: one for its result, and one that only needs room
  std::vector<Operator> operators;
  for (const Operator& op : chain.operators) {
    Operator half = op;
    half.cost /= 2;
    operators.push_back(half);
    half.workspace = 32;
    half.reads = half.writes;
    half.writes.clear();
    operators.push_back(half);
  }
  longer.operators = operators;
  const Graph coarse = Coarsen(longer, chain.operators.size(), 100);
  const Machine machine = {.bytes_per_ns_to_host = 4, .bytes_per_ns_to_device = 4};
  int compared = 0;
  for (Bytes budget = LeastMemory(coarse, true); budget < BytesOf(coarse); budget += 64) {
    const AllPlansOptions options = {.budget = budget, .machine = machine, .swap = true};
    const AllPlansAnswer of_step = SearchAllPlans(longer, options), of_coarse = SearchAllPlans(coarse, options);
    ASSERT_TRUE(of_step.complete && of_coarse.complete);
    if (!of_coarse.schedule) continue;
    ++compared;
    ASSERT_TRUE(of_step.schedule);
    EXPECT_LE(of_step.time, of_coarse.time);  // what it may do between them
  }
  EXPECT_GT(compared, 2);
}

}  // namespace
}  // namespace hotpack::remat
