#include "runtime/script/envelope_follower.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace hotpack {
namespace {

constexpr double kStart = 60;     // the score of a position that is known
constexpr double kMargin = 6;     // hypotheses this far below the best one do not answer
constexpr double kLost = 40;      // ... are given up
constexpr int kAheadEntries = 3;  // that a hypothesis may skip
constexpr int kPossible = 2;      // ... at which a successor may be meant
constexpr int kBetweenSizes = 2, kOtherSize = -5;
constexpr int kBusyCost = 10;
constexpr int kStayCost = 4, kSkipCost = 3, kSearchCost = 5;
constexpr size_t kCandidates = 400;  // that it looks at

}  // namespace

void EnvelopeFollower::Start(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live) {
  beam_size_ = 0;
  Continue(std::move(script), live);
}

void EnvelopeFollower::Continue(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live) {
  script_ = std::move(script);
  steps_ = script_->steps.data();
  live_.assign(script_->entries.size(), 0);
  slots_.resize(script_->entries.size());
  for (const uint32_t entry : live) ++live_[entry];
  if (beam_size_ > 0 || script_->last_entry == kNone) return;
  beam_[0] = {script_->last_entry, script_->branch, kStart};
  beam_size_ = 1;
}

void EnvelopeFollower::Stop() {
  script_.reset();
  steps_ = nullptr;
  beam_size_ = 0;
  live_.clear();
  past_count_ = 0;
}

int EnvelopeFollower::SizeScore(const EnvelopeStep& step, uint32_t units) const {
  if (units == step.last_units) return kSeenSize;
  if (step.fixed) return kOtherSize;
  if (units <= step.max_units && units >= step.min_units) {  // it may have been seen
    if ((step.sizes_seen & EnvelopeStep::Bit(units)) == 0) return kBetweenSizes;
    const uint32_t* size = script_->sizes.data() + step.first_size;
    for (uint32_t left = step.sizes; left > 1;) {
      const uint32_t half = left / 2;
      size += size[half - 1] < units ? half : 0;
      left -= half;
    }
    return *size == units ? kSeenSize : kBetweenSizes;
  }
  // Within 0.5 ... 1.6 times the nearest size, or 0.2 ... 4 times.
  const uint64_t asked = units, nearest = units > step.max_units ? step.max_units : step.min_units;
  if (2 * asked >= nearest && 5 * asked <= 8 * nearest) return 1;
  return 5 * asked > nearest && asked < 4 * nearest ? -1 : -4;
}

// Of a context that is not the entry's last new one.
int EnvelopeFollower::ContextScore(const EnvelopeStep& step, const RequestSign& sign) const {
  if ((step.contexts_seen & EnvelopeStep::Bit(sign.context)) != 0) {
    const uint64_t* const contexts = script_->contexts.data() + step.first_context;
    if (std::find(contexts, contexts + step.contexts, sign.context) != contexts + step.contexts) return kSeenContext;
  }
  const uint32_t* const releases = script_->releases.data() + step.first_release;
  return std::find(releases, releases + step.releases, sign.releases) != releases + step.releases ? 0 : -3;
}

// How well the request fits the entry, in itself.
inline int EnvelopeFollower::Score(uint32_t entry, const RequestSign& sign) const {
  const EnvelopeStep& step = steps_[entry];
  const int by_size = sign.units == step.last_units ? kSeenSize : SizeScore(step, sign.units);
  const int by_context = sign.context == step.context ? kSeenContext : ContextScore(step, sign);
  return by_size + by_context - (Busy(entry) ? kBusyCost : 0);
}

// Of the only likely position's successors: the one that the request looks like as it always did, if no other one may
// be meant.
bool EnvelopeFollower::Chooses(const RequestSign& sign, Hypothesis* next) const {
  if (beam_size_ == 0 || (beam_size_ > 1 && beam_[0].score - beam_[1].score < kMargin)) return false;
  const Hypothesis& from = beam_[0];
  const EnvelopeFork& fork = script_->forks[from.entry];
  const EnvelopeChoice* const choices = script_->choices.data() + fork.first_choice;
  const int enough = fork.choices == 1 ? kFits : kSeenSize + kSeenContext;
  const EnvelopeChoice* chosen = nullptr;
  int fit = 0;
  for (const EnvelopeChoice* choice = choices; choice != choices + fork.choices; ++choice) {
    const int score = Score(choice->entry, sign);
    if (score < kPossible) continue;
    if (score < enough || chosen != nullptr) return false;
    chosen = choice;
    fit = score;
  }
  if (chosen == nullptr) return false;
  *next = {chosen->entry, EnvelopeScript::NextBranch(fork, *chosen, from.branch), from.score * kDecay + fit};
  return true;
}

// Adds a hypothesis to next_. Of each entry, the best one is kept. Lost ones are left out.
inline void EnvelopeFollower::Offer(uint32_t entry, double score, uint32_t branch) {
  if (score < best_ - kLost) return;
  best_ = std::max(best_, score);
  uint32_t& slot = slots_[entry];
  if (slot >= next_.size() || next_[slot].entry != entry) {
    slot = static_cast<uint32_t>(next_.size());
    next_.push_back({entry, branch, score});
  } else if (score > next_[slot].score) {
    next_[slot] = {entry, branch, score};
  }
}

// Adds where the hypothesis may lead. Returns how well the best successor fits.
int EnvelopeFollower::Spread(const Hypothesis& from, const RequestSign& sign) {
  const EnvelopeFork& fork = script_->forks[from.entry];
  const EnvelopeChoice* const choices = script_->choices.data() + fork.first_choice;
  const uint32_t* const branches = script_->branches.data() + fork.first_branch;
  const auto row = static_cast<uint32_t>(std::find(branches, branches + fork.branches, from.branch) - branches);
  const double* const chances =
      row < fork.branches ? script_->chances.data() + fork.first_chance + size_t{row} * fork.choices : nullptr;
  const double before = from.score * kDecay;
  int best_here = -kBusyCost;
  for (uint32_t i = 0; i < fork.choices; ++i) {
    const EnvelopeChoice& choice = choices[i];
    const int fit = Score(choice.entry, sign);
    best_here = std::max(best_here, fit);
    const double chance = chances != nullptr ? chances[i] : choice.chance;
    Offer(choice.entry, before + fit + chance, EnvelopeScript::NextBranch(fork, choice, from.branch));
  }
  if (best_here >= kFits) return best_here;
  const auto& order = script_->order;
  size_t position = script_->positions[from.entry];
  for (int k = 1; k <= kAheadEntries; ++k) {
    if (++position == order.size()) position = 0;
    const uint32_t entry = order[position];
    const int fit = Score(entry, sign);
    if (fit >= kSeenContext) Offer(entry, before + fit - kSkipCost - k, from.branch);
  }
  Offer(from.entry, before - kStayCost, from.branch);  // a request of no entry
  return best_here;
}

// Adds all entries that fit, as likely as the requests before fit the entries before.
void EnvelopeFollower::Search(const RequestSign& sign) {
  candidates_.clear();
  for (const auto& entries : {script_->by_context.Find(sign.context), script_->by_units.Find(sign.units)}) {
    const size_t count = std::min(entries.size(), kCandidates - candidates_.size());
    candidates_.insert(candidates_.end(), entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
  }
  const size_t past = std::min<size_t>(past_count_, kPast);
  std::array<double, kPast + 1> weights, most;  // of the request so many before; the most that those further back add
  weights[0] = 1;
  for (size_t back = 1; back <= past; ++back) weights[back] = weights[back - 1] * kDecay;
  most[past] = 0;
  for (size_t back = past; back > 0; --back) most[back - 1] = most[back] + weights[back] * (kSeenSize + kSeenContext);
  constexpr double kRounding = 1e-6;
  const auto& order = script_->order;
  for (const uint32_t entry : candidates_) {
    const int fit = Score(entry, sign);
    if (fit < kFits) continue;
    double score = fit;
    size_t position = script_->positions[entry];
    const double needed = best_ - kLost + kSearchCost - kRounding;
    bool lost = false;
    for (size_t back = 1; back <= past && position > 0 && !lost; ++back) {
      score += weights[back] * std::max(-kStayCost, Score(order[--position], Past(back)));
      lost = score + most[back] < needed;
    }
    if (!lost) Offer(entry, score - kSearchCost, 0);
  }
}

// Keeps the best kBeam hypotheses that may still win.
void EnvelopeFollower::Keep() {
  const auto better = [](const Hypothesis& a, const Hypothesis& b) {
    return a.score != b.score ? a.score > b.score : a.entry < b.entry;
  };
  beam_size_ = 0;
  for (const Hypothesis& each : next_) {
    if (each.score < best_ - kLost) continue;
    if (beam_size_ == kBeam && !better(each, beam_[kBeam - 1])) continue;
    size_t at = beam_size_ < kBeam ? beam_size_++ : kBeam - 1;
    for (; at > 0 && better(each, beam_[at - 1]); --at) beam_[at] = beam_[at - 1];
    beam_[at] = each;
  }
}

std::vector<uint32_t> EnvelopeFollower::Alternatives() {
  std::vector<uint32_t> entries;
  ForEachAlternative([&](uint32_t entry) {
    entries.push_back(entry);
    return false;
  });
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
  best_ = -std::numeric_limits<double>::infinity();
  int best = -kBusyCost;
  for (const Hypothesis& from : Beam()) best = std::max(best, Spread(from, sign));
  if (best < kFits) {
    ++figures_.searches;
    Search(sign);
  }
  Keep();
  Remember(sign);
  for (const Hypothesis& each : Beam()) {
    if (each.score < beam_[0].score - kMargin) break;
    if (Busy(each.entry)) continue;
    if (Score(each.entry, sign) >= 1 || SizeScore(steps_[each.entry], sign.units) >= 1) return each.entry;
  }
  return kNone;
}

}  // namespace hotpack
