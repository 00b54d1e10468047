#include "remat/baselines/fastest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {

bool Fastest::Add(Schedule schedule) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph_, schedule, machine_);
  if (!outcome.ok()) return false;
  least_ = std::min(least_, outcome->live_peak);
  if (outcome->live_peak > budget_) return false;
  const std::pair cost(outcome->time, outcome->live_peak);
  if (best_ && cost >= cost_) return true;
  cost_ = cost;
  best_ = std::move(schedule);
  return true;
}

absl::StatusOr<Schedule> Fastest::Take() {
  if (best_) return *std::move(best_);
  return absl::ResourceExhaustedError(
      absl::StrCat("no plan found for a budget of ", budget_, " bytes; the least found needs ", least_));
}

}  // namespace hotpack::remat
