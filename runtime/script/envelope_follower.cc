#include "runtime/script/envelope_follower.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hotpack {
namespace {

constexpr size_t kBeam = 24;
constexpr double kStart = 60;     // the score of a position that is known
constexpr double kMargin = 6;     // hypotheses this far below the best one do not answer
constexpr double kLost = 40;      // ... are given up
constexpr int kAheadEntries = 3;  // that a hypothesis may skip
constexpr int kPossible = 2;      // ... at which a successor may be meant
constexpr int kBetweenSizes = 2, kOtherSize = -5;
constexpr int kBusyCost = 10;
constexpr int kStayCost = 4, kSkipCost = 3, kSearchCost = 5;
constexpr size_t kCandidates = 400;  // that it looks at
constexpr double kUnseenShare = 0.02;
constexpr double kBranchPrior = 0.7;

}  // namespace

void EnvelopeFollower::Start(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live) {
  beam_.clear();
  Continue(std::move(script), live);
}

void EnvelopeFollower::Continue(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live) {
  script_ = std::move(script);
  steps_ = script_->steps.data();
  live_.assign(script_->entries.size(), 0);
  for (const uint32_t entry : live) ++live_[entry];
  if (beam_.empty() && script_->last_entry != kNone) beam_.push_back({script_->last_entry, kStart, script_->branch});
}

void EnvelopeFollower::Stop() {
  script_.reset();
  steps_ = nullptr;
  beam_.clear();
  live_.clear();
  past_count_ = 0;
}

int EnvelopeFollower::SizeScore(uint32_t entry, uint32_t units) const {
  const EnvelopeStep& step = steps_[entry];
  if (units == step.last_units) return kSeenSize;
  if (!step.fixed && units <= step.max_units && units >= step.min_units) {  // it may have been seen
    const uint32_t* size = script_->sizes.data() + step.first_size;
    for (uint32_t left = step.sizes; left > 1;) {
      const uint32_t half = left / 2;
      size += size[half - 1] < units ? half : 0;
      left -= half;
    }
    return step.sizes > 0 && *size == units ? kSeenSize : kBetweenSizes;
  }
  if (step.fixed) return kOtherSize;
  const double ratio = static_cast<double>(units) / (units > step.max_units ? step.max_units : step.min_units);
  return ratio >= 0.5 && ratio <= 1.6 ? 1 : ratio > 0.2 && ratio < 4 ? -1 : -4;
}

// How well the request fits the entry, in itself.
int EnvelopeFollower::Score(uint32_t entry, const RequestSign& sign) const {
  const EnvelopeStep& step = steps_[entry];
  const uint64_t* const contexts = script_->contexts.data() + step.first_context;
  int by_context = kSeenContext;
  for (uint32_t i = 0; i == step.contexts || contexts[i] != sign.context; ++i) {
    if (i < step.contexts) continue;
    by_context = script_->entries[entry].HasReleases(sign.releases) ? 0 : -3;
    break;
  }
  return SizeScore(entry, sign.units) + by_context - (Busy(entry) ? kBusyCost : 0);
}

// Of the only likely position's successors: the one that the request looks like as it always did, if no other one may
// be meant.
bool EnvelopeFollower::Chooses(const RequestSign& sign, Hypothesis* next) const {
  if (beam_.empty() || (beam_.size() > 1 && beam_[0].score - beam_[1].score < kMargin)) return false;
  const Hypothesis& from = beam_[0];
  const std::vector<EnvelopeEntry::Successor>& successors = script_->entries[from.entry].successors;
  const int enough = successors.size() == 1 ? kFits : kSeenSize + kSeenContext;
  uint32_t entry = kNone;
  int fit = 0;
  for (const auto& successor : successors) {
    const int score = Score(successor.entry, sign);
    if (score < kPossible) continue;
    if (score < enough || entry != kNone) return false;
    entry = successor.entry;
    fit = score;
  }
  if (entry == kNone) return false;
  const uint32_t branch = successors.size() == 1 ? from.branch : script_->NextBranch(from.entry, entry, from.branch);
  *next = {entry, from.score * kDecay + fit, branch};
  return true;
}

void EnvelopeFollower::Spread(const Hypothesis& from, const RequestSign& sign, int* best) {
  const EnvelopeEntry& at = script_->entries[from.entry];
  const auto in_branch = [&](const EnvelopeEntry::Successor& successor) {
    for (const auto& [branch, weight] : successor.by_branch) {
      if (branch == from.branch) return static_cast<double>(weight);
    }
    return 0.0;
  };
  double all = 0, branch = 0;
  for (const auto& successor : at.successors) {
    all += static_cast<double>(successor.weight);
    branch += in_branch(successor);
  }
  int best_here = -kBusyCost;
  for (const auto& successor : at.successors) {
    const int fit = Score(successor.entry, sign);
    best_here = std::max(best_here, fit);
    const double share = static_cast<double>(successor.weight) / all;
    const double chance = (in_branch(successor) + kBranchPrior * share) / (branch + kBranchPrior);
    next_.push_back({successor.entry, from.score * kDecay + fit + std::log2(std::max(kUnseenShare, chance)),
                     script_->NextBranch(from.entry, successor.entry, from.branch)});
  }
  *best = std::max(*best, best_here);
  if (best_here >= kFits) return;
  const auto& order = script_->order;
  const size_t position = script_->positions[from.entry];
  for (int k = 1; k <= kAheadEntries; ++k) {
    const uint32_t entry = order[(position + static_cast<size_t>(k)) % order.size()];
    const int fit = Score(entry, sign);
    if (fit >= kSeenContext) next_.push_back({entry, from.score * kDecay + fit - kSkipCost - k, from.branch});
  }
  next_.push_back({from.entry, from.score * kDecay - kStayCost, from.branch});  // a request of no entry
}

// Adds all entries that fit, as likely as the requests before fit the entries before.
void EnvelopeFollower::Search(const RequestSign& sign) {
  std::vector<uint32_t> candidates;
  for (const auto* index : {&script_->by_context, &script_->by_units}) {
    const auto range = index->equal_range(index == &script_->by_context ? sign.context : sign.units);
    for (auto it = range.first; it != range.second && candidates.size() < kCandidates; ++it) {
      candidates.push_back(it->second);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const auto& order = script_->order;
  for (const uint32_t entry : candidates) {
    const int fit = Score(entry, sign);
    if (fit < kFits) continue;
    double score = fit, weight = 1;
    size_t position = script_->positions[entry];
    for (size_t back = 1; back <= std::min(past_count_, kPast) && position > 0; ++back) {
      weight *= kDecay;
      score += weight * std::max(-kStayCost, Score(order[--position], Past(back)));
    }
    next_.push_back({entry, score - kSearchCost, 0});
  }
}

// Keeps the best hypothesis of each entry, and of those the best kBeam that may still win.
void EnvelopeFollower::Keep() {
  std::sort(next_.begin(), next_.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.entry != b.entry ? a.entry < b.entry : a.score > b.score;
  });
  next_.erase(std::unique(next_.begin(), next_.end(),
                          [](const Hypothesis& a, const Hypothesis& b) { return a.entry == b.entry; }),
              next_.end());
  std::sort(next_.begin(), next_.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.score != b.score ? a.score > b.score : a.entry < b.entry;
  });
  if (next_.size() > kBeam) next_.resize(kBeam);
  while (next_.size() > 1 && next_.back().score < next_.front().score - kLost) next_.pop_back();
  beam_.swap(next_);
}

std::vector<uint32_t> EnvelopeFollower::Alternatives() const {
  std::vector<uint32_t> entries;
  if (past_count_ == 0 || script_ == nullptr) return entries;
  const uint32_t units = Past(1).units;
  const auto add = [&](uint32_t entry) {
    if (entries.size() >= kAlternatives || Busy(entry)) return;
    if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
  };
  for (const Hypothesis& each : beam_) {
    if (SizeScore(each.entry, units) >= 1) add(each.entry);
  }
  const auto range = script_->by_units.equal_range(units);
  for (auto it = range.first; it != range.second; ++it) add(it->second);
  return entries;
}

uint32_t EnvelopeFollower::Next(const RequestSign& sign) {
  if (script_ == nullptr || script_->entries.empty()) return kNone;
  if (Hypothesis next; Expects(sign, &next)) {
    Follow(next, sign);
    return next.entry;
  }
  ++figures_.beam;
  next_.clear();
  int best = -kBusyCost;
  for (const Hypothesis& from : beam_) Spread(from, sign, &best);
  if (best < kFits) {
    ++figures_.searches;
    Search(sign);
  }
  Keep();
  Remember(sign);
  for (const Hypothesis& each : beam_) {
    if (each.score < beam_[0].score - kMargin) break;
    if (Busy(each.entry)) continue;
    if (Score(each.entry, sign) >= 1 || SizeScore(each.entry, sign.units) >= 1) return each.entry;
  }
  return kNone;
}

}  // namespace hotpack
