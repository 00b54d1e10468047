// What the subcommands of `hotpack plan` share.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/remat_plan.h"
#include "tools/remat/plan_command.h"

namespace hotpack {

// A graph as JSON, an operator log of the DTR prototype, or a recording with launches; else a generator's specification. InvalidArgument or what reading has said, one line.
absl::StatusOr<remat::Graph> ReadPlanGraph(const std::string& what);

// `hotpack plan --sweep`: plans for `points` budgets evenly from the least to what the step needs as it is, as CSV on
// standard output; with `plot`, as a picture too. `algorithm`: auto: all that make plans of the kind that `options`
// asks for. The exit code.
struct SweepOptions {
  std::string graph;
  std::string algorithm;
  int points = 20;
  std::string plot;  // path; empty: none
  bool force = false;
};
int SweepPlans(const SweepOptions& sweep, const remat::PlanOptions& options);

// What the subcommands do (plan_command.h). The exit code.
int RunPlan(const PlanCommandOptions& options);
int RunPlanVerify(const PlanCommandOptions& options);
int ExportPlanModel(const PlanModelOptions& options);
int ReadPlanSolution(const PlanModelOptions& options);

}  // namespace hotpack
