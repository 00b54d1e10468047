// Plans by a deep Q-network (Chen, "GPU memory management for neural networks using deep Q-network"). It is trained for
// one graph and one budget, from random weights or from weights learnt with another graph. Each episode won in the
// environment becomes a schedule, and the simulator judges it. The fastest is the plan.
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
  const QWeights* start = nullptr;  // weights learnt with another graph; null: random weights
};

struct DqnPlan {
  Schedule schedule;
  Outcome outcome;
  QWeights weights;                    // for training with other graphs
  int episodes = 0;                    // episodes played
  int won = 0;                         // episodes won in the environment
  std::vector<Nanoseconds> overheads;  // by episode, as the environment measures it; INT64_MAX: lost
};

// Returns by gap the action that an episode chose.
std::vector<GapAction> WaysOf(const Sequence& sequence, const Values& values, const std::vector<AgentAction>& choices);

// Returns a plan whose live peak is at most `budget` bytes, or ResourceExhausted with the least live peak of all
// episodes. Recomputation may need more memory than the environment assumed. Then the limit of later episodes is lower
// by that much. Thread-safe.
absl::StatusOr<DqnPlan> PlanByDqn(const Graph& graph, const Values& values, Bytes budget,
                                  const DqnOptions& options = {});

}  // namespace hotpack::remat
