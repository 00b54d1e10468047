// Orders of preference among blocks, by a score: what the portfolio's solvers are given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/random.h"
#include "packer/timeline.h"

namespace hotpack {

// score = alpha * log(size) + (1 - alpha) * log(lifetime) + load * log(largest load met) + noise * uniform[-1/2, 1/2).
// alpha 0, load 0, noise 0 is the published best-fit's order. Mixing in the size mends its weakness (it ignores sizes),
// the load puts first what lives at the peak, noise makes many orders out of one.
struct Key {
  double alpha;
  double load;
  double noise;
};

// Scores by block for one timeline. Immutable after construction, so thread-safe.
class KeyScorer {
 public:
  explicit KeyScorer(const Timeline& timeline);  // O(n log n)

  void Score(const Key& key, Random* random, std::vector<double>* scores) const;
  // Adds noise to each score with the given probability.
  void Perturb(double noise, double probability, Random* random, std::vector<double>* scores) const;

 private:
  struct Features {
    double log_size;
    double log_lifetime;
    double log_load;
  };
  std::vector<Features> features_;
};

// order: blocks by decreasing score, then index; ranks: by block, the first of the order has the highest. O(n log n).
void SortByScore(const std::vector<double>& scores, std::vector<int32_t>* order, std::vector<int32_t>* ranks);

// The same after the scores of the blocks in `changed` (each once; sorted by this) were changed: the others keep their
// order. O(n), without sorting all again.
void SortAgain(const std::vector<double>& scores, std::vector<int32_t>* changed, std::vector<int32_t>* order,
               std::vector<int32_t>* ranks);

}  // namespace hotpack
