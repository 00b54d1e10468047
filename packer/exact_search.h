// Exact search: decides whether there is a placement of at most a given height.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/cliques.h"
#include "packer/pairs.h"
#include "packer/state_table.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// Depth-first search over partial placements, built from the bottom up. At each node it takes one clique, the one that
// leaves the fewest choices. It branches on which of the clique's blocks lies lowest in the part still to be filled.
//
//   head     of an unplaced block: the lowest offset it can have, given what is placed and decided
//   floor    of a clique: the lowest head among its unplaced blocks
//   ceiling  of a clique: the lowest top that any of its unplaced blocks can have (head + size)
//
// Branches of a clique with floor f:
// - for each block with head f: it lies there;
// - none of them does, unless the capacity forbids that waste. Then the head of each rises to the lowest top of any
//   unplaced block that meets it.
// The branches are complete. Push every block of a placement down as long as any can move. Then each lies on the
// bottom, on a placed block (its head), or on an unplaced one (at or above that one's lowest top).
//
// A block is placed only if no other can come to lie under it any more: the ceilings of all its cliques are above its
// head. The clique of the lowest floor always permits that. So cliques far apart in time may be filled to different
// heights.
//
// Pruning, per clique:
// - The one-machine bound with heads (Jackson 1955): blocks one after the other by head, each from its head on.
// - Not first: a block that could not lie lowest without exceeding the capacity rises to the lowest top of those that
//   could.
// - Equal blocks (same size, alignment, cliques) are tried once.
// In the first two, if all alignments have a common divisor, sizes are rounded up to it, except the topmost block's.
//
// A state is the set of unplaced blocks with their heads: nothing else decides whether they can be placed. Failed
// states are remembered (packer/state_table.h), across restarts too. So different ways to fill the bottom that leave
// the same heads count once.
//
// A clique that fails gains weight and is chosen earlier. Weights outlive a run: restarts with few failures allowed and
// other ranks benefit from them.
//
// Alignment rounds heads up. A pinned block's head is its pin, which no rule may raise; heads of other blocks jump over
// it. Time per node: about 5 microseconds at 40 blocks per clique. Memory: O(pairs that meet + members). Not
// thread-safe.
class ExactSearch {
 public:
  enum class Outcome {
    kFound,    // a placement
    kNone,     // proved: there is none
    kStopped,  // a limit was reached, or `stop` fired
  };

  // Keeps references. If `stop` fires during construction, it knows no pairs and must not be run.
  ExactSearch(const Timeline& timeline, const Cliques& cliques, StopCheck* stop);

  // Searches for a placement of at most `capacity`. `ranks`: by block, the highest is tried first. Gives up after
  // most_failures (≥ 0) dead ends, or when the work reported to `stop` reaches most_work in total. `offsets`: by block,
  // written if found.
  Outcome Run(Bytes capacity, std::span<const int32_t> ranks, int64_t most_failures, int64_t most_work, StopCheck* stop,
              std::vector<Offset>* offsets);

  int64_t nodes() const { return nodes_; }  // of all runs

 private:
  struct Spot {
    Offset head;  // of a placed block: its offset
    Bytes size;
  };
  struct Clique {
    int32_t first;       // of its entries in unplaced_
    int32_t count;       // number of unplaced blocks; the placed ones follow them
    int32_t choices;     // blocks with head == floor
    Bytes unit;          // divides all alignments here: so it divides offsets, and sizes may be padded to it
    Bytes rest;          // sum of the unplaced sizes, padded
    Bytes most_padding;  // maximum of an unplaced block: the topmost one may do without it
    Offset floor;
    Offset ceiling;
    Offset next_floor;  // lower bound on the floor if none of the choices is taken
  };
  struct HeadChange {
    int32_t block;
    Offset head;  // before
  };
  struct CliqueChange {
    int32_t clique;
    int32_t choices;  // before the change, as the fields below
    Offset floor;
    Offset ceiling;
    Offset next_floor;
  };
  struct Range {  // of cliques
    int32_t begin;
    int32_t end;
  };
  struct Frame {
    StateTable::State state;  // before any branch
    int32_t clique;
    int32_t next;   // index in choices_ of the branch to try; == end: the branch without any choice
    int32_t begin;  // its choices are choices_[begin, end)
    int32_t end;
    int32_t placed;     // block placed by the branch in progress, or -1
    size_t head_trail;  // sizes of the trails before the branch
    size_t clique_trail;
    bool skipped;  // the branch without any choice has begun
  };

  void FindRanges();
  void ListPinsMet();
  void Start(Bytes capacity);

  Offset Settle(int32_t block, Offset offset) const;
  bool Raise(int32_t block, Offset offset);
  void MarkCliques(int32_t block);
  void MarkCliquesThatFeel(int32_t block, Offset before, Offset after);
  void ClearMarks();
  bool Propagate();
  bool Visit(int32_t clique);
  void SortByHead(int32_t* blocks, int32_t count) const;
  Bytes Padded(int32_t block, Bytes unit) const;
  Offset OneMachineTop(const Clique& clique) const;
  bool RaiseThoseNotFirst(const Clique& clique);
  Offset HighestFloor(const Clique& clique) const { return capacity_ - (clique.rest - clique.most_padding); }

  int32_t ChooseClique();
  bool NothingFitsUnder(int32_t block);
  bool ChoicesAreClosed(const Clique& clique);
  void Open(int32_t clique);
  bool Place(int32_t block);
  void TakeBack(int32_t block);
  bool Skip(const Frame& frame);
  Offset LowestTopMet(int32_t block) const;
  void Undo(const Frame& frame);
  bool Advance(Frame* frame);

  const Timeline& timeline_;
  const Cliques& cliques_;
  const Pairs pairs_;
  const std::vector<int32_t> classes_;
  StateTable states_;
  std::vector<int32_t> range_starts_;
  std::vector<Range> ranges_;  // by block: its cliques as ranges
  std::vector<int32_t> pins_met_starts_;
  std::vector<int32_t> pins_met_;  // by block: pinned blocks that meet it, ascending pin

  Bytes capacity_ = 0;
  std::span<const int32_t> ranks_;
  std::vector<Spot> spots_;  // by block
  std::vector<char> placed_;
  struct Answer {
    int64_t node = -1;
    bool closed = false;
  };
  std::vector<Answer> answers_;  // of NothingFitsUnder(), by block, for the given node
  std::vector<Clique> state_;
  std::vector<int32_t> unplaced_;  // by clique
  std::vector<double> weights_;    // by clique
  std::vector<uint64_t> dirty_;    // bit c: clique c must be visited
  size_t lowest_marked_ = 0;       // no bit is set in the words before it
  std::vector<HeadChange> head_trail_;
  std::vector<CliqueChange> clique_trail_;
  std::vector<Frame> frames_;
  std::vector<int32_t> choices_;
  std::vector<HeadChange> raises_;  // of the skip in progress: the new heads
  int32_t unplaced_blocks_ = 0;
  int64_t work_ = 0;  // memory words touched since the clock was last read
  int64_t nodes_ = 0;
  int64_t failures_ = 0;
};

}  // namespace hotpack
