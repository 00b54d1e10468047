// hotpack plan --sweep: time against memory.
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "remat/core/load.h"
#include "remat/exact/bounds.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/remat/plan_commands.h"
#include "tools/remat/plan_plot.h"

namespace hotpack {
namespace {

using remat::PlanOptions;
using remat::RematPlan;

int Fail(const std::string& message, int code = 2) {
  fprintf(stderr, "hotpack plan: %s\n", message.c_str());
  return code;
}

std::vector<std::string> Algorithms(const SweepOptions& sweep, const PlanOptions& options) {
  if (sweep.algorithm != "auto") return {sweep.algorithm};
  std::vector<std::string> names;
  for (const remat::PlannerTraits& planner : remat::kPlanners) {
    if (planner.in_auto == remat::InAuto::kOnRequest) continue;
    if (planner.in_auto == remat::InAuto::kWithCopies && !options.swap) continue;
    names.emplace_back(planner.name);
  }
  return names;
}

void PrintRow(const std::string& algorithm, Bytes budget, Bytes program, const absl::StatusOr<RematPlan>& answer) {
  if (!answer.ok()) {
    printf("%s,%lld,%.6f,,,,,,,\n", algorithm.c_str(), static_cast<long long>(budget),
           static_cast<double>(budget) / static_cast<double>(program));
    return;
  }
  const double own = static_cast<double>(std::max<remat::Nanoseconds>(1, answer->baseline_time));
  printf("%s,%lld,%.6f,%lld,%lld,%lld,%.6f,%.6f,%lld,%lld\n", algorithm.c_str(), static_cast<long long>(budget),
         static_cast<double>(budget) / static_cast<double>(program), static_cast<long long>(answer->arena),
         static_cast<long long>(answer->outcome.live_peak), static_cast<long long>(answer->outcome.time),
         static_cast<double>(answer->outcome.time) / own, static_cast<double>(answer->lower_bound_time) / own,
         static_cast<long long>(answer->recomputed), static_cast<long long>(answer->swapped));
}

}  // namespace

int SweepPlans(const SweepOptions& sweep, const PlanOptions& options) {
  const absl::Status writable = CheckOutput("--plot", sweep.plot, sweep.force, {sweep.graph});
  if (!writable.ok()) return Fail(std::string(writable.message()));
  absl::StatusOr<remat::Graph> read = ReadPlanGraph(sweep.graph);
  if (!read.ok()) return Fail(std::string(read.status().message()));
  const absl::StatusOr<RematPlan> program = MakeRematPlan(*read, {.budget = 0});
  if (!program.ok()) return Fail(sweep.graph + ": " + std::string(program.status().message()));
  const remat::Graph graph = InSlices(*std::move(read), sweep.slices).graph;
  const Bytes most = program->arena;
  Bytes least = remat::LeastMemory(graph, options.swap);
  if (!options.swap)
    least = std::max(least, remat::LeastBytes(graph, remat::ValuesOf(graph), {.time_limit_ns = 1'000'000'000}));
  std::vector<Bytes> budgets;
  for (int i = 1; i <= sweep.points; ++i) {
    budgets.push_back(least + static_cast<Bytes>(static_cast<double>(most - least) * i / sweep.points));
  }
  printf("algorithm,budget,part,arena,live_peak,time_ns,ratio,bound_ratio,recomputed,swapped\n");
  std::vector<PlotLine> lines;
  for (const std::string& name : Algorithms(sweep, options)) {
    PlanOptions one = options;
    one.algorithm = *remat::PlanAlgorithmFromName(name);
    std::vector<absl::StatusOr<RematPlan>> answers;
    {
      const Progress progress(absl::StrCat(name, ": ", CountText(budgets.size(), "budget"), " of ",
                                           CountText(graph.operators.size(), "operator")));
      answers = MakePlans(graph, one, budgets);
    }
    PlotLine& line = lines.emplace_back();
    line.name = name;
    for (size_t i = 0; i < budgets.size(); ++i) {
      if (absl::IsInternal(answers[i].status()))
        return Fail(sweep.graph + ": " + std::string(answers[i].status().message()), 1);
      PrintRow(name, budgets[i], most, answers[i]);
      if (!answers[i].ok() || answers[i]->baseline_time == 0) continue;
      line.points.push_back(
          {static_cast<double>(budgets[i]) / static_cast<double>(most),
           static_cast<double>(answers[i]->outcome.time) / static_cast<double>(answers[i]->baseline_time)});
    }
    fflush(stdout);
  }
  if (!sweep.plot.empty()) {
    const absl::Status written = WriteFile(sweep.plot, PlanPlot(sweep.graph, lines));
    if (!written.ok()) return Fail(std::string(written.message()));
  }
  return 0;
}

}  // namespace hotpack
