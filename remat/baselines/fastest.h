// Keeps the fastest of several schedules that fits a budget. Not thread-safe.
#pragma once

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"

namespace hotpack::remat {

class Fastest {
 public:
  Fastest(const Graph& graph, Bytes budget, const Machine& machine)
      : graph_(graph), budget_(budget), machine_(machine) {}

  // Adds a schedule and returns whether it fits. A schedule that exceeds the host's memory does not fit.
  bool Add(Schedule schedule);

  // Returns the fastest schedule, or ResourceExhausted with the least live peak if none fits.
  absl::StatusOr<Schedule> Take();

 private:
  const Graph& graph_;
  const Bytes budget_;
  const Machine machine_;
  std::optional<Schedule> best_;
  std::pair<Nanoseconds, Bytes> cost_;  // time and live peak of `best_`
  Bytes least_ = INT64_MAX;
};

}  // namespace hotpack::remat
