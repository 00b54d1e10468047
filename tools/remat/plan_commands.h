// Common parts of the subcommands of `hotpack plan`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/remat_plan.h"
#include "tools/remat/plan_command.h"

namespace hotpack {

// Reads a graph as JSON, an operator log of the DTR prototype or a recording with launches, else a generator's
// specification. Errors are one line: InvalidArgument, or the reader's.
absl::StatusOr<remat::Graph> ReadPlanGraph(const std::string& what);

// `hotpack plan --sweep`: plans for `points` budgets, evenly from the least to what the unchanged step needs. Writes
// CSV to standard output and, with `plot`, a picture. `algorithm` auto: all that make plans of the kind of `options`.
// Returns the exit code.
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
