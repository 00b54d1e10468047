#include "planner/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/planner/small_graphs.h"

namespace hotpack::planner {
namespace {

// Of 100 bytes each they take 512 of the arena.
TEST(PlansTest, SmallStoragesTakeWholeGrains) {
  const Graph graph = Chain(50, 100);
  PlanOptions options;
  options.algorithm = PlanAlgorithm::kSearch;
  options.time_limit_ns = 20'000'000;
  for (const Bytes budget : {3584, 5120, 15360}) {
    options.budget = budget;
    const absl::StatusOr<PlanAnswer> answer = MakePlan(graph, options);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_LE(answer->arena, budget);
    EXPECT_GT(answer->recomputed, 0);
  }
}

TEST(PlansTest, NoneIsSlowerThanOneOfASmallerBudget) {
  const Graph graph = Chain(50, 512);
  PlanOptions options;
  options.algorithm = PlanAlgorithm::kSearch;
  options.time_limit_ns = 20'000'000;
  const std::vector<Bytes> budgets = {5120, 25600, 3584, 15360, 1024, 20480};
  const std::vector<absl::StatusOr<PlanAnswer>> answers = MakePlans(graph, options, budgets);
  ASSERT_EQ(answers.size(), budgets.size());
  EXPECT_EQ(answers[4].status().code(), absl::StatusCode::kResourceExhausted);  // below what every plan needs
  for (size_t a = 0; a < budgets.size(); ++a) {
    if (a == 4) continue;
    ASSERT_TRUE(answers[a].ok()) << answers[a].status();
    EXPECT_LE(answers[a]->arena, budgets[a]);
    for (size_t b = 0; b < budgets.size(); ++b) {
      if (b != 4 && budgets[b] > budgets[a]) {
        EXPECT_LE(answers[b]->outcome.time, answers[a]->outcome.time);
      }
    }
  }
}

}  // namespace
}  // namespace hotpack::planner
