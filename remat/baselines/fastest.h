// The fastest of some schedules that fits.
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

  // True if it fits. A schedule for which the host has no room does not.
  bool Add(Schedule schedule);

  // ResourceExhausted, with the least live peak, if none fits.
  absl::StatusOr<Schedule> Take();

 private:
  const Graph& graph_;
  const Bytes budget_;
  const Machine machine_;
  std::optional<Schedule> best_;
  std::pair<Nanoseconds, Bytes> cost_;  // its time and live peak
  Bytes least_ = INT64_MAX;
};

}  // namespace hotpack::remat
