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
  int batch = 4;           // experiences an update
  size_t replay = 4000;    // experiences kept, the latest
  double rate = 0.1;       // of the gradient descent; a gradient longer than 1 is shortened to 1
  double discount = 0.99;  // γ
  uint64_t seed = 1;
  int64_t time_limit_ns =
      INT64_MAX;  // looked at between episodes; where it strikes, what is learnt depends on the machine
};

struct Episode {
  std::vector<AgentAction> choices;  // but for doing nothing
  Nanoseconds overhead = 0;          // by the environment
};

struct Learning {
  QWeights weights;
  std::optional<Episode> best;  // the one with the least cost of those that were won; none: none was won
  Nanoseconds best_cost = 0;
  int episodes = 0;                    // played
  std::vector<Nanoseconds> overheads;  // by episode; INT64_MAX where it was lost
};

// An experience (g, s_a, r, g') as node numbers and valid bits: states are made from them with the present weights.
struct Experience {
  std::vector<bool> valid;
  int32_t current = 0;
  int32_t action = 0;
  double reward = 0;  // in units of the step's time
  bool terminal = false;
  std::vector<bool> next_valid;  // no matter where it is terminal
  int32_t next_current = 0;
};

// y of equation 5: the reward, and γ times the largest Q of what is valid next; the terminal state's Q is 0.
// `scratch`: memory to be used again.
double Target(const StateGraph& graph, const QWeights& weights, const Experience& experience, double discount,
              Embedding* scratch);

// One step down the gradient of the mean of (y - Q)² (equation 4) over the experiences; y is a constant. The mean loss
// before it.
double Update(const StateGraph& graph, const std::vector<const Experience*>& batch, double rate, double discount,
              QWeights* weights, Embedding* scratch);

// What an episode that was won costs, or none if it is no plan after all: where the environment is less exact than what
// judges.
using Judge = std::function<std::optional<Nanoseconds>(const Episode&)>;

// Learns from `start`, if it is given (learnt with another sequence), else from drawn weights. A random action is taken
// if e > episode / l. Without `judge` an episode costs its overhead. The same for the same options, on any machine.
// O(episodes · steps · batch · nodes). Thread-safe, with an environment of its own each.
Learning Learn(Environment* environment, const LearningOptions& options, const QWeights* start = nullptr,
               const Judge& judge = nullptr);

}  // namespace hotpack::remat
