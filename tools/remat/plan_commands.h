// Common parts of the subcommands of `hotpack plan`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/remat_plan.h"
#include "tools/remat/plan_command.h"

namespace hotpack {

// Reads a graph as JSON, an operator log of the DTR prototype or a recording with launches, else a generator's
// specification. Errors are one line: InvalidArgument, or the reader's.
absl::StatusOr<remat::Graph> ReadPlanGraph(const std::string& what);

// A graph to plan for.
struct PlanGraph {
  remat::Graph program;   // as it was read
  remat::Graph graph;     // with its updates in slices
  Bytes slice_bytes = 0;  // of remat::SliceUpdates(); 0: no slices
  std::vector<std::vector<remat::StorageId>> slices;
  size_t host_slices = 0;  // whose optimizer state is on the host between steps; of an update without slices: 1
};

// Returns the graph with its optimizers' updates in about `count` slices. 0: the updates are left whole.
PlanGraph InSlices(remat::Graph program, int count);

// `hotpack plan --sweep`: plans for `points` budgets, evenly from the least to what the unchanged step needs. Writes
// CSV to standard output and, with `plot`, a picture. `algorithm` auto: all that make plans of the kind of `options`.
// Returns the exit code.
struct SweepOptions {
  std::string graph;
  std::string algorithm;
  int points = 20;
  std::string plot;  // path; empty: none
  int slices = 0;    // of InSlices()
  bool force = false;
};
int SweepPlans(const SweepOptions& sweep, const remat::PlanOptions& options);

// What the subcommands do (plan_command.h). The exit code.
int RunPlan(const PlanCommandOptions& options);
int RunPlanVerify(const PlanCommandOptions& options);
int ExportPlanModel(const PlanModelOptions& options);
int ReadPlanSolution(const PlanModelOptions& options);

}  // namespace hotpack
