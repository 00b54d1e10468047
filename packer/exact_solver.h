// Restarts of the exact search: which heights to try, with which orders, and for how long.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packer/cliques.h"
#include "packer/exact_search.h"
#include "packer/random.h"
#include "packer/shared_best.h"
#include "packer/stop.h"
#include "packer/timeline.h"

namespace hotpack {

// One thread's exact search as many short runs. Each run asks whether there is a placement of some height, tries blocks
// in some order, and ends after a number of dead ends. The search's time to a solution is heavy-tailed, so many short
// runs find one far sooner than a long run. The limit on dead ends follows the sequence of Luby, Sinclair and Zuckerman
// (1993): 1, 1, 2, 1, 1, 2, 4, ... Every run length recurs for ever, so the search is complete.
//
// While the best height is above the bound, three heights take turns: the target itself (a proof or the end), half way
// down to it (twice as often), and slightly less than the best. A proof raises the bound; a placement lowers the
// height. Not thread-safe; several solvers may share `best`.
class ExactSolver {
 public:
  // Limit on pairs of blocks that meet, and members of cliques, up to which the search is likely to succeed.
  static constexpr int64_t kFewPairs = 1'000'000;
  // Limit set by memory: up to 120 bytes for each.
  static constexpr int64_t kMaxPairs = 4'000'000;

  // Returns whether there are at most `most_pairs` pairs and members. O(n + slots).
  static bool Takes(const Timeline& timeline, int64_t most_pairs);
  // Returns approximately the work of a run without a dead end. Shorter turns are useless. O(n + slots).
  static int64_t WorkOfOneDescent(const Timeline& timeline);

  // Keeps references to `timeline` and `best`. Solvers with different `index` try different orders. If `stop` fires
  // during construction, there is nothing to search, and Run() with it does nothing.
  ExactSolver(const Timeline& timeline, uint64_t seed, int index, SharedBest* best, StopCheck* stop);

  // Runs until best->done(), until `stop` fires, or until about this much work is spent (memory words touched, as
  // reported to `stop`).
  void Run(int64_t work, StopCheck* stop);

  int64_t nodes() const { return search_.nodes(); }

 private:
  // The order in which blocks are tried: by load * log(largest load met) + size * log(size) + width * log(cliques).
  struct Order {
    double load;
    double size;
    double width;
  };
  struct Level {
    int64_t round = 0;  // of as many runs as there are orders
    size_t order = 0;
    int64_t luby_u = 1;  // the sequence after Knuth (The Art of Computer Programming 4, fascicle 6, p. 77)
    int64_t luby_v = 1;
  };

  Bytes HeightOf(size_t level) const;
  void RunOnce(Level* level, Bytes height, int64_t most_work, StopCheck* stop);
  void Rank(const Order& order, double noise);

  const Timeline& timeline_;
  SharedBest& best_;
  const Cliques cliques_;
  ExactSearch search_;
  Random random_;
  Bytes unit_ = 1;                               // all heights worth trying are multiples of it
  std::vector<std::array<double, 3>> features_;  // by block: logarithms of largest load met, size and number of cliques
  std::array<Level, 3> levels_;
  size_t next_turn_ = 0;
  std::vector<double> scores_;
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
  Placement placement_;
};

}  // namespace hotpack
