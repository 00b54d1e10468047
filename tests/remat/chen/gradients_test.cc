// Plans are computed: the gradients are those of the program, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_split.h"
#include "remat/baselines/dtr.h"
#include "remat/baselines/echo.h"
#include "remat/chen/plans.h"
#include "remat/chen/recursion.h"
#include "remat/chen/segments.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"
#include "remat/remat_plan.h"
#include "tests/remat/chen/chain.h"
#include "tests/remat/chen/numeric.h"

namespace hotpack::remat {
namespace {

constexpr int64_t kRows = 16, kWidth = 16, kClasses = 5;

// Fully connected layers, one of them used twice, normalisation, dropout, and results that go past layers.
Network ResidualNetwork() {
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {kRows});
  TensorId x = net.FullyConnected(net.Data("images", {kRows, kWidth}), kWidth);
  const TensorId shared = net.Weight({kWidth, kWidth});
  for (int block = 0; block < 4; ++block) {
    const TensorId a = net.Dropout(net.Relu(net.BatchNorm(x)));
    const TensorId b = net.Tanh(net.FullyConnected(a, kWidth, true, shared));
    x = net.Sum(x, net.FullyConnected(b, kWidth));
  }
  net.Result(net.Softmax(net.FullyConnected(net.Relu(x), kClasses)), labels);
  return net.Finish().value();
}

Network ChainNetwork(int64_t rows = kRows) {
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {rows});
  TensorId x = net.Data("images", {rows, kWidth});
  for (int layer = 0; layer < 5; ++layer) x = net.Dropout(net.Tanh(net.BatchNorm(net.FullyConnected(x, kWidth))));
  net.Result(net.Softmax(net.FullyConnected(x, kClasses)), labels);
  return net.Finish().value();
}

Network DrawnNetwork(uint64_t seed) {
  std::mt19937_64 random(seed);
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {kRows});
  std::vector<TensorId> made = {net.FullyConnected(net.Data("images", {kRows, kWidth}), kWidth)};
  for (uint64_t layers = 3 + random() % 15; layers > 0; --layers) {
    const TensorId x = made[made.size() - 1 - random() % std::min<size_t>(made.size(), 2)],
                   other = made[random() % made.size()];
    switch (random() % 7) {
      case 0:
        made.push_back(net.FullyConnected(x, kWidth));
        break;
      case 1:
        made.push_back(net.BatchNorm(x));
        break;
      case 2:
        made.push_back(net.Relu(x));
        break;
      case 3:
        made.push_back(net.Tanh(x));
        break;
      case 4:
        made.push_back(net.Dropout(x));
        break;
      case 5:
        made.push_back(other == x ? net.Tanh(x) : net.Sum(x, other));
        break;
      default:
        made.push_back(net.Multiply(x, net.Tanh(other)));
        break;  // no larger than x
    }
  }
  net.Result(net.Softmax(net.FullyConnected(net.BatchNorm(made.back()), kClasses)), labels);
  return net.Finish().value();
}

TrainingOptions Options(bool updates, Accumulation accumulation = Accumulation::kInPlace) {
  TrainingOptions options;
  options.updates = updates;
  options.gradients_stay = !updates;
  options.accumulation = accumulation;
  return options;
}

// Follows a plan, and compares the kept contents with the program's.
class Same {
 public:
  explicit Same(const Computable& step) : step_(step), expected_(Execute(step, Baseline(step.graph))) {
    for (const Numbers& numbers : expected_) {
      for (float number : numbers) EXPECT_TRUE(std::isfinite(number));
    }
  }
  void Expect(const Schedule& schedule, const std::string& what) {
    ASSERT_EQ(Verify(step_.graph, schedule), "") << what;
    EXPECT_TRUE(SameNumbers(Execute(step_, schedule), expected_)) << what;
    std::vector<int> runs(step_.graph.operators.size());
    for (const Action& action : schedule.actions) {
      const bool again = action.kind == ActionKind::kRun && ++runs[static_cast<size_t>(action.target)] > 1;
      const bool copied = action.kind == ActionKind::kPrefetch;
      again_ += again ? 1 : 0;
      copied_ += copied ? 1 : 0;
      by_name_[what] += again || copied ? 1 : 0;
      in_place_ += static_cast<int>(action.in_place.size());
    }
  }
  const std::vector<Numbers>& expected() const { return expected_; }
  int again() const { return again_; }
  int copied() const { return copied_; }
  int in_place() const { return in_place_; }
  // Values that the plans of one planner recomputed or copied.
  int OfPlanner(const std::string& name) const { return by_name_.contains(name) ? by_name_.at(name) : 0; }

 private:
  const Computable& step_;
  const std::vector<Numbers> expected_;
  int again_ = 0, copied_ = 0, in_place_ = 0;
  std::map<std::string, int> by_name_;
};

// But for auto, whose plan is one of theirs.
std::vector<std::string> PlannerNames() {
  std::vector<std::string> names = absl::StrSplit(kRematAlgorithmNames, ", ");
  std::erase(names, "auto");
  return names;
}

// By all planners' names, as `hotpack plan --algorithm` has them.
void ExpectPlansByName(const Computable& step, int percent, Same* same) {
  const absl::StatusOr<RematPlan> program = MakeRematPlan(step.graph, {});
  ASSERT_TRUE(program.ok()) << program.status();
  for (const std::string& name : PlannerNames()) {
    PlanOptions options;
    options.algorithm = *PlanAlgorithmFromName(name);
    options.budget = program->arena * percent / 100;
    options.swap = percent % 2 == 0;
    options.time_limit_ns = 100'000'000;
    const absl::StatusOr<RematPlan> answer = MakeRematPlan(step.graph, options);
    if (answer.ok()) same->Expect(answer->schedule, name);
  }
}

void ExpectAllPlans(const Computable& step, std::mt19937_64* random, Same* same) {
  const Graph& graph = step.graph;
  const Values values = ValuesOf(graph);
  for (const ChenPlan& plan : SearchSegments(graph, values)) same->Expect(ScheduleOf(graph, values, plan), "chen");
  const std::vector<bool> cheap = CheapOperators(graph);
  same->Expect(BuildSchedule(graph, values, DropForward(graph, values, cheap), {}, &cheap).schedule, "drop bn-relu");
  const EchoPlan echo = PlanByEcho(graph, values);
  same->Expect(BuildSchedule(graph, values, echo.ways, {}, &echo.again).schedule, "echo");
  const Bytes whole = Simulate(graph, Baseline(graph))->live_peak;
  for (int percent : {90, 75, 60}) {
    const absl::StatusOr<Schedule> dtr = ScheduleByDtr(graph, values, whole * percent / 100);
    if (dtr.ok()) same->Expect(*dtr, "dtr");
  }
  for (int k : {1, 2}) {
    for (int levels : {1, 2, 3}) {
      const std::vector<int32_t> counts = RecursivePlan(graph, values, k, levels);
      const absl::StatusOr<Schedule> schedule = ScheduleByMirror(graph, values, counts);
      if (schedule.ok()) same->Expect(*schedule, "recursion");
    }
  }
  for (int i = 0; i < 5; ++i) {
    std::vector<GapAction> ways(values.gaps.size());
    for (GapAction& way : ways) way = static_cast<GapAction>((*random)() % 4);
    same->Expect(BuildSchedule(graph, values, ways).schedule, "drawn");
  }
}

// Algorithm 2's graph itself, every operator once: "gives equivalent weight gradient", to the bit.
void ExpectMirrored(const Computable& step, const std::vector<int32_t>& counts, const std::vector<Numbers>& expected) {
  const MirroredGraph mirrored = MirrorGraph(step.graph, ValuesOf(step.graph), counts);
  const Computable copy = MirroredComputable(step, mirrored);
  std::vector<Numbers> found = Execute(copy, Baseline(copy.graph));
  found.resize(expected.size());  // copies are not kept
  EXPECT_TRUE(SameNumbers(found, expected));
}

TEST(GradientsTest, AreThoseOfTheLoss) {
  const Network network = ChainNetwork();
  Computable step = MakeComputable(network, Options(false), 5);
  for (Operator& op : step.graph.operators) op.random = false;
  const Training training = *MakeTraining(network, Options(false));
  StorageId loss = -1;
  for (size_t id = 0; id < step.graph.storages.size(); ++id) {
    if (step.graph.storages[id].name.starts_with("loss of")) loss = static_cast<StorageId>(id);
  }
  ASSERT_GE(loss, 0);
  const std::vector<Numbers> kept = Execute(step, Baseline(step.graph));
  int looked_at = 0;
  for (size_t t = 0; t < network.tensors.size(); ++t) {
    if (network.tensors[t].role != TensorRole::kWeight) continue;
    const auto given = std::find_if(step.given.begin(), step.given.end(),
                                    [&](const auto& each) { return each.first == training.storage_of[t]; });
    ASSERT_NE(given, step.given.end());
    float& weight = given->second[given->second.size() / 2];
    const float gradient = kept[static_cast<size_t>(training.gradient_of[t])][given->second.size() / 2],
                before = weight;
    float losses[2];
    for (int side : {0, 1}) {
      weight = before + (side == 0 ? -0.01f : 0.01f);
      losses[side] = Execute(step, Baseline(step.graph))[static_cast<size_t>(loss)][0];
    }
    weight = before;
    EXPECT_NEAR((losses[1] - losses[0]) / 0.02f, gradient, 0.02f + 0.05f * std::abs(gradient))
        << network.tensors[t].name;
    ++looked_at;
  }
  EXPECT_GE(looked_at, 12);
}

TEST(GradientsTest, OfEveryPlannerAreTheProgramsOwn) {
  std::mt19937_64 random(1);
  for (const Network& network : {ResidualNetwork(), ChainNetwork()}) {
    for (const TrainingOptions& options : {Options(false), Options(true), Options(true, Accumulation::kOperator)}) {
      const Computable step = MakeComputable(network, options, 7);
      Same same(step);
      ExpectAllPlans(step, &random, &same);
      EXPECT_GT(same.again(), 100);
      EXPECT_GT(same.copied(), 20);
      EXPECT_GT(same.in_place(), 20);
    }
  }
}

TEST(GradientsTest, OfEveryPlannersName) {
  const Computable step =
      MakeComputable(ChainNetwork(256), Options(true), 11);  // of which the weights are a small part
  Same same(step);
  for (int percent : {90, 85, 75, 70, 65}) ExpectPlansByName(step, percent, &same);
  for (const std::string& name : PlannerNames()) {
    if (name == "dqn") continue;  // in so short a time it may learn nothing
    EXPECT_GT(same.OfPlanner(name), 0) << name;
  }
}

TEST(GradientsTest, OfDrawnNetworksToo) {
  std::mt19937_64 random(2);
  int again = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const Accumulation accumulation = seed % 3 == 0 ? Accumulation::kOperator : Accumulation::kInPlace;
    const Computable step = MakeComputable(DrawnNetwork(seed), Options(seed % 2 == 0, accumulation), seed);
    Same same(step);
    ExpectAllPlans(step, &random, &same);
    again += same.again();
    for (int i = 0; i < 5; ++i) {
      std::vector<int32_t> counts(step.graph.operators.size());
      for (int32_t& count : counts) count = static_cast<int32_t>(random() % 4);
      ExpectMirrored(step, counts, same.expected());
    }
  }
  EXPECT_GT(again, 2000);
}

TEST(GradientsTest, OfTheMirroredGraph) {
  for (const Network& network : {ResidualNetwork(), ChainNetwork()}) {
    const Computable step = MakeComputable(network, Options(true), 9);
    const std::vector<Numbers> expected = Execute(step, Baseline(step.graph));
    const Values values = ValuesOf(step.graph);
    ExpectMirrored(step, std::vector<int32_t>(step.graph.operators.size(), 1), expected);
    ExpectMirrored(step, RecursivePlan(step.graph, values, 1, 3), expected);
    ExpectMirrored(step, CountsOf(CheapOperators(step.graph)), expected);
    for (const MirrorPlan& plan : SearchMirrors(step.graph, values))
      ExpectMirrored(step, CountsOf(plan.segments.again), expected);
  }
}

TEST(GradientsTest, OfAlgorithmOne) {
  const Computable step = MakeComputable(ChainNetwork(), Options(true), 3);
  Same same(step);
  std::vector<bool> ends(step.graph.operators.size());
  for (size_t i = 4; i < ends.size(); i += 5) ends[i] = true;
  const absl::StatusOr<Schedule> schedule = ScheduleByAlgorithm1(step.graph, ValuesOf(step.graph), ends);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  same.Expect(*schedule, "algorithm 1");
  EXPECT_GT(same.again(), 15);
}

// The test can fail: dropped contents are missing, and dropout without its state draws other numbers.
TEST(GradientsTest, OfAWrongPlanAreOthers) {
  const Computable step = MakeComputable(ResidualNetwork(), Options(true), 7);
  const std::vector<Numbers> expected = Execute(step, Baseline(step.graph));
  const Values values = ValuesOf(step.graph);
  Schedule schedule = *ScheduleByMirror(step.graph, values, std::vector<int32_t>(step.graph.operators.size(), 1));
  EXPECT_TRUE(SameNumbers(Execute(step, schedule), expected));
  ASSERT_EQ(schedule.saved_states.size(), 4u);
  Schedule stateless = schedule;
  stateless.saved_states.clear();
  EXPECT_FALSE(SameNumbers(Execute(step, stateless), expected));
  int differ = 0, left_out = 0;
  std::vector<bool> has_run(step.graph.operators.size());
  for (size_t i = 0; i < schedule.actions.size(); ++i) {
    if (schedule.actions[i].kind != ActionKind::kRun) continue;
    const bool again = has_run[static_cast<size_t>(schedule.actions[i].target)];
    has_run[static_cast<size_t>(schedule.actions[i].target)] = true;
    if (!again) continue;
    Schedule without = schedule;
    without.actions.erase(without.actions.begin() + static_cast<std::ptrdiff_t>(i));
    ++left_out;
    differ += SameNumbers(Execute(step, without), expected) ? 0 : 1;
  }
  EXPECT_GT(left_out, 10);
  EXPECT_EQ(differ, left_out);
}

}  // namespace
}  // namespace hotpack::remat
