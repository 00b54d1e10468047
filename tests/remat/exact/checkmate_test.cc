// The model for solvers: CBC's and HiGHS's optima are those of all plans of its form. Skipped where a solver is not
// installed.
#include "remat/exact/checkmate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "remat/core/load.h"
#include "remat/core/verifier.h"
#include "remat/exact/runs.h"
#include "tests/remat/exact/brute_force.h"
#include "tests/remat/small_graphs.h"
#include "tests/runs.h"
#include "tests/support/subprocess.h"
#include "tests/tools/highs.h"

namespace hotpack::remat {
namespace {

using hotpack_test::PythonWithHighs;
using hotpack_test::Runs;
using ::testing::HasSubstr;

struct Case {
  Graph graph;
  Bytes budget;
};

// Chains, some of them in place backwards, with a second result of the first layer, or with a layer that runs once
// only; and drawn graphs.
Graph SmallGraph(std::mt19937_64& random, int kind) {
  if (kind > 3) return RandomGraph(random, 3 + kind % 3);
  Graph graph = Chain(2);  // operators f1 f2 loss b2 b1; storages x0 x1 x2 g2 g1 g0
  for (Storage& storage : graph.storages) storage.bytes = kind == 1 ? 30 : 10 * (1 + static_cast<Bytes>(random() % 5));
  for (Operator& op : graph.operators) op.cost = 1 + static_cast<Nanoseconds>(random() % 20);
  if (kind == 1) graph.operators[3].in_place = {{3, 4}}, graph.operators[4].in_place = {{4, 5}};
  if (kind == 2) {
    graph.storages.push_back({.name = "mask", .bytes = 10 * (1 + static_cast<Bytes>(random() % 5))});
    graph.operators[0].writes.push_back(6);
    graph.operators[random() % 2 == 0 ? 3 : 4].reads.push_back(6);
  }
  if (kind == 3) graph.operators[random() % 2].once = true;
  return graph;
}

// Small graphs, and budgets between the least of every plan and the program's, for some of which no plan exists. Memory
// is taken over in place only as in the model: by operators with one result of the same size.
std::vector<Case> SmallCases(int count) {
  std::mt19937_64 random(1);
  std::vector<Case> cases;
  for (int i = 0; static_cast<int>(cases.size()) < count; ++i) {
    Graph graph = SmallGraph(random, i % 7);
    for (Operator& op : graph.operators) {
      if (op.writes.size() + op.updates.size() > 1) op.in_place.clear();
      std::erase_if(op.in_place, [&](const InPlace& pair) {
        return graph.storages[static_cast<size_t>(pair.read)].bytes !=
               graph.storages[static_cast<size_t>(pair.made)].bytes;
      });
      while (op.in_place.size() > 1) op.in_place.pop_back();
    }
    if (!Check(graph).ok()) continue;
    const Bytes most = Simulate(graph, Baseline(graph))->live_peak, least = LeastMemory(graph, false);
    if (most == least) continue;
    const Bytes budget = least + (most - least) * static_cast<Bytes>(random() % 100) / 100;
    cases.push_back({std::move(graph), std::max<Bytes>(budget, 1)});
  }
  return cases;
}

class CheckmateTest : public ::testing::Test {
 protected:
  std::string Path(size_t i, const std::string& suffix) const {
    return folder_.path() + "/" + std::to_string(i) + suffix;
  }

  void Write(size_t i, const LinearProgram& program, ProgramFormat format) {
    std::ofstream(Model(i, format)) << FormatProgram(program, format);
  }
  std::string Model(size_t i, ProgramFormat format) const {
    return Path(i, format == ProgramFormat::kLp ? ".lp" : ".mps");
  }
  static ProgramFormat FormatOf(size_t i) { return i % 2 == 0 ? ProgramFormat::kLp : ProgramFormat::kMps; }

  absl::StatusOr<SolverValues> Cbc(size_t i, ProgramFormat format) {
    const std::string out = Path(i, ".cbc");
    EXPECT_TRUE(Runs({"/bin/sh", "-c", "exec timeout 60 cbc \"$0\" ratioGap 0 allowableGap 0 solve solution \"$1\"",
                      Model(i, format), out}));
    return ParseSolverValues(hotpack_test::ReadFile(out), out);
  }

  // The solver's plan is valid, within the budget, and takes the solver's time. No plan of the form takes less.
  void ExpectOptimum(const Case& one, const CheckmateModel& model, const absl::StatusOr<SolverValues>& solution,
                     size_t i) {
    ASSERT_TRUE(solution.ok()) << solution.status();
    const Values values = ValuesOf(one.graph);
    const std::optional<Nanoseconds> best = BruteForceOfStages(one.graph, values, one.budget);
    ASSERT_EQ(solution->has_solution, best.has_value()) << i << " " << solution->status;
    if (!best) {
      EXPECT_EQ(ScheduleOfSolution(one.graph, values, model, *solution).status().code(), absl::StatusCode::kNotFound);
      ++impossible_;
      return;
    }
    EXPECT_TRUE(solution->optimal);
    const absl::StatusOr<Schedule> schedule = ScheduleOfSolution(one.graph, values, model, *solution);
    ASSERT_TRUE(schedule.ok()) << i << schedule.status();
    EXPECT_EQ(Verify(one.graph, *schedule), "");
    const absl::StatusOr<Outcome> outcome = Simulate(one.graph, *schedule);
    ASSERT_TRUE(outcome.ok());
    EXPECT_LE(outcome->live_peak, one.budget) << i;
    EXPECT_EQ(outcome->time, std::llround(solution->objective)) << i;
    EXPECT_EQ(outcome->time, *best) << i;
    again_ += outcome->time > TotalCost(one.graph) ? 1 : 0;
  }

  hotpack_test::TemporaryDirectory folder_;
  int again_ = 0, impossible_ = 0;
};

TEST_F(CheckmateTest, CbcFindsTheBestPlansOfItsForm) {
  if (!Runs({"/bin/sh", "-c", "command -v cbc >/dev/null"})) GTEST_SKIP() << "cbc is not installed (coinor-cbc)";
  const std::vector<Case> cases = SmallCases(testing::Runs(84));
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    const absl::StatusOr<CheckmateModel> model =
        BuildCheckmate(one.graph, ValuesOf(one.graph), one.budget, {.as_published = i % 3 == 0});
    if (!model.ok()) {  // given contents above the budget
      EXPECT_FALSE(BruteForceOfStages(one.graph, ValuesOf(one.graph), one.budget).has_value()) << model.status();
      continue;
    }
    Write(i, model->program, FormatOf(i));
    ExpectOptimum(one, *model, Cbc(i, FormatOf(i)), i);
  }
  printf("%d with something made again, %d impossible\n", again_, impossible_);
  EXPECT_GE(again_, testing::Runs(11));
  EXPECT_GT(impossible_, testing::Runs(2));
}

TEST_F(CheckmateTest, HighsFindsThemToo) {
  const std::string python = PythonWithHighs();
  if (python.empty()) GTEST_SKIP() << "no python3 with the package highspy";
  const std::vector<Case> cases = SmallCases(testing::Runs(28));
  std::vector<hotpack_test::HighsModel> files;
  std::vector<absl::StatusOr<CheckmateModel>> models;
  for (size_t i = 0; i < cases.size(); ++i) {
    models.push_back(BuildCheckmate(cases[i].graph, ValuesOf(cases[i].graph), cases[i].budget));
    if (!models[i].ok()) continue;
    Write(i, models[i]->program, FormatOf(i));
    files.push_back({Model(i, FormatOf(i)), Path(i, ".highs"), i % 3 == 0 ? 4 : 0});
  }
  const hotpack_test::Outcome solved = hotpack_test::SolveByHighs(python, files);
  ASSERT_EQ(solved.code, 0) << solved.out << solved.err;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (models[i].ok())
      ExpectOptimum(cases[i], *models[i], ParseSolverValues(hotpack_test::ReadFile(Path(i, ".highs")), "s"), i);
  }
  EXPECT_GE(again_, testing::Runs(5));
}

// Without integers the optimum is lower, and higher where F has a row for each factor than as published.
TEST_F(CheckmateTest, RelaxationsAreBounds) {
  if (!Runs({"/bin/sh", "-c", "command -v cbc >/dev/null"})) GTEST_SKIP() << "cbc is not installed (coinor-cbc)";
  const Graph graph = Chain(5);
  const Values values = ValuesOf(graph);
  const Bytes budget = 500;
  double objectives[3];
  for (size_t i = 0; i < 3; ++i) {
    const absl::StatusOr<CheckmateModel> model = BuildCheckmate(graph, values, budget, {.as_published = i == 0});
    ASSERT_TRUE(model.ok());
    Write(i, i == 2 ? model->program : Relaxed(model->program), ProgramFormat::kLp);
    const absl::StatusOr<SolverValues> solution = Cbc(i, ProgramFormat::kLp);
    ASSERT_TRUE(solution.ok() && solution->optimal);
    objectives[i] = solution->objective;
  }
  printf("as published %g, by factors %g, integers %g\n", objectives[0], objectives[1], objectives[2]);
  EXPECT_GE(objectives[0], static_cast<double>(TotalCost(graph)) - 1e-6);
  EXPECT_LE(objectives[0], objectives[1] + 1e-6);
  EXPECT_LT(objectives[0], objectives[2]);
}

TEST(CheckmateModelTest, OfAChain) {
  const Graph graph = Chain(1);  // x0 → f1 → x1 → loss → g1, b1 → g0
  const absl::StatusOr<CheckmateModel> model = BuildCheckmate(graph, ValuesOf(graph), 400);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->unit, 100);
  EXPECT_EQ(model->stages, 4);
  const std::string lp = FormatProgram(model->program, ProgramFormat::kLp);
  // f1 runs in stage 1 for the loss, or x1 is held into it.
  EXPECT_THAT(lp, HasSubstr(" - 1 S_1_1 - 1 R_1_0 <= -1\n"));
  EXPECT_THAT(lp, HasSubstr("Memory in units of 100 bytes"));
  EXPECT_EQ(model->runs[0], (std::vector<int32_t>{kAlwaysRuns, kNeverRuns, kNeverRuns}));
  EXPECT_EQ(lp, FormatProgram(BuildCheckmate(graph, ValuesOf(graph), 400)->program, ProgramFormat::kLp));
  for (const std::string& text : {lp, FormatProgram(model->program, ProgramFormat::kMps)}) {
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      ASSERT_NE(end, std::string::npos);
      EXPECT_LE(end - at, 255u);
    }
  }
}

TEST(CheckmateModelTest, Refusals) {
  const Graph graph = Chain(3);
  const Values values = ValuesOf(graph);
  const auto message = [&](Bytes budget, const CheckmateOptions& options = {}) {
    return std::string(BuildCheckmate(graph, values, budget, options).status().message());
  };
  EXPECT_EQ(message(0), "a budget of 0 bytes");
  EXPECT_EQ(message(99), "a budget of 99 bytes: what is given takes 100");
  EXPECT_THAT(message(500, {.most_columns = 10}), HasSubstr("columns, more than 10"));
  const absl::StatusOr<CheckmateModel> model = BuildCheckmate(graph, values, 500);
  SolverValues nothing = {.status = "Optimal", .optimal = true, .has_solution = true, .columns = {}};
  EXPECT_EQ(ScheduleOfSolution(graph, values, *model, nothing).status().message(), "column R_1_0 is missing");
  nothing.zero_if_missing = true;  // then nothing runs again
  EXPECT_TRUE(ScheduleOfSolution(graph, values, *model, nothing).ok());
  nothing.only_columns = true;
  nothing.columns = {{"R_1_O", 1}};
  EXPECT_EQ(ScheduleOfSolution(graph, values, *model, nothing).status().message(), "the model has no column R_1_O");
}

TEST(RunsTest, HoldsUntilTheLastUse) {
  const Graph graph = Chain(2);  // operators f1 f2 loss b2 b1; x0 x1 x2 g2 g1 g0
  const Values values = ValuesOf(graph);
  const absl::StatusOr<Schedule> schedule = ScheduleOfRuns(graph, values, {0, 1, 2, 0, 3, 4});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
  EXPECT_EQ(outcome->time, 60);
  EXPECT_EQ(outcome->live_peak, 400);  // f1 again: x0, x1, g2; b2: x0, x1, g2, g1
  EXPECT_EQ(ScheduleOfRuns(graph, values, {0, 2, 1, 3, 4}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ScheduleOfRuns(graph, values, {0, 1, 2, 3}).status().message(), "operator 4 (b1) never runs");
  EXPECT_EQ(ScheduleOfRuns(graph, values, {7}).status().message(), "there is no operator 7");
}

TEST(SolverValuesTest, OfBothSolvers) {
  const std::string cbc = "Optimal - objective value 60.00000000\n      0 one        1     50\n** 7 R_1_0   1   10\n";
  const std::string highs =
      "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 60\n# Columns 2\none 1\nR_1_0 1\n# Rows "
      "0\n";
  const std::string sparse =
      "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 60\n# Columns -2\none 1 0\nR_1_0 1 7\n";
  std::string sparse_116 = sparse;
  sparse_116.replace(sparse.find("# Columns"), 12, "Objective_bound 60\nMIP_rel_gap 0\n# Columns -2 sparse");
  for (const std::string& text : {cbc, highs, sparse, sparse_116}) {
    const absl::StatusOr<SolverValues> values = ParseSolverValues(text, "s");
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_TRUE(values->optimal && values->has_solution);
    EXPECT_EQ(values->objective, 60);
    EXPECT_EQ(values->columns.at("R_1_0"), 1);
    EXPECT_EQ(values->columns.size(), 2u);
    EXPECT_EQ(values->zero_if_missing, text != highs);
  }
  for (const std::string head : {"# Columns 0", "# Columns 0 sparse"}) {  // all are zero
    const absl::StatusOr<SolverValues> zero =
        ParseSolverValues(sparse.substr(0, sparse.find("# Columns")) + head + "\n", "s");
    ASSERT_TRUE(zero.ok()) << zero.status();
    EXPECT_TRUE(zero->has_solution && zero->zero_if_missing && zero->columns.empty());
  }
  const absl::StatusOr<SolverValues> none = ParseSolverValues("Infeasible - objective value 0\n", "s");
  EXPECT_TRUE(none.ok() && !none->has_solution);
  EXPECT_FALSE(ParseSolverValues("Stopped on time (no integer solution - continuous used) - objective value 3\n", "s")
                   ->has_solution);
  EXPECT_EQ(ParseSolverValues("id,offset\n", "s").status().message(), "s:1: not a solution of CBC or HiGHS");
  EXPECT_EQ(ParseSolverValues(cbc + "1 x\n", "s").status().message(),
            "s:4: expected index, name, value and reduced cost");
  EXPECT_EQ(ParseSolverValues(cbc + "8 one 1 0\n", "s").status().message(), "s:4: column one is there twice");
  EXPECT_EQ(ParseSolverValues(highs.substr(0, highs.find("R_1_0")), "s").status().message(),
            "s:8: the file ends within its columns");
}

TEST(SolverValuesTest, MalformedSparseFilesAreRefused) {
  for (const std::string head : {"# Columns -2", "# Columns -2 sparse"}) {
    const std::string begin =
        "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 60\n" + head + "\n";
    const auto message = [&](const std::string& lines) {
      return std::string(ParseSolverValues(begin + lines, "s").status().message());
    };
    EXPECT_EQ(message("one 1 0\nR_1_0 1 7\n"), "");
    EXPECT_EQ(message("one 1 0\n"), "s:8: the file ends within its columns");
    EXPECT_EQ(message("one 1 0\nR_1_0 1\n"), "s:9: expected a name, its value and its index, found 'R_1_0 1'");
    EXPECT_EQ(message("one 1 0\nR_1_0 1 7\nR_2_0 1 8\n"),
              "s:10: more than the 2 columns that the head counts, found 'R_2_0 1 8'");
    EXPECT_EQ(message("one 1 0\nR_1_0 1 0\n"), "s:9: a second column with the index 0");
    EXPECT_EQ(message("one 1 0\nR_1_0 1 -7\n"), "s:9: the index is not a number from 0: '-7'");
    EXPECT_EQ(message("one 1 0\none 1 7\n"), "s:9: column one is there twice");
    EXPECT_EQ(message("one 1 0\nR_1_0 x 7\n"), "s:9: expected a number");
  }
  EXPECT_EQ(ParseSolverValues("Model status\nOptimal\n# Primal solution values\nFeasible\n# Columns -2 dense\n", "s")
                .status()
                .message(),
            "s:5: expected the number of columns");
}

}  // namespace
}  // namespace hotpack::remat
