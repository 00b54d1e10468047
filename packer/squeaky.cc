#include "packer/squeaky.h"

#include <algorithm>

#include "packer/keys.h"

namespace hotpack {
namespace {

// Scores are natural logarithms of sizes and lifetimes (packer/keys.h): a step of 0.1 lets a block overtake others that
// are up to a tenth larger. Tuned on recorded iterations, and on random and generated instances of 1,000 to 100,000
// blocks.
constexpr float kFirstStep = 0.1F;
constexpr float kSmallGrowth = 1.15F;
constexpr float kLargestOfSmall = 0.3F;  // required by recorded iterations
constexpr float kLargeGrowth = 1.1F;
constexpr float kLargestOfLarge = 1.0F;  // random instances do better with larger steps
constexpr double kFirstAim = 0.5;
// A dive over so many blocks takes long, and there will be few dives: prefer many small successes.
constexpr int32_t kManyBlocks = 50'000;
constexpr double kFirstAimForMany = 0.95;
constexpr double kAimDecay = 0.97;  // of the distance from the best height, per failure

}  // namespace

SqueakyWheel::SqueakyWheel(const Timeline& timeline, const ArcIndex& index, Skyline* skyline, uint64_t seed)
    : timeline_(timeline), index_(index), skyline_(*skyline), random_(seed) {}

void SqueakyWheel::Begin(const std::vector<double>& scores, Steps kind) {
  step_growth_ = kind == Steps::kSmall ? kSmallGrowth : kLargeGrowth;
  largest_step_ = kind == Steps::kSmall ? kLargestOfSmall : kLargestOfLarge;
  scores_ = scores;
  steps_.assign(scores.size(), kind == Steps::kSmall ? kFirstStep : 2 * kFirstStep);
  aim_ = timeline_.blocks() < kManyBlocks ? kFirstAim : kFirstAimForMany;
  dives_ = 0;
  SortByScore(scores_, &order_, &ranks_);
}

Bytes SqueakyWheel::Aim(Bytes lower_bound, Bytes height) {
  if (dives_ % (timeline_.blocks() < kManyBlocks ? 2 : 8) == 0) return lower_bound;
  return lower_bound + static_cast<Bytes>(static_cast<double>(height - 1 - lower_bound) * aim_);
}

bool SqueakyWheel::Dive(Bytes lower_bound, Bytes height, StopCheck* stop, Placement* placement) {
  const Bytes highest = Aim(lower_bound, height);
  ++dives_;
  if (skyline_.Dive(ranks_, highest, stop, &placement->offsets, &placement->height, nullptr,
                    Skyline::Foresight::kValleys)) {
    aim_ = std::max(0.0, 2 * aim_ - 1);
    return true;
  }
  if (stop->stopped()) return false;
  aim_ = 1 - (1 - aim_) * kAimDecay;
  CollectBlamed();
  RaiseBlamed();
  (*stop)(timeline_.blocks());
  return false;
}

// If no slot is to blame (alignments or pinned blocks are in the way), blames some random blocks.
void SqueakyWheel::CollectBlamed() {
  blamed_.clear();
  if (const int32_t slot = skyline_.stuck_slot(); slot >= 0) {
    index_.ForEachAt(slot, [&](int32_t block) {
      if (skyline_.IsWaiting(block)) blamed_.push_back(block);
    });
  }
  if (!blamed_.empty()) return;
  const int64_t some = 1 + timeline_.blocks() / 16;
  for (int64_t i = 0; i < some; ++i) blamed_.push_back(static_cast<int32_t>(random_.Below(timeline_.blocks())));
  std::sort(blamed_.begin(), blamed_.end());
  blamed_.erase(std::unique(blamed_.begin(), blamed_.end()), blamed_.end());
}

void SqueakyWheel::RaiseBlamed() {
  for (int32_t block : blamed_) {
    scores_[block] += steps_[block] * (0.5 + random_.Unit());
    steps_[block] = std::min(largest_step_, steps_[block] * step_growth_);
  }
  SortAgain(scores_, &blamed_, &order_, &ranks_);
}

}  // namespace hotpack
