#include "remat/dqn/learning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <utility>

namespace hotpack::remat {
namespace {

int32_t NodeOf(const Sequence& sequence, AgentAction choice) {
  if (choice.deed == Deed::kNothing) return 0;
  const Absence& absence = sequence.absences[static_cast<size_t>(choice.absence)];
  return choice.deed == Deed::kOffload ? absence.offload_node : absence.remove_node;
}

double MostOf(const QWeights& weights, const Embedding& embedding, const std::vector<bool>& valid, int32_t current,
              int32_t* action) {
  double most = -INFINITY;
  for (size_t node = 0; node < valid.size(); ++node) {
    if (!valid[node]) continue;
    const double value = QValue(weights, embedding, current, static_cast<int32_t>(node));
    if (value <= most) continue;
    most = value;
    *action = static_cast<int32_t>(node);
  }
  return most;
}

class Learner {
 public:
  Learner(Environment* environment, const LearningOptions& options, const QWeights* start, const Judge& judge)
      : environment_(*environment),
        options_(options),
        judge_(judge),
        graph_(environment->sequence()),
        random_(options.seed) {
    learning_.weights = start != nullptr ? *start : DrawWeights(environment->sequence().operations.size(), &random_);
  }

  Learning Run() {
    const auto begin = std::chrono::steady_clock::now();
    for (int episode = 1; episode <= options_.episodes; ++episode) {
      Play(static_cast<double>(episode) / options_.episodes);
      ++learning_.episodes;
      if (std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count() > options_.time_limit_ns) break;
    }
    return std::move(learning_);
  }

 private:
  double Even() { return static_cast<double>(random_() >> 11) / 0x1p53; }
  // Returns the current node, or the last one at the end. No action is possible there.
  int32_t Current() const { return std::min(environment_.node(), static_cast<int32_t>(graph_.nodes()) - 1); }
  std::vector<bool> Valid(const std::vector<AgentAction>& choices) const {
    std::vector<bool> valid(static_cast<size_t>(graph_.nodes()));
    for (AgentAction choice : choices) valid[static_cast<size_t>(NodeOf(environment_.sequence(), choice))] = true;
    return valid;
  }

  void Play(double greedy) {
    environment_.Reset();
    Episode episode;
    std::vector<AgentAction> choices = environment_.Choices();
    while (!environment_.Terminal()) {
      Experience experience = {.valid = Valid(choices), .current = Current()};
      AgentAction choice;
      if (Even() > greedy) {
        choice = choices[static_cast<size_t>(random_() % choices.size())];
        experience.action = NodeOf(environment_.sequence(), choice);
      } else {
        Embed(graph_, learning_.weights, experience.valid, &embedding_);
        MostOf(learning_.weights, embedding_, experience.valid, experience.current, &experience.action);
        choice = *std::find_if(choices.begin(), choices.end(), [&](AgentAction each) {
          return NodeOf(environment_.sequence(), each) == experience.action;
        });
      }
      experience.reward = static_cast<double>(environment_.Step(choice)) /
                          static_cast<double>(std::max<Nanoseconds>(1, environment_.duration()));
      if (choice.deed != Deed::kNothing) episode.choices.push_back(choice);
      choices = environment_.Choices();
      experience.terminal = environment_.Terminal();
      experience.next_current = Current();
      if (!experience.terminal) experience.next_valid = Valid(choices);
      Remember(std::move(experience));
      UpdateFromReplay();
    }
    End(std::move(episode));
  }

  void End(Episode episode) {
    episode.overhead = environment_.overhead();
    learning_.overheads.push_back(environment_.Won() ? episode.overhead : INT64_MAX);
    if (!environment_.Won()) return;
    const std::optional<Nanoseconds> cost = judge_ ? judge_(episode) : std::optional(episode.overhead);
    if (!cost || (learning_.best && *cost >= learning_.best_cost)) return;
    learning_.best_cost = *cost;
    learning_.best = std::move(episode);
  }

  void Remember(Experience experience) {
    if (experiences_.size() < options_.replay) {
      experiences_.push_back(std::move(experience));
    } else {
      experiences_[oldest_++ % options_.replay] = std::move(experience);
    }
  }
  void UpdateFromReplay() {
    std::vector<const Experience*> batch;
    for (int i = 0; i < options_.batch; ++i)
      batch.push_back(&experiences_[static_cast<size_t>(random_() % experiences_.size())]);
    Update(graph_, batch, options_.rate, options_.discount, &learning_.weights, &embedding_);
  }

  Environment& environment_;
  const LearningOptions& options_;
  const Judge& judge_;
  const StateGraph graph_;
  std::mt19937_64 random_;
  std::vector<Experience> experiences_;
  size_t oldest_ = 0;
  Embedding embedding_;
  Learning learning_;
};

}  // namespace

double Target(const StateGraph& graph, const QWeights& weights, const Experience& experience, double discount,
              Embedding* scratch) {
  if (experience.terminal) return experience.reward;
  int32_t action = 0;
  Embed(graph, weights, experience.next_valid, scratch);
  return experience.reward +
         discount * MostOf(weights, *scratch, experience.next_valid, experience.next_current, &action);
}

double Update(const StateGraph& graph, const std::vector<const Experience*>& batch, double rate, double discount,
              QWeights* weights, Embedding* scratch) {
  QWeights gradient;
  double loss = 0;
  for (const Experience* experience : batch) {
    const double target = Target(graph, *weights, *experience, discount, scratch);
    Embed(graph, *weights, experience->valid, scratch);
    const double error = target - QValue(*weights, *scratch, experience->current, experience->action);
    loss += error * error / static_cast<double>(batch.size());
    const double slope = -2 * error / static_cast<double>(batch.size());
    AddGradient(graph, *weights, *scratch, experience->current, experience->action, slope, &gradient);
  }
  weights->all() -= rate / std::max(1.0, gradient.all().norm()) * gradient.all();
  return loss;
}

Learning Learn(Environment* environment, const LearningOptions& options, const QWeights* start, const Judge& judge) {
  return Learner(environment, options, start, judge).Run();
}

}  // namespace hotpack::remat
