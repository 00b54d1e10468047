#include "packer/exact_search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace hotpack {
namespace {

constexpr Offset kNever = std::numeric_limits<Offset>::max();

}  // namespace

ExactSearch::ExactSearch(const Timeline& timeline, const Cliques& cliques, StopCheck* stop)
    : timeline_(timeline),
      cliques_(cliques),
      pairs_(MakePairs(timeline, stop)),
      classes_(ClassesOfEqualBlocks(timeline, cliques)),
      states_(timeline.blocks()) {
  FindRanges();
  ListPinsMet();
  state_.resize(cliques.cliques());
  for (int32_t clique = 0; clique < cliques.cliques(); ++clique) {
    state_[clique].first = cliques.clique_starts[clique];
    state_[clique].unit = 0;
    for (int32_t block : cliques.MembersOf(clique)) {
      state_[clique].unit = std::gcd(state_[clique].unit, timeline.alignments[block]);
    }
    const std::span<const int32_t> members = cliques.MembersOf(clique);
    if (std::all_of(members.begin(), members.end(),
                    [&](int32_t block) { return timeline.sizes[block] % state_[clique].unit == 0; })) {
      state_[clique].unit = 1;  // nothing to pad
    }
  }
  for (Bytes size : timeline.sizes) spots_.push_back({0, size});
  weights_.assign(cliques.cliques(), 1.0);
  dirty_.assign((static_cast<size_t>(cliques.cliques()) + 63) / 64, 0);
}

void ExactSearch::FindRanges() {
  range_starts_.push_back(0);
  for (int32_t block = 0; block < timeline_.blocks(); ++block) {
    const size_t first = ranges_.size();
    for (int32_t clique : cliques_.CliquesOf(block)) {
      if (ranges_.size() > first && ranges_.back().end == clique) {
        ++ranges_.back().end;
      } else {
        ranges_.push_back({clique, clique + 1});
      }
    }
    range_starts_.push_back(static_cast<int32_t>(ranges_.size()));
  }
}

void ExactSearch::ListPinsMet() {
  pins_met_starts_.push_back(0);
  for (int32_t block = 0; block < timeline_.blocks(); ++block) {
    const size_t first = pins_met_.size();
    for (int32_t other : pairs_.Of(block)) {
      if (timeline_.pins[other] != kNotPinned) pins_met_.push_back(other);
    }
    std::sort(pins_met_.begin() + static_cast<std::ptrdiff_t>(first), pins_met_.end(),
              [&](int32_t a, int32_t b) { return timeline_.pins[a] < timeline_.pins[b]; });
    pins_met_starts_.push_back(static_cast<int32_t>(pins_met_.size()));
  }
}

void ExactSearch::Start(Bytes capacity) {
  capacity_ = capacity;
  unplaced_blocks_ = timeline_.blocks();
  failures_ = 0;
  placed_.assign(timeline_.blocks(), 0);
  answers_.assign(timeline_.blocks(), {});
  unplaced_ = cliques_.members;
  head_trail_.clear();
  clique_trail_.clear();
  frames_.clear();
  choices_.clear();
  lowest_marked_ = 0;
  for (int32_t clique = 0; clique < cliques_.cliques(); ++clique) {
    Clique& state = state_[clique];
    state.count = cliques_.clique_starts[clique + 1] - state.first;
    state.choices = 0;
    state.rest = state.most_padding = state.floor = state.ceiling = state.next_floor = 0;
    for (int32_t block : cliques_.MembersOf(clique)) state.rest += Padded(block, state.unit);
    dirty_[clique / 64] |= uint64_t{1} << (clique % 64);
    weights_[clique] = 1 + (weights_[clique] - 1) / 2;
  }
  states_.Begin(capacity);
  for (int32_t block = 0; block < timeline_.blocks(); ++block) {
    spots_[block].head = Settle(block, 0);
    states_.Add(block, spots_[block].head);
  }
}

// Returns the lowest offset from `offset` on that the block may have: aligned, and not colliding with the pinned blocks
// that it meets. Returns kNever if the block is pinned below.
Offset ExactSearch::Settle(int32_t block, Offset offset) const {
  const Offset pin = timeline_.pins[block];
  if (pin != kNotPinned) return offset <= pin ? pin : kNever;
  offset = RoundUp(offset, timeline_.alignments[block]);
  for (int32_t i = pins_met_starts_[block]; i < pins_met_starts_[block + 1]; ++i) {
    const int32_t pinned = pins_met_[i];
    const Offset top = timeline_.pins[pinned] + timeline_.sizes[pinned];
    if (top <= offset) continue;
    // Pinned blocks that the block meets may overlap each other, so those further up must be checked, too.
    if (timeline_.pins[pinned] >= offset + timeline_.sizes[block]) break;
    offset = RoundUp(top, timeline_.alignments[block]);
    i = pins_met_starts_[block] - 1;
  }
  return offset;
}

// Raises the block's head to at least `offset`. Returns false if it then exceeds the capacity.
bool ExactSearch::Raise(int32_t block, Offset offset) {
  if (spots_[block].head >= offset) return true;
  const Offset head = Settle(block, offset);
  if (head > capacity_ - timeline_.sizes[block]) return false;
  const Offset before = spots_[block].head;
  head_trail_.push_back({block, before});
  states_.Remove(block, before);
  states_.Add(block, head);
  spots_[block].head = head;
  MarkCliquesThatFeel(block, before, head);
  return true;
}

// Raising one block's head from `before` to `after` leaves a clique unchanged if other blocks determine its floor and
// ceiling, and the block could still be the first there.
void ExactSearch::MarkCliquesThatFeel(int32_t block, Offset before, Offset after) {
  const Offset top_before = before + timeline_.sizes[block];
  for (int32_t i = range_starts_[block]; i < range_starts_[block + 1]; ++i) {
    for (int32_t at = ranges_[i].begin; at < ranges_[i].end; ++at) {
      const Clique& clique = state_[at];
      if (before > clique.floor && top_before > clique.ceiling && after <= HighestFloor(clique)) continue;
      dirty_[at / 64] |= uint64_t{1} << (at % 64);
      lowest_marked_ = std::min(lowest_marked_, static_cast<size_t>(at / 64));
    }
  }
}

void ExactSearch::MarkCliques(int32_t block) {
  for (int32_t i = range_starts_[block]; i < range_starts_[block + 1]; ++i) {
    const auto [begin, end] = ranges_[i];
    const int32_t first = begin / 64;
    const int32_t last = (end - 1) / 64;
    const uint64_t from = ~uint64_t{0} << (begin % 64);
    const uint64_t to = ~uint64_t{0} >> (63 - (end - 1) % 64);
    lowest_marked_ = std::min(lowest_marked_, static_cast<size_t>(first));
    if (first == last) {
      dirty_[first] |= from & to;
      continue;
    }
    dirty_[first] |= from;
    for (int32_t word = first + 1; word < last; ++word) dirty_[word] = ~uint64_t{0};
    dirty_[last] |= to;
  }
}

// Visits the marked cliques until none is left. Returns false at a dead end; then no clique is marked.
bool ExactSearch::Propagate() {
  for (; lowest_marked_ < dirty_.size(); ++lowest_marked_) {
    while (dirty_[lowest_marked_] != 0) {
      const size_t word = lowest_marked_;
      const auto clique = static_cast<int32_t>(word * 64) + std::countr_zero(dirty_[word]);
      dirty_[word] &= dirty_[word] - 1;
      if (state_[clique].count == 0 || Visit(clique)) continue;
      weights_[clique] += 1;
      ClearMarks();
      return false;
    }
  }
  return true;
}

void ExactSearch::ClearMarks() {
  std::fill(dirty_.begin(), dirty_.end(), 0);
  lowest_marked_ = dirty_.size();
}

// Insertion sort: the order of the last visit is nearly right.
void ExactSearch::SortByHead(int32_t* blocks, int32_t count) const {
  for (int32_t i = 1; i < count; ++i) {
    const int32_t block = blocks[i];
    const Offset head = spots_[block].head;
    int32_t to = i;
    for (; to > 0 && spots_[blocks[to - 1]].head > head; --to) blocks[to] = blocks[to - 1];
    blocks[to] = block;
  }
}

Bytes ExactSearch::Padded(int32_t block, Bytes unit) const {
  const Bytes size = timeline_.sizes[block];
  return unit > 1 ? RoundUp(size, unit) : size;
}

// Updates the clique's values from the heads of its blocks. Returns false if it cannot stay below the capacity.
bool ExactSearch::Visit(int32_t clique) {
  Clique& state = state_[clique];
  work_ += state.count;
  int32_t* const blocks = unplaced_.data() + state.first;
  Offset floor = kNever;
  Offset ceiling = kNever;
  Offset second = kNever;  // lowest head above the floor
  Offset highest = 0;
  int32_t choices = 0;
  Bytes most_padding = 0;
  for (int32_t i = 0; i < state.count; ++i) {
    const Spot& spot = spots_[blocks[i]];
    ceiling = std::min(ceiling, spot.head + spot.size);
    highest = std::max(highest, spot.head);
    if (spot.head < floor) {
      second = floor;
      floor = spot.head;
      choices = 1;
    } else if (spot.head == floor) {
      ++choices;
    } else {
      second = std::min(second, spot.head);
    }
    if (state.unit > 1) most_padding = std::max(most_padding, Padded(blocks[i], state.unit) - spot.size);
  }
  state.most_padding = most_padding;
  const Offset next_floor = std::min(second, ceiling);
  if (floor != state.floor || ceiling != state.ceiling || choices != state.choices || next_floor != state.next_floor) {
    clique_trail_.push_back({clique, state.choices, state.floor, state.ceiling, state.next_floor});
    state.choices = choices;
    state.floor = floor;
    state.ceiling = ceiling;
    state.next_floor = next_floor;
  }
  // If every block could be the first, nothing can be deduced.
  if (highest <= HighestFloor(state)) return true;
  if (floor > HighestFloor(state)) return false;
  SortByHead(blocks, state.count);
  return OneMachineTop(state) <= capacity_ && RaiseThoseNotFirst(state);
}

// Stacks the blocks, each from its head on; ascending heads give the lowest top. Requires sorted blocks.
Offset ExactSearch::OneMachineTop(const Clique& clique) const {
  const int32_t* const blocks = unplaced_.data() + clique.first;
  Offset top = 0;
  for (int32_t i = 0; i < clique.count; ++i) {
    const Spot& spot = spots_[blocks[i]];
    top = std::max(top, spot.head) + (clique.unit > 1 ? Padded(blocks[i], clique.unit) : spot.size);
  }
  return top - clique.most_padding;
}

// A block on which the others of its clique cannot all be stacked lies on one of them.
bool ExactSearch::RaiseThoseNotFirst(const Clique& clique) {
  const int32_t* const blocks = unplaced_.data() + clique.first;
  const Offset highest_first = HighestFloor(clique);
  Offset lowest_top = kNever;  // of a block that may be first
  int32_t i = 0;
  for (; i < clique.count && spots_[blocks[i]].head <= highest_first; ++i) {
    lowest_top = std::min(lowest_top, spots_[blocks[i]].head + spots_[blocks[i]].size);
  }
  for (; i < clique.count && spots_[blocks[i]].head < lowest_top; ++i) {
    if (!Raise(blocks[i], lowest_top)) return false;
  }
  return true;
}

// Many cliques ask about a long block, so the answer is stored for the node.
bool ExactSearch::NothingFitsUnder(int32_t block) {
  Answer& answer = answers_[block];
  if (answer.node == nodes_) return answer.closed;
  answer = {nodes_, true};
  const Offset head = spots_[block].head;
  for (int32_t i = range_starts_[block]; i < range_starts_[block + 1]; ++i) {
    for (int32_t clique = ranges_[i].begin; clique < ranges_[i].end; ++clique) {
      ++work_;
      if (state_[clique].ceiling > head) continue;
      answer.closed = false;
      return false;
    }
  }
  return true;
}

bool ExactSearch::ChoicesAreClosed(const Clique& clique) {
  for (int32_t i = 0; i < clique.count; ++i) {
    const int32_t block = unplaced_[clique.first + i];
    if (spots_[block].head == clique.floor && !NothingFitsUnder(block)) return false;
  }
  return true;
}

// Of the cliques whose choices may be placed, returns the one with the fewest branches relative to its weight; of equal
// ones, the one with the least space to waste.
int32_t ExactSearch::ChooseClique() {
  Offset lowest = kNever;
  for (const Clique& clique : state_) {
    if (clique.count > 0) lowest = std::min(lowest, clique.floor);
  }
  int32_t best = -1;
  double best_score = 0;
  Bytes best_room = 0;
  for (int32_t i = 0; i < cliques_.cliques(); ++i) {
    const Clique& clique = state_[i];
    if (clique.count == 0) continue;
    const Bytes room = HighestFloor(clique) - clique.floor;
    const bool may_skip = clique.next_floor - clique.floor <= room;
    const double score = (clique.choices + (may_skip ? 1 : 0)) / weights_[i];
    if (best >= 0 && (score > best_score || (score == best_score && room >= best_room))) continue;
    if (clique.floor != lowest && !ChoicesAreClosed(clique)) continue;
    best = i;
    best_score = score;
    best_room = room;
  }
  work_ += cliques_.cliques();
  return best;
}

// Opens a new frame with the clique's choices by rank, one of each class.
void ExactSearch::Open(int32_t clique) {
  const Clique& state = state_[clique];
  const auto begin = static_cast<int32_t>(choices_.size());
  for (int32_t i = 0; i < state.count; ++i) {
    const int32_t block = unplaced_[state.first + i];
    if (spots_[block].head != state.floor) continue;
    const bool is_new = std::none_of(choices_.begin() + begin, choices_.end(),
                                     [&](int32_t other) { return classes_[other] == classes_[block]; });
    if (is_new) choices_.push_back(block);
  }
  std::sort(choices_.begin() + begin, choices_.end(), [&](int32_t a, int32_t b) { return ranks_[a] > ranks_[b]; });
  frames_.push_back({.state = states_.present(),
                     .clique = clique,
                     .next = begin,
                     .begin = begin,
                     .end = static_cast<int32_t>(choices_.size()),
                     .placed = -1,
                     .head_trail = head_trail_.size(),
                     .clique_trail = clique_trail_.size(),
                     .skipped = false});
  ++nodes_;
}

// Places the block at its head. Returns false at a dead end.
bool ExactSearch::Place(int32_t block) {
  const Offset top = spots_[block].head + timeline_.sizes[block];
  states_.Remove(block, spots_[block].head);
  placed_[block] = 1;
  --unplaced_blocks_;
  for (int32_t clique : cliques_.CliquesOf(block)) {
    Clique& state = state_[clique];
    int32_t* const blocks = unplaced_.data() + state.first;
    int32_t* const at = std::find(blocks, blocks + state.count, block);
    std::copy(at + 1, blocks + state.count, at);
    blocks[--state.count] = block;
    state.rest -= Padded(block, state.unit);
  }
  MarkCliques(block);
  work_ += static_cast<int64_t>(pairs_.Of(block).size());
  for (int32_t other : pairs_.Of(block)) {
    if (placed_[other] != 0 || Raise(other, top)) continue;
    ClearMarks();
    return false;
  }
  return Propagate();
}

// Blocks are removed in reverse order of placement. So in each clique the block is the first behind the unplaced ones.
void ExactSearch::TakeBack(int32_t block) {
  placed_[block] = 0;
  ++unplaced_blocks_;
  for (int32_t clique : cliques_.CliquesOf(block)) {
    ++state_[clique].count;
    state_[clique].rest += Padded(block, state_[clique].unit);
  }
}

Offset ExactSearch::LowestTopMet(int32_t block) const {
  Offset lowest = kNever;
  for (int32_t other : pairs_.Of(block)) {
    if (placed_[other] == 0) lowest = std::min(lowest, spots_[other].head + spots_[other].size);
  }
  return lowest;
}

// Branch: none of the clique's choices lies at its floor.
bool ExactSearch::Skip(const Frame& frame) {
  const Clique& clique = state_[frame.clique];
  // All of them, not only one of each class, and before any of them rises.
  const size_t first = raises_.size();
  for (int32_t i = 0; i < clique.count; ++i) {
    const int32_t block = unplaced_[clique.first + i];
    if (spots_[block].head != clique.floor) continue;
    raises_.push_back({block, LowestTopMet(block)});
    work_ += static_cast<int64_t>(pairs_.Of(block).size());
  }
  bool possible = true;
  for (size_t i = first; i < raises_.size() && possible; ++i) {
    possible = raises_[i].head <= capacity_ && Raise(raises_[i].block, raises_[i].head);
  }
  raises_.resize(first);
  if (!possible) ClearMarks();
  return possible && Propagate();
}

void ExactSearch::Undo(const Frame& frame) {
  states_.Return(frame.state);
  for (; head_trail_.size() > frame.head_trail; head_trail_.pop_back()) {
    spots_[head_trail_.back().block].head = head_trail_.back().head;
  }
  for (; clique_trail_.size() > frame.clique_trail; clique_trail_.pop_back()) {
    const CliqueChange& change = clique_trail_.back();
    Clique& clique = state_[change.clique];
    clique.choices = change.choices;
    clique.floor = change.floor;
    clique.ceiling = change.ceiling;
    clique.next_floor = change.next_floor;
  }
}

// Enters the frame's next branch that is not an immediate dead end. Returns false if none is left.
bool ExactSearch::Advance(Frame* frame) {
  for (;;) {
    if (frame->placed >= 0 || frame->skipped) Undo(*frame);
    if (frame->placed >= 0) TakeBack(frame->placed);
    frame->placed = -1;
    if (frame->skipped) {
      states_.RememberHopeless(frame->state);
      return false;
    }
    bool alive;
    if (frame->next < frame->end) {
      frame->placed = choices_[frame->next++];
      alive = Place(frame->placed);
    } else {
      frame->skipped = true;
      alive = Skip(*frame);
    }
    if (alive && !states_.IsHopeless()) return true;
    ++failures_;
  }
}

ExactSearch::Outcome ExactSearch::Run(Bytes capacity, std::span<const int32_t> ranks, int64_t most_failures,
                                      int64_t most_work, StopCheck* stop, std::vector<Offset>* offsets) {
  ranks_ = ranks;
  Start(capacity);
  for (int32_t block = 0; block < timeline_.blocks(); ++block) {
    if (spots_[block].head > capacity - timeline_.sizes[block]) return Outcome::kNone;
  }
  if (!Propagate()) return Outcome::kNone;
  if (unplaced_blocks_ > 0) Open(ChooseClique());
  while (unplaced_blocks_ > 0) {
    if (frames_.empty()) return Outcome::kNone;
    if ((*stop)(std::exchange(work_, 0))) return Outcome::kStopped;
    if (failures_ > most_failures || stop->total_work() >= most_work) return Outcome::kStopped;
    if (!Advance(&frames_.back())) {
      choices_.resize(frames_.back().begin);
      frames_.pop_back();
    } else if (unplaced_blocks_ > 0) {
      Open(ChooseClique());
    }
  }
  offsets->resize(spots_.size());
  for (size_t block = 0; block < spots_.size(); ++block) (*offsets)[block] = spots_[block].head;
  return Outcome::kFound;
}

}  // namespace hotpack
