#include "packer/skyline.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace hotpack {
namespace {

constexpr Bytes kAnyHeight = std::numeric_limits<Bytes>::max();
// Number of walls on one side, each higher than the last, that foresight considers.
constexpr int kWallsForeseen = 8;
constexpr Offset kWallHeight = std::numeric_limits<Offset>::max();

}  // namespace

Skyline::Skyline(const Timeline& timeline) : timeline_(timeline), candidates_(timeline), unplaced_(timeline.slots) {
  all_plain_ = timeline.arcs.size() == timeline.sizes.size();
  lines_.resize(timeline.slots);
  line_bits_.resize((static_cast<size_t>(timeline.slots) + 63) / 64);
  for (int32_t block = 0; block < timeline.blocks(); ++block) {
    if (timeline.pins[block] != kNotPinned) pinned_.push_back(block);
  }
  all_plain_ = all_plain_ && pinned_.empty();
  std::sort(pinned_.begin(), pinned_.end(), [&](int32_t a, int32_t b) {
    return timeline.pins[a] != timeline.pins[b] ? timeline.pins[a] < timeline.pins[b] : a < b;
  });
}

void Skyline::Reset(std::span<const int32_t> ranks, Bytes highest) {
  track_unplaced_ = highest < kAnyHeight;
  if (track_unplaced_) unplaced_.Reset(timeline_.loads);
  candidates_.Reset(ranks);
  for (int32_t block : pinned_) candidates_.Remove(block);
  next_pin_ = 0;
  height_ = 0;
  stuck_slot_ = -1;
  heap_.Clear();
  std::fill(lines_.begin(), lines_.end(), Line{});
  std::fill(line_bits_.begin(), line_bits_.end(), 0);
  if (timeline_.walled) {
    const int32_t wall = timeline_.slots - 1;
    if (wall > 0) InsertLine(0, {0, wall, wall});
    InsertLine(wall, {kWallHeight, 1, 0});
  } else {
    InsertLine(0, {0, timeline_.slots, 0});
  }
}

// Links a line between two others. One is its `previous`, whose length is set already. The other begins where the line
// ends; it may be the line itself, if that is the only one.
void Skyline::LinkLine(int32_t begin, const Line& line) {
  lines_[begin] = line;
  lines_[NextLine(begin)].previous = begin;
  line_bits_[begin / 64] |= uint64_t{1} << (begin % 64);
}

void Skyline::InsertLine(int32_t begin, const Line& line) {
  LinkLine(begin, line);
  Push(begin);
}

void Skyline::EraseLine(int32_t line) {
  lines_[line].length = 0;
  line_bits_[line / 64] &= ~(uint64_t{1} << (line % 64));
}

void Skyline::Push(int32_t line) {
  if (lines_[line].height != kWallHeight) heap_.Push({lines_[line].height, line});
}

// Invalidates the entry of `old_line` and adds one for `line`. Usually the former is that of the chosen line, at the
// top.
void Skyline::ReplaceEntry(int32_t old_line, int32_t line) {
  if (!heap_.empty() && heap_.top().line == old_line) {
    heap_.ReplaceTop({lines_[line].height, line});
  } else {
    Push(line);
  }
}

// Returns the lowest line, of several the leftmost. One exists as long as a block is unplaced.
int32_t Skyline::LowestLine() {
  for (;; heap_.Pop()) {
    const LineHeap::Entry& top = heap_.top();
    if (lines_[top.line].length > 0 && lines_[top.line].height == top.height) return top.line;
  }
}

// Returns the line that covers the slot: the one that begins there or nearest to the left, if necessary across slot 0.
int32_t Skyline::LineAt(int32_t slot) const {
  int32_t word = slot / 64;
  uint64_t bits = line_bits_[word] & (~uint64_t{0} >> (63 - slot % 64));
  while (bits == 0) {
    word = word == 0 ? static_cast<int32_t>(line_bits_.size()) - 1 : word - 1;
    bits = line_bits_[word];
  }
  return word * 64 + 63 - std::countl_zero(bits);
}

bool Skyline::ArcsAtHeight(int32_t block, Offset height) const {
  for (const Arc& arc : timeline_.arcs_of(block)) {
    accept_work_ += 16;
    const int32_t at = LineAt(arc.begin);
    const Line& line = lines_[at];
    if (line.height != height) return false;
    const int32_t skipped = arc.begin >= at ? arc.begin - at : arc.begin - at + timeline_.slots;
    if (line.length != timeline_.slots && skipped + (arc.end - arc.begin) > line.length) return false;
  }
  return true;
}

// Returns whether no unplaced pinned block that meets the block begins below `end`. (All of them begin above the lowest
// line.)
bool Skyline::ClearOfPins(int32_t block, Offset end) const {
  for (size_t i = next_pin_; i < pinned_.size() && timeline_.pins[pinned_[i]] < end; ++i) {
    for (const Arc& pin_arc : timeline_.arcs_of(pinned_[i])) {
      for (const Arc& arc : timeline_.arcs_of(block)) {
        if (ArcsMeet(pin_arc, arc, timeline_.slots)) return false;
      }
    }
  }
  return true;
}

bool Skyline::Accepts(int32_t block, Offset line_height) const {
  if (timeline_.arcs_of(block).size() > 1 && !ArcsAtHeight(block, line_height)) return false;
  if (next_pin_ == pinned_.size()) return true;
  return ClearOfPins(block, RoundUp(line_height, timeline_.alignments[block]) + timeline_.sizes[block]);
}

// Returns false if some slot of the valley cannot be raised to the brim. There is no space for all its unplaced size
// above the brim. The rest must be placed below, and must not exceed the waiting blocks that lie within the valley.
// Checks only the first slot with such a rest; usually there is none.
bool Skyline::ValleyHasHope(Arc valley, Offset brim) const {
  const int32_t slots = timeline_.slots;
  const Bytes room = highest_ - brim;
  foresight_work_ += 32;
  int32_t slot = unplaced_.FirstAbove(room, valley.begin, std::min(valley.end, slots));
  if (slot < 0 && valley.end > slots) slot = unplaced_.FirstAbove(room, 0, valley.end - slots);
  if (slot < 0) return true;
  Bytes missing = unplaced_.At(slot) - room;
  return candidates_.AnyOver(slot, valley.begin, valley.end, [&](int32_t block) {
    foresight_work_ += 16;
    missing -= timeline_.sizes[block];
    return missing <= 0;
  });
}

// Returns whether the valleys left of a new wall have hope. The wall rises at slot `begin` (which may exceed the ring's
// end) of the line up to `top`.
bool Skyline::HopeOnTheLeft(int32_t begin, int32_t line, Offset top) const {
  int32_t left = line;
  int32_t wall = lines_[line].previous;
  Offset brim = lines_[line].height;
  for (int walls = 0; walls < kWallsForeseen; ++walls) {
    for (; lines_[wall].height <= brim && begin - left < timeline_.slots; wall = lines_[wall].previous) {
      left -= lines_[wall].length;
    }
    if (begin - left >= timeline_.slots) return true;
    brim = std::min(top, lines_[wall].height);
    if (left < begin) {
      const int32_t from = left < 0 ? left + timeline_.slots : left;
      if (!ValleyHasHope({from, from + (begin - left)}, brim)) return false;
    }
    if (brim == top) return true;
  }
  return true;
}

// The same on the right of the slot before `end`.
bool Skyline::HopeOnTheRight(int32_t end, int32_t line, Offset top) const {
  int32_t right = line + lines_[line].length;
  int32_t wall = NextLine(line);
  Offset brim = lines_[line].height;
  for (int walls = 0; walls < kWallsForeseen; ++walls) {
    for (; lines_[wall].height <= brim && right - end < timeline_.slots; wall = NextLine(wall)) {
      right += lines_[wall].length;
    }
    if (right - end >= timeline_.slots) return true;
    brim = std::min(top, lines_[wall].height);
    if (end < right) {
      const int32_t from = end < timeline_.slots ? end : end - timeline_.slots;
      if (!ValleyHasHope({from, from + (right - end)}, brim)) return false;
    }
    if (brim == top) return true;
  }
  return true;
}

// Returns whether the block, placed on the line, encloses no slots without hope on either side.
bool Skyline::LeavesHope(int32_t block, int32_t line) const {
  const Arc& arc = timeline_.arcs[timeline_.arc_starts[block]];
  const int32_t begin = arc.begin >= line ? arc.begin : arc.begin + timeline_.slots;
  const Offset top = RoundUp(lines_[line].height, timeline_.alignments[block]) + timeline_.sizes[block];
  return top <= highest_ && HopeOnTheLeft(begin, line, top) && HopeOnTheRight(begin + (arc.end - arc.begin), line, top);
}

int32_t Skyline::FindBlock(int32_t line) const {
  const Offset height = lines_[line].height;
  if (foresees_ && !IsWholeRing(line)) {
    return candidates_.FindBest(line, line + lines_[line].length,
                                [&](int32_t block) { return LeavesHope(block, line); });
  }
  if (all_plain_ && !IsWholeRing(line)) {
    return candidates_.FindBest(line, line + lines_[line].length, [](int32_t) { return true; });
  }
  const auto accept = [&](int32_t block) { return Accepts(block, height); };
  if (IsWholeRing(line)) return candidates_.FindBestAnywhere(accept);
  return candidates_.FindBest(line, line + lines_[line].length, accept);
}

// The line takes over the slots of the line to its right.
void Skyline::AbsorbNext(int32_t line) {
  const int32_t gone = NextLine(line);
  lines_[line].length += lines_[gone].length;
  lines_[NextLine(line)].previous = line;  // the line itself if there were only two
  EraseLine(gone);
}

// Joins the line with neighbours of the same height. Returns true if it is now part of the previous one, which already
// has a heap entry for this height.
bool Skyline::MergeWithEqualNeighbours(int32_t line) {
  const int32_t next = NextLine(line);
  if (next != line && lines_[next].height == lines_[line].height) AbsorbNext(line);
  const int32_t previous = lines_[line].previous;
  if (previous == line || lines_[previous].height != lines_[line].height) return false;
  AbsorbNext(previous);
  return true;
}

// Lifts the lowest line.
void Skyline::Lift(int32_t line, Offset to) {
  lines_[line].height = to;
  if (MergeWithEqualNeighbours(line)) {
    heap_.Pop();
  } else {
    ReplaceEntry(line, line);
  }
}

// Raises the slots of one arc, which lies within the line `at`, to the height `to`.
//
//      before ▁▁▁▁▁▁▁▁▁▁▁▁▁▁    after  ▁▁▁┌─────┐▁▁▁▁▁
void Skyline::RaiseArc(Arc arc, int32_t at, Offset to) {
  const int32_t slots = timeline_.slots;
  const int32_t length = arc.end - arc.begin;
  if (IsWholeRing(at)) {
    // A line without ends may be taken to begin anywhere: here, with the arc.
    const Offset height = lines_[at].height;
    EraseLine(at);
    at = arc.begin;
    InsertLine(at, {height, slots, at});
  }
  const Line line = lines_[at];
  const int32_t skipped = arc.begin >= at ? arc.begin - at : arc.begin - at + slots;
  const int32_t rest = line.length - skipped - length;
  const int32_t rest_begin = (arc.begin + length) % slots;
  if (skipped > 0) {
    if (rest > 0) InsertLine(rest_begin, {line.height, rest, arc.begin});
    lines_[at].length = skipped;  // keeps its height and its heap entry
    InsertLine(arc.begin, {to, length, at});
  } else {
    lines_[at].length = length;
    lines_[at].height = to;
    if (rest > 0) {
      // The rest usually is the lowest line now: it takes the place at the top, and the higher one is pushed.
      LinkLine(rest_begin, {line.height, rest, at});
      ReplaceEntry(at, rest_begin);
      Push(at);
    } else {
      ReplaceEntry(at, at);
    }
  }
  MergeWithEqualNeighbours(arc.begin);
}

// `line`: the line in which a block's only arc lies, or -1.
bool Skyline::Place(int32_t block, Offset offset, Bytes highest, int32_t line) {
  const Offset top = offset + timeline_.sizes[block];
  if (top > highest) return false;
  height_ = std::max(height_, top);
  (*offsets_)[block] = offset;
  candidates_.Remove(block);
  if (track_unplaced_) TakeFromUnplacedLoad(block);
  const std::span<const Arc> arcs = timeline_.arcs_of(block);
  const bool line_known = line >= 0 && arcs.size() == 1;
  for (const Arc& arc : arcs) RaiseArc(arc, line_known ? line : LineAt(arc.begin), top);
  return true;
}

void Skyline::TakeFromUnplacedLoad(int32_t block) {
  const Bytes size = timeline_.sizes[block];
  for (const Arc& arc : timeline_.arcs_of(block)) {
    unplaced_.Add(arc.begin, std::min(arc.end, timeline_.slots), -size);
    if (arc.end > timeline_.slots) unplaced_.Add(0, arc.end - timeline_.slots, -size);
  }
}

// Returns whether the unplaced size of some slot of the line does not fit between `height` and `highest`.
bool Skyline::IsHopeless(int32_t line, Offset height, Bytes highest) const {
  if (!track_unplaced_) return false;
  const int32_t end = line + lines_[line].length;
  return unplaced_.AnyAbove(highest - height, line, std::min(end, timeline_.slots)) ||
         (end > timeline_.slots && unplaced_.AnyAbove(highest - height, 0, end - timeline_.slots));
}

// Returns the slot for which IsHopeless() is true.
int32_t Skyline::FirstHopelessSlot(int32_t line, Offset height, Bytes highest) const {
  const int32_t end = line + lines_[line].length;
  const int32_t slot = unplaced_.FirstAbove(highest - height, line, std::min(end, timeline_.slots));
  return slot >= 0 ? slot : unplaced_.FirstAbove(highest - height, 0, end - timeline_.slots);
}

// Returns the lowest neighbour's height, or the offset of a pinned block above the line if that is lower.
Offset Skyline::LiftTarget(int32_t line) const {
  Offset target = std::min(lines_[lines_[line].previous].height, lines_[NextLine(line)].height);
  if (IsWholeRing(line)) target = kWallHeight;
  const Arc slots{line, line + lines_[line].length};
  for (size_t i = next_pin_; i < pinned_.size() && timeline_.pins[pinned_[i]] < target; ++i) {
    for (const Arc& arc : timeline_.arcs_of(pinned_[i])) {
      if (ArcsMeet(arc, slots, timeline_.slots)) return timeline_.pins[pinned_[i]];
    }
  }
  return target;
}

// Lines stay at or below the unplaced pinned blocks in their slots. So when the lowest line has reached the lowest
// pinned block, all slots of that block have exactly this height.
bool Skyline::PlaceNextPinIfReached(Offset lowest, Bytes highest, int32_t* block) {
  *block = -1;
  if (next_pin_ == pinned_.size() || timeline_.pins[pinned_[next_pin_]] != lowest) return true;
  *block = pinned_[next_pin_++];
  return Place(*block, lowest, highest, -1);
}

bool Skyline::Dive(std::span<const int32_t> ranks, Bytes highest, StopCheck* stop, std::vector<Offset>* offsets,
                   Bytes* height, std::vector<SkylineStep>* steps, Foresight foresight) {
  const int32_t blocks = timeline_.blocks();
  offsets->assign(blocks, 0);
  offsets_ = offsets;
  Reset(ranks, highest);
  highest_ = highest;
  foresees_ = foresight == Foresight::kValleys && all_plain_ && track_unplaced_;
  for (int32_t placed = 0; placed < blocks;) {
    if ((*stop)(64 + std::exchange(foresight_work_, 0) + std::exchange(accept_work_, 0))) return false;
    const int32_t line = LowestLine();
    // Lines follow one another all over the ring. In large instances they are not in the cache: prefetch them
    // meanwhile.
    heap_.VisitNext([&](int32_t next) { __builtin_prefetch(&lines_[next]); });
    SkylineStep step{line, line + lines_[line].length, lines_[line].height, -1, 0};
    if (!PlaceNextPinIfReached(step.height, highest, &step.block)) return false;
    if (step.block < 0) {
      step.block = FindBlock(line);
      if (step.block >= 0 &&
          !Place(step.block, RoundUp(step.height, timeline_.alignments[step.block]), highest, line)) {
        return false;
      }
    }
    if (step.block >= 0) {
      ++placed;
      step.to = (*offsets)[step.block] + timeline_.sizes[step.block];
    } else {
      step.to = LiftTarget(line);
      if (IsHopeless(line, step.to, highest)) {
        stuck_slot_ = FirstHopelessSlot(line, step.to, highest);
        return false;
      }
      Lift(line, step.to);
    }
    if (steps != nullptr) steps->push_back(step);
  }
  *height = height_;
  return true;
}

}  // namespace hotpack
