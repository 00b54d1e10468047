// Orders of preference among blocks, by a score: the input of the portfolio's solvers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/random.h"
#include "packer/timeline.h"

namespace hotpack {

// score = alpha * log(size) + (1 - alpha) * log(lifetime) + load * log(largest load met) + noise * uniform[-1/2, 1/2).
// With alpha 0, load 0, noise 0 it is the order of the published best-fit. The size corrects that order's weakness (it
// ignores sizes). The load puts blocks that live at the peak first. Noise makes many orders out of one.
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

// Sorts blocks by score. `order`: blocks by decreasing score, then index. `ranks`: by block; the first of the order has
// the highest. O(n log n).
void SortByScore(const std::vector<double>& scores, std::vector<int32_t>* order, std::vector<int32_t>* ranks);

// Sorts again after the scores of the blocks in `changed` have changed (each listed once; this function sorts the
// list). The other blocks keep their order. O(n), because only `changed` is sorted.
void SortAgain(const std::vector<double>& scores, std::vector<int32_t>* changed, std::vector<int32_t>* order,
               std::vector<int32_t>* ranks);

}  // namespace hotpack
