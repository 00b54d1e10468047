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
constexpr int kBetweenSizes = 2;
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
  next_.resize(script_->entries.size());
  candidates_.reserve(kCandidates);
  others_.reserve(kCandidates);
  looked_.valid = false;
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

// Whether its score is 1 or more: within 0.5 ... 1.6 times the sizes seen, of which there are several.
inline bool EnvelopeFollower::IsNearSize(const EnvelopeStep& step, uint32_t units) {
  if (step.fixed) return units == step.last_units;
  const uint64_t asked = units;
  return 2 * asked >= step.min_units && 5 * asked <= 8 * uint64_t{step.max_units};
}

// Of a size that is not the entry's last one.
int EnvelopeFollower::VaryingSizeScore(const EnvelopeStep& step, uint32_t units) const {
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
  if (IsNearSize(step, units)) return 1;
  // Within 0.2 ... 4 times the nearest size.
  const uint64_t asked = units, nearest = units > step.max_units ? step.max_units : step.min_units;
  return 5 * asked > nearest && asked < 4 * nearest ? -1 : -4;
}

// Of a context that is not the entry's last new one.
inline int EnvelopeFollower::ContextScore(const EnvelopeStep& step, const RequestSign& sign) const {
  if ((step.contexts_seen & EnvelopeStep::Bit(sign.context)) != 0) {
    const uint64_t* const contexts = script_->contexts.data() + step.first_context;
    if (std::find(contexts, contexts + step.contexts, sign.context) != contexts + step.contexts) return kSeenContext;
  }
  if ((step.releases_seen & EnvelopeStep::ReleasesBit(sign.releases)) == 0) return -3;
  if (sign.releases < EnvelopeStep::kManyReleases) return 0;
  const uint32_t* const releases = script_->releases.data() + step.first_release;
  return std::find(releases, releases + step.releases, sign.releases) != releases + step.releases ? 0 : -3;
}

// How well the request fits the entry, in itself.
[[gnu::always_inline]] inline int EnvelopeFollower::Score(uint32_t entry, const RequestSign& sign) const {
  return PastScore(entry, sign) - (Busy(entry) ? kBusyCost : 0);
}

// The same for a request that was served, perhaps by this entry, whose block may be live.
[[gnu::always_inline]] inline int EnvelopeFollower::PastScore(uint32_t entry, const RequestSign& sign) const {
  const EnvelopeStep& step = steps_[entry];
  const int by_size = SizeScore(step, sign.units);
  const int by_context = sign.context == step.context ? kSeenContext : ContextScore(step, sign);
  return by_size + by_context;
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
[[gnu::always_inline]] inline void EnvelopeFollower::Offer(uint32_t entry, double score, uint32_t branch) {
  if (score < best_ - kLost) return;
  best_ = std::max(best_, score);
  uint32_t& slot = slots_[entry];
  if (slot >= next_size_ || next_[slot].entry != entry) {
    slot = static_cast<uint32_t>(next_size_);
    next_[next_size_++] = {entry, branch, score};
  } else if (score > next_[slot].score) {
    next_[slot] = {entry, branch, score};
  }
}

// Adds the successors, where there are several. Returns how well the best one fits.
int EnvelopeFollower::SpreadChoices(const Hypothesis& from, const RequestSign& sign) {
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
  return best_here;
}

// Adds where the hypothesis may lead. Returns how well the best successor fits.
inline int EnvelopeFollower::Spread(const Hypothesis& from, const RequestSign& sign) {
  const double before = from.score * kDecay;
  const uint32_t only = steps_[from.entry].successor;  // its chance is 1
  int best_here = -kBusyCost;
  if (only == kNone) {
    best_here = SpreadChoices(from, sign);
  } else {
    best_here = Score(only, sign);
    Offer(only, before + best_here, from.branch);
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

// Adds where the beam may lead. Returns how well the best successor fits.
int EnvelopeFollower::SpreadBeam(const RequestSign& sign) {
  next_size_ = 0;
  best_ = -std::numeric_limits<double>::infinity();
  int best = -kBusyCost;
  for (const Hypothesis& from : Beam()) best = std::max(best, Spread(from, sign));
  return best;
}

// Collects the entries that fit the request, those that fit it best first.
void EnvelopeFollower::FindCandidates(const RequestSign& sign) {
  candidates_.clear();
  others_.clear();
  const auto add = [&](uint32_t entry, int fit) {
    if (fit >= kFits) (fit == kSeenSize + kSeenContext ? candidates_ : others_).push_back({entry, fit});
  };
  const std::span<const uint32_t> by_context = script_->by_context.Find(sign.context);
  const size_t of_context = std::min(by_context.size(), kCandidates);
  for (const uint32_t entry : by_context.first(of_context)) {
    const EnvelopeStep& step = steps_[entry];
    if (IsNearSize(step, sign.units) && !Busy(entry)) add(entry, kSeenContext + SizeScore(step, sign.units));
  }
  const std::span<const uint32_t> by_units = script_->by_units.Find(sign.units);
  for (const uint32_t entry : by_units.first(std::min(by_units.size(), kCandidates - of_context))) {
    const EnvelopeStep& step = steps_[entry];
    if (step.context != sign.context && !Busy(entry)) add(entry, kSeenSize + ContextScore(step, sign));
  }
  candidates_.insert(candidates_.end(), others_.begin(), others_.end());
}

// Adds all entries that fit, as likely as the requests before fit the entries before.
void EnvelopeFollower::Search(const RequestSign& sign) {
  FindCandidates(sign);
  const size_t past = std::min<size_t>(past_count_, kPast);
  std::array<double, kPast + 1> weights, most;  // of the request so many before; the most that those further back add
  weights[0] = 1;
  for (size_t back = 1; back <= past; ++back) weights[back] = weights[back - 1] * kDecay;
  most[past] = 0;
  for (size_t back = past; back > 0; --back) most[back - 1] = most[back] + weights[back] * (kSeenSize + kSeenContext);
  constexpr double kRounding = 1e-6;
  const auto& order = script_->order;
  for (const Candidate& candidate : candidates_) {
    double score = candidate.fit;
    size_t position = script_->positions[candidate.entry];
    const double needed = best_ - kLost + kSearchCost - kRounding;
    bool lost = false;
    for (size_t back = 1; back <= past && position > 0 && !lost; ++back) {
      score += weights[back] * std::max(-kStayCost, PastScore(order[--position], Past(back)));
      lost = score + most[back] < needed;
    }
    if (!lost) Offer(candidate.entry, score - kSearchCost, 0);
  }
}

// Keeps the best kBeam hypotheses that may still win.
void EnvelopeFollower::Keep() {
  const auto better = [](const Hypothesis& a, const Hypothesis& b) {
    return a.score != b.score ? a.score > b.score : a.entry < b.entry;
  };
  kept_size_ = 0;
  for (size_t i = 0; i < next_size_; ++i) {
    const Hypothesis each = next_[i];
    if (each.score < best_ - kLost) continue;
    if (kept_size_ == kBeam && !better(each, kept_[kBeam - 1])) continue;
    size_t at = kept_size_ < kBeam ? kept_size_++ : kBeam - 1;
    for (; at > 0 && better(each, kept_[at - 1]); --at) kept_[at] = kept_[at - 1];
    kept_[at] = each;
  }
}

// Returns the entry of the best one of kept_ that may answer the request, or kNone.
inline uint32_t EnvelopeFollower::Answer(const RequestSign& sign) const {
  for (size_t i = 0; i < kept_size_; ++i) {
    const Hypothesis& each = kept_[i];
    if (each.score < kept_[0].score - kMargin) break;
    if (Busy(each.entry)) continue;
    if (Score(each.entry, sign) >= 1 || SizeScore(steps_[each.entry], sign.units) >= 1) return each.entry;
  }
  return kNone;
}

uint32_t EnvelopeFollower::Look(const RequestSign& sign) {
  if (looked_.valid && looked_.sign == sign) return looked_.entry;
  const bool search = SpreadBeam(sign) < kFits;
  if (search) Search(sign);
  Keep();
  looked_ = {true, search, sign, Answer(sign)};
  return looked_.entry;
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
  const uint32_t entry = Look(sign);
  Go(sign);
  return entry;
}

}  // namespace hotpack
