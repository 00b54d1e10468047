// hotpack plan export, hotpack plan solved: a graph and a budget as a model for solvers, and their solution as a plan.
#include <cstdio>
#include <memory>
#include <string>

#include "profiler/trace_file.h"
#include "remat/core/verifier.h"
#include "remat/exact/checkmate.h"
#include "remat/exact/solver_values.h"
#include "remat/files/schedule_json.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/size_text.h"
#include "tools/remat/plan_commands.h"

namespace hotpack {
namespace {

int Fail(const char* command, const std::string& message, int code = 2) {
  fprintf(stderr, "hotpack plan %s: %s\n", command, message.c_str());
  return code;
}

}  // namespace

int ExportPlanModel(const PlanModelOptions& options) {
  const absl::Status writable = CheckOutput("--out", options.out, options.force, {options.graph});
  if (!writable.ok()) return Fail("export", std::string(writable.message()));
  const absl::StatusOr<remat::Graph> graph = ReadPlanGraph(options.graph);
  if (!graph.ok()) return Fail("export", std::string(graph.status().message()));
  absl::StatusOr<remat::CheckmateModel> model = BuildCheckmate(*graph, ValuesOf(*graph), *ParseSize(options.budget));
  if (!model.ok()) return Fail("export", options.graph + ": " + std::string(model.status().message()));
  const remat::LinearProgram program =
      options.relaxed ? remat::Relaxed(std::move(model->program)) : std::move(model->program);
  const remat::ProgramFormat format = options.format == "mps" ? remat::ProgramFormat::kMps : remat::ProgramFormat::kLp;
  const std::string text = FormatProgram(program, format);
  if (options.out.empty()) {
    fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  const absl::Status written = WriteFile(options.out, text);
  if (!written.ok()) return Fail("export", std::string(written.message()));
  return 0;
}

int ReadPlanSolution(const PlanModelOptions& options) {
  const absl::Status writable = CheckOutput("--out", options.out, options.force, {options.graph, options.solution});
  if (!writable.ok()) return Fail("solved", std::string(writable.message()));
  const absl::StatusOr<remat::Graph> graph = ReadPlanGraph(options.graph);
  if (!graph.ok()) return Fail("solved", std::string(graph.status().message()));
  const absl::StatusOr<std::string> text = ReadWholeFile(options.solution);
  if (!text.ok()) return Fail("solved", std::string(text.status().message()));
  const absl::StatusOr<remat::SolverValues> solution = remat::ParseSolverValues(*text, options.solution);
  if (!solution.ok()) return Fail("solved", std::string(solution.status().message()));
  const remat::Values values = ValuesOf(*graph);
  const absl::StatusOr<remat::CheckmateModel> model = BuildCheckmate(*graph, values, *ParseSize(options.budget));
  if (!model.ok()) return Fail("solved", options.graph + ": " + std::string(model.status().message()));
  const absl::StatusOr<remat::Schedule> schedule = ScheduleOfSolution(*graph, values, *model, *solution);
  if (!schedule.ok()) return Fail("solved", options.solution + ": " + std::string(schedule.status().message()));
  if (const std::string fault = Verify(*graph, *schedule); !fault.empty())
    return Fail("solved", options.solution + ": no plan: " + fault, 1);
  const absl::StatusOr<remat::Outcome> outcome = Simulate(*graph, *schedule);
  if (!outcome.ok())
    return Fail("solved", options.solution + ": no plan: " + std::string(outcome.status().message()), 1);
  if (!options.out.empty()) {
    const absl::Status written = WriteFile(options.out, FormatScheduleJson(*graph, *schedule));
    if (!written.ok()) return Fail("solved", std::string(written.message()));
  }
  printf("%s%s: %s again, %.3f ms, live at once %lld (%s)\n", solution->status.c_str(),
         solution->optimal ? "" : " (not proved)",
         CountText(static_cast<uint64_t>(outcome->runs_again), "operator").c_str(),
         static_cast<double>(outcome->time) / 1e6, static_cast<long long>(outcome->live_peak),
         FormatSize(static_cast<uint64_t>(outcome->live_peak)).c_str());
  return 0;
}

}  // namespace hotpack
