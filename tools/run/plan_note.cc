#include "tools/run/plan_note.h"

#include <filesystem>

#include "runtime/persist/plan_file.h"
#include "tools/cli/size_text.h"

namespace hotpack {
namespace {

bool HasPlan(const std::string& path, SavedPlan* plan) {
  return ReadPlanFile(path.c_str(), plan) == PlanFileStatus::kOk;
}

}  // namespace

PlanBefore ReadPlanBefore(const RunOptions& options) {
  PlanBefore before;
  before.compared = !options.plan.empty() && options.plan.find('%') == std::string::npos;
  SavedPlan plan;
  if (!before.compared || !HasPlan(options.plan, &plan)) return before;
  before.present = true;
  before.held_without = plan.held_without_bytes;
  before.live_without = plan.live_without_bytes;
  return before;
}

void KeepPlanFigures(const RunOptions& options, const PlanBefore& before, const hotpack_stats& stats) {
  SavedPlan plan;
  if (!before.compared || !HasPlan(options.plan, &plan)) return;
  const uint64_t held = before.present ? before.held_without : stats.reserved_peak;
  if (held == 0 || plan.held_without_bytes == held) return;
  plan.held_without_bytes = held;
  plan.live_without_bytes = before.present ? before.live_without : stats.live_peak;
  // Without these figures the plan is as good: an error is no fault of the run.
  WritePlanFile(options.plan.c_str(), plan);
}

std::string PlanNote(const RunOptions& options, const PlanBefore& before, const hotpack_stats& stats) {
  if (!before.compared || stats.requests == 0) return "";
  const bool more = before.held_without > 0 && stats.reserved_peak > before.held_without;
  if (more && stats.live_peak <= before.live_without) {
    return "; without the saved plan it held less, " + FormatSize(before.held_without) + ": leave --plan out";
  }
  std::error_code error;
  if (std::filesystem::exists(options.plan, error)) return "";
  return std::string("; no plan was saved") +
         (stats.envelope_entries > 0 ? ": places of iterations that differ are not kept (docs/envelope.md)" : "");
}

}  // namespace hotpack
