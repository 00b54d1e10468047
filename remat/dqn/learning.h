// Algorithm 1 of the paper: episodes of actions in the environment, with experience replay and fitted Q-iteration
// (section 4.10).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "remat/dqn/environment.h"
#include "remat/dqn/network.h"

namespace hotpack::remat {

struct LearningOptions {
  int episodes = 100;      // l
  int batch = 4;           // experiences per update
  size_t replay = 4000;    // most experiences kept, the latest ones
  double rate = 0.1;       // of the gradient descent; longer gradients are scaled to length 1
  double discount = 0.99;  // γ
  uint64_t seed = 1;
  // Checked between episodes. If it is reached, the result depends on the machine.
  int64_t time_limit_ns = INT64_MAX;
};

struct Episode {
  std::vector<AgentAction> choices;  // without doing nothing
  Nanoseconds overhead = 0;          // as the environment measures it
};

struct Learning {
  QWeights weights;
  std::optional<Episode> best;  // the cheapest episode that was won; empty: none was won
  Nanoseconds best_cost = 0;
  int episodes = 0;                    // episodes played
  std::vector<Nanoseconds> overheads;  // by episode; INT64_MAX: lost
};

// An experience (g, s_a, r, g') as node numbers and valid bits. States are computed from them with the current weights.
struct Experience {
  std::vector<bool> valid;
  int32_t current = 0;
  int32_t action = 0;
  double reward = 0;  // in units of the step's time
  bool terminal = false;
  std::vector<bool> next_valid;  // unused if `terminal`
  int32_t next_current = 0;
};

// Returns y of equation 5: the reward plus γ times the largest Q of the next valid actions. The Q of a terminal state
// is 0. `scratch`: memory for reuse.
double Target(const StateGraph& graph, const QWeights& weights, const Experience& experience, double discount,
              Embedding* scratch);

// Takes one step down the gradient of the mean of (y - Q)² (equation 4) over the experiences, with y constant. Returns
// the mean loss before the step.
double Update(const StateGraph& graph, const std::vector<const Experience*>& batch, double rate, double discount,
              QWeights* weights, Embedding* scratch);

// Returns the cost of an episode that was won, or nullopt if it is no plan. The environment is less exact than the
// judge.
using Judge = std::function<std::optional<Nanoseconds>(const Episode&)>;

// Learns from `start` (weights learnt with another sequence), or from random weights if it is null. The action is
// random if e > episode / l. Without `judge` an episode costs its overhead. The result is a function of the options, on
// any machine. O(episodes · steps · batch · nodes). Thread-safe, if each call has its own environment.
Learning Learn(Environment* environment, const LearningOptions& options, const QWeights* start = nullptr,
               const Judge& judge = nullptr);

}  // namespace hotpack::remat
