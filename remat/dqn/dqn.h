// Plans by a deep Q-network (Chen, "GPU memory management for neural networks using deep Q-network"): trained for one
// graph and one budget, from weights drawn or learnt with another graph. Every episode that the environment says is won
// is made a schedule and judged by the simulator; the fastest is the plan.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"
#include "remat/dqn/learning.h"

namespace hotpack::remat {

struct DqnOptions {
  LearningOptions learning;
  Machine machine = {};
  const QWeights* start = nullptr;  // learnt with another graph
};

struct DqnPlan {
  Schedule schedule;
  Outcome outcome;
  QWeights weights;                    // for other graphs
  int episodes = 0;                    // played
  int won = 0;                         // by the environment
  std::vector<Nanoseconds> overheads;  // by episode and by the environment; INT64_MAX where it was lost
};

// What an episode chose, by gap.
std::vector<GapAction> WaysOf(const Sequence& sequence, const Values& values, const std::vector<AgentAction>& choices);

// A plan whose live peak is at most `budget` bytes. Where what is made again takes more memory than the environment has
// seen, the limit of the episodes that follow is lower by that much. ResourceExhausted with the least live peak of all
// episodes. Thread-safe.
absl::StatusOr<DqnPlan> PlanByDqn(const Graph& graph, const Values& values, Bytes budget,
                                  const DqnOptions& options = {});

}  // namespace hotpack::remat
