#include "packer/exact_solver.h"

#include <algorithm>
#include <cmath>

#include "packer/bounds.h"
#include "packer/keys.h"

namespace hotpack {
namespace {

constexpr int64_t kShortestRun = 20;  // dead ends

}  // namespace

bool ExactSolver::Takes(const Timeline& timeline, int64_t most_pairs) {
  return CountMembers(timeline) <= most_pairs && CountPairs(timeline) <= most_pairs;
}

// Long blocks rise with nearly every placed block, so each node visits a considerable share of all members.
int64_t ExactSolver::WorkOfOneDescent(const Timeline& timeline) {
  return timeline.blocks() * CountMembers(timeline) / 8;
}

ExactSolver::ExactSolver(const Timeline& timeline, uint64_t seed, int index, SharedBest* best, StopCheck* stop)
    : timeline_(timeline),
      best_(*best),
      cliques_(MakeCliques(timeline, stop)),
      search_(timeline, cliques_, stop),
      random_(seed * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019 * static_cast<uint64_t>(index + 1)),
      unit_(HeightUnit(timeline)) {
  const std::vector<Bytes> loads = LargestLoadsMet(timeline);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    features_.push_back({std::log(static_cast<double>(loads[block])),
                         std::log(static_cast<double>(timeline.sizes[block])),
                         std::log(static_cast<double>(cliques_.CliquesOf(block).size()))});
  }
  // The first thread begins with the pure orders, the others with noise.
  for (Level& level : levels_) level.round = index;
}

// Returns one of three heights: the target, half way down to it, slightly less than the best. If only the first counts,
// always returns that.
Bytes ExactSolver::HeightOf(size_t level) const {
  const Bytes target = best_.target();
  if (best_.decide()) return target;
  const Bytes below = best_.height() - 1;
  const Bytes room = below - target;
  const Bytes height = level == 0 ? target : level == 1 ? target + room / 2 : below - room / 8;
  return std::max(target, height / unit_ * unit_);
}

void ExactSolver::Run(int64_t work, StopCheck* stop) {
  const int64_t end = stop->total_work() + work;
  while (stop->total_work() < end && !best_.done() && !stop->stopped()) {
    static constexpr size_t kTurns[] = {0, 1, 2, 1};
    const size_t level = kTurns[next_turn_];
    next_turn_ = (next_turn_ + 1) % std::size(kTurns);
    RunOnce(&levels_[level], HeightOf(level), end, stop);
  }
}

void ExactSolver::RunOnce(Level* level, Bytes height, int64_t most_work, StopCheck* stop) {
  // Large blocks first; large areas first; long ones first; those at the peak first.
  static constexpr Order kOrders[] = {{0, 1, 1e-3}, {0, 1, 1.001}, {0, 1e-3, 1}, {50, 1e-6, 1e-3}};
  constexpr double kNoise = 0.05;
  const auto doublings = static_cast<double>(level->round % 5);
  Rank(kOrders[level->order], level->round == 0 ? 0 : kNoise * std::exp2(doublings));
  const ExactSearch::Outcome outcome =
      search_.Run(height, ranks_, kShortestRun * level->luby_v, most_work, stop, &placement_.offsets);
  // An interrupted run does not count: it is repeated when turns are longer.
  if (outcome == ExactSearch::Outcome::kStopped && stop->total_work() >= most_work) return;
  if (outcome == ExactSearch::Outcome::kNone) best_.RaiseLower((height / unit_ + 1) * unit_);
  if (outcome == ExactSearch::Outcome::kFound) {
    placement_.height = 0;
    for (int32_t block = 0; block < timeline_.blocks(); ++block) {
      placement_.height = std::max(placement_.height, placement_.offsets[block] + timeline_.sizes[block]);
    }
    best_.Offer(&placement_, "exact");
  }
  if (++level->order < std::size(kOrders)) return;
  level->order = 0;
  ++level->round;
  if ((level->luby_u & -level->luby_u) == level->luby_v) {
    ++level->luby_u;
    level->luby_v = 1;
  } else {
    level->luby_v *= 2;
  }
}

void ExactSolver::Rank(const Order& order, double noise) {
  scores_.resize(features_.size());
  for (size_t block = 0; block < features_.size(); ++block) {
    const auto& [load, size, width] = features_[block];
    scores_[block] = order.load * load + order.size * size + order.width * width;
    if (noise > 0) scores_[block] += noise * (random_.Unit() - 0.5);
  }
  SortByScore(scores_, &order_, &ranks_);
}

}  // namespace hotpack
