// Common parts of the subcommands of `hotpack plan`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/remat_plan.h"
#include "tools/cli/commands.h"

namespace hotpack {

inline constexpr const char* kPlanGraphHelp =
    "A graph as JSON (docs/planner.md), an operator log of the DTR prototype, a recording with launches, or a network "
    "such as "
    "resnet:50,batch=32 (--list-generators)";

// Reads a file of any of these formats, else a generator's specification. Errors are one line: InvalidArgument, or the
// reader's.
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

void AddPlanExportCommand(CLI::App* plan, int* exit_code);

}  // namespace hotpack
