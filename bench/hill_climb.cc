#include "bench/hill_climb.h"

#include <random>
#include <utility>
#include <vector>

#include "bench/conflicts.h"
#include "packer/timeline.h"

namespace hotpack::bench {
namespace {

constexpr int kAttempts = 500;

class HillClimb {
 public:
  explicit HillClimb(const Instance& instance)
      : timeline_(MakeTimeline(instance)),
        conflicts_(ListConflicts(instance)),
        order_(OrderBySize(instance)),
        places_(order_.size()) {
    for (size_t i = 0; i < order_.size(); ++i) places_[static_cast<size_t>(order_[i])] = i;
  }

  Placement Run() {
    Placement kept = PlaceLowest(timeline_, order_);
    for (int attempt = 1; attempt < kAttempts; ++attempt) {
      const auto [a, b] = ChoosePair(kept);
      if (a == b) continue;
      Swap(a, b);
      Placement next = PlaceLowest(timeline_, order_);
      if (next.height < kept.height || Draw(100) < Chance(next.height, kept.height, attempt)) {
        kept = std::move(next);
      } else {
        Swap(a, b);
      }
    }
    return kept;
  }

 private:
  uint64_t Draw(uint64_t below) { return random_() % below; }

  // Returns the chance out of 100: half of the height's growth in per cent, divided by the attempts so far.
  static uint64_t Chance(Bytes next, Bytes kept, int attempt) {
    return next <= kept ? 0 : static_cast<uint64_t>(50 * (next - kept) / next / attempt);
  }

  void Swap(int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    std::swap(order_[places_[i]], order_[places_[j]]);
    std::swap(places_[i], places_[j]);
  }

  bool Before(int32_t a, int32_t b) const { return places_[static_cast<size_t>(a)] < places_[static_cast<size_t>(b)]; }

  // Draws two blocks to swap. Twice the same: there are none.
  std::pair<int32_t, int32_t> ChoosePair(const Placement& placement) {
    std::vector<int32_t> topmost, first, second;
    for (int32_t block : order_) {
      const auto b = static_cast<size_t>(block);
      if (placement.offsets[b] + timeline_.sizes[b] == placement.height) topmost.push_back(block);
    }
    const int32_t top = topmost[Draw(topmost.size())];
    for (int32_t one : conflicts_[static_cast<size_t>(top)]) {
      if (Before(one, top)) first.push_back(one);
      for (int32_t other : conflicts_[static_cast<size_t>(one)]) {
        if (Before(other, one)) second.push_back(other);
      }
    }
    if (first.empty()) return {0, 0};
    const int32_t a = first[Draw(first.size())];
    constexpr int kDraws = 100;  // there may be no other pair
    for (int i = 0; i < kDraws; ++i) {
      const std::vector<int32_t>& from = !second.empty() && Draw(100) > 25 ? second : first;
      const int32_t b = from[Draw(from.size())];
      if (b != a) return {a, b};
    }
    return {a, a};
  }

  const Timeline timeline_;
  const std::vector<std::vector<int32_t>> conflicts_;
  std::vector<int32_t> order_;
  std::vector<size_t> places_;  // by block, in order_
  std::mt19937_64 random_{1};
};

}  // namespace

Placement PackByHillClimb(const Instance& instance) { return HillClimb(instance).Run(); }

}  // namespace hotpack::bench
