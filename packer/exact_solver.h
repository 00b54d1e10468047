// Restarts of the exact search: heights to ask for, orders to ask with, and how long.
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

// One thread's exact search over many short runs. Each asks whether there is a placement of some height, with blocks
// tried in some order, and ends after a number of dead ends; the search's time to a solution is heavy-tailed, so many
// short runs find one far sooner than a long one. How many dead ends follows the sequence of Luby, Sinclair and
// Zuckerman (1993): 1, 1, 2, 1, 1, 2, 4, ..., so every run length comes back for ever and the search is complete.
//
// While the best height is above the bound, the heights asked for take turns: the target itself (a proof or the end),
// half way down to it (twice as often), and a little less than the best. What a run proves raises the bound; what it
// finds lowers the height. Not thread-safe; several solvers may share `best`.
class ExactSolver {
 public:
  // Pairs of blocks that meet, and members of cliques, with which there is a chance that it comes to something.
  static constexpr int64_t kFewPairs = 1'000'000;
  // And what memory allows: up to 120 bytes for each.
  static constexpr int64_t kMaxPairs = 4'000'000;

  // Whether there are no more pairs and members than this. O(n + slots).
  static bool Takes(const Timeline& timeline, int64_t most_pairs);
  // About the work of a run without a dead end. Turns shorter than that are of no use. O(n + slots).
  static int64_t WorkOfOneDescent(const Timeline& timeline);

  // Keeps a reference to `timeline` and `best`. Solvers with different `index` try different orders. Once `stop` says
  // so there is nothing to search with: Run() with it does nothing.
  ExactSolver(const Timeline& timeline, uint64_t seed, int index, SharedBest* best, StopCheck* stop);

  // Runs until best->done(), `stop`, or about this much work (memory words touched, as told to `stop`) is spent.
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
  Bytes unit_ = 1;                               // all heights worth asking for are multiples of it
  std::vector<std::array<double, 3>> features_;  // by block: logarithms of largest load met, size and number of cliques
  std::array<Level, 3> levels_;
  size_t next_turn_ = 0;
  std::vector<double> scores_;
  std::vector<int32_t> order_;
  std::vector<int32_t> ranks_;
  Placement placement_;
};

}  // namespace hotpack
