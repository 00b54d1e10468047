#include "packer/keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hotpack {

KeyScorer::KeyScorer(const Timeline& timeline) {
  const std::vector<Bytes> loads = LargestLoadsMet(timeline);
  features_.reserve(loads.size());
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    features_.push_back({std::log(static_cast<double>(timeline.sizes[block])),
                         std::log(static_cast<double>(timeline.lifetimes[block])),
                         std::log(static_cast<double>(loads[block]))});
  }
}

void KeyScorer::Score(const Key& key, Random* random, std::vector<double>* scores) const {
  scores->resize(features_.size());
  for (size_t block = 0; block < features_.size(); ++block) {
    const Features& of = features_[block];
    (*scores)[block] = key.alpha * of.log_size + (1 - key.alpha) * of.log_lifetime + key.load * of.log_load;
  }
  if (key.noise > 0) Perturb(key.noise, 1.0, random, scores);
}

void KeyScorer::Perturb(double noise, double probability, Random* random, std::vector<double>* scores) const {
  for (double& score : *scores) {
    if (probability >= 1.0 || random->Unit() < probability) score += noise * (random->Unit() - 0.5);
  }
}

void SortByScore(const std::vector<double>& scores, std::vector<int32_t>* order, std::vector<int32_t>* ranks) {
  const auto blocks = static_cast<int32_t>(scores.size());
  std::vector<std::pair<double, int32_t>> sorted(scores.size());
  for (int32_t block = 0; block < blocks; ++block) sorted[block] = {-scores[block], block};
  std::sort(sorted.begin(), sorted.end());
  order->resize(scores.size());
  ranks->resize(scores.size());
  for (int32_t i = 0; i < blocks; ++i) {
    (*order)[i] = sorted[i].second;
    (*ranks)[sorted[i].second] = blocks - 1 - i;
  }
}

void SortAgain(const std::vector<double>& scores, std::vector<int32_t>* changed, std::vector<int32_t>* order,
               std::vector<int32_t>* ranks) {
  const auto before = [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; };
  constexpr int32_t kTakenOut = -1;
  std::sort(changed->begin(), changed->end(), before);
  for (int32_t block : *changed) (*ranks)[block] = kTakenOut;
  const auto kept_end =
      std::remove_if(order->begin(), order->end(), [&](int32_t block) { return (*ranks)[block] == kTakenOut; });
  // Merge from the back, into the space that the changed ones left.
  auto kept = kept_end;
  auto change = changed->end();
  for (auto to = order->end(); to != order->begin();) {
    const bool take_change =
        kept == order->begin() || (change != changed->begin() && before(*std::prev(kept), *std::prev(change)));
    *--to = take_change ? *--change : *--kept;
  }
  auto rank = static_cast<int32_t>(order->size());
  for (int32_t block : *order) (*ranks)[block] = --rank;
}

}  // namespace hotpack
