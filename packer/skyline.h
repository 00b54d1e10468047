// The skyline of offset lines, and one dive over it: the best-fit procedure with any order of preference among blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packer/candidate_tree.h"
#include "packer/line_heap.h"
#include "packer/load_tree.h"
#include "packer/stop.h"
#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// One step of a dive, for tests and drawings.
struct SkylineStep {
  int32_t line_begin;  // the chosen line: slots [line_begin, line_end), line_end may exceed the ring's length
  int32_t line_end;
  Offset height;  // of the line before the step
  int32_t block;  // placed block; -1: the line was lifted
  Offset to;      // top of the block, or the height that the line was lifted to
};

// A dive repeats these steps until all blocks are placed (Sekiyama 2018, §3.2):
// 1. Choose the lowest offset line, of several the leftmost.
// 2. Place on it the block of highest rank among those that fit.
// 3. If none fits, lift the line to its lowest neighbour and merge (with both if they are equal).
//
//    height ▲   ┌──────┐              a line is a maximal run of slots of equal height
//           │   │      │▁▁▁▁▁▁▁▁▁▁    ▁ two lines: the right one is chosen
//           │▁▁▁│      │          │
//           └───┴──────┴──────────┴──► slots, a ring or walled (packer/timeline.h)
//
// Extensions of the paper, without effect on instances without such blocks:
// - Alignment: a block goes to the line's height rounded up. The space below it is lost.
// - Several arcs: a block fits a line if one arc lies within it and the others lie within lines of the same height.
// - Pinned blocks: a block fits only if it does not collide with the pinned blocks above the line. A lift stops at the
//   first pinned block above the line. A pinned block is placed as soon as the lowest line has reached its offset.
//
// Foresight::kValleys skips a block if its sides would enclose slots that could then no longer be filled:
//
//    highest ─────────────────────────     the block would be a wall of height `top` left and right of it. Blocks that
//    top    ▲  ┌─────┐                     fit between it and the next wall must raise the slots there to the lower
//           │  │block│    ┌──────          of the two walls (then to the next higher one, over wider slots). A slot
//           │▁▁│     │▁▁▁▁│                has hope if its permitted waste and the waiting blocks that cover it
//           └─────────valley──────► slots  within these walls add up to that height.
//
// Each of at most n placements and n + lines lifts takes about O(log n). Not thread-safe. Reusable for further dives
// without allocation.
class Skyline {
 public:
  enum class Foresight { kNone, kValleys };

  explicit Skyline(const Timeline& timeline);

  // Makes a dive. `ranks`: by block, different numbers ≥ 0, the highest preferred. `offsets`: by block, overwritten.
  // Returns false if `stop` fires, or as soon as the height is certain to exceed `highest`. That is checked at each
  // lift: no slot of the line may become higher than `highest` less the size still to be placed there. `steps`, unless
  // null, is appended to. Foresight requires a `highest`, one arc per block, and no pinned blocks; otherwise it has no
  // effect.
  bool Dive(std::span<const int32_t> ranks, Bytes highest, StopCheck* stop, std::vector<Offset>* offsets, Bytes* height,
            std::vector<SkylineStep>* steps = nullptr, Foresight foresight = Foresight::kNone);

  // After a dive that gave up: the first slot at which the unplaced blocks would no longer fit below `highest`. Returns
  // -1 if another reason ended the dive (a block's alignment, a pinned block, `stop`).
  int32_t stuck_slot() const { return stuck_slot_; }
  // Returns whether the last dive left the block unplaced. Pinned blocks count as placed.
  bool IsWaiting(int32_t block) const { return candidates_.Holds(block); }

 private:
  // A line is identified by its first slot.
  struct Line {
    Offset height = 0;
    int32_t length = 0;  // 0: no line begins here
    int32_t previous = 0;
  };
  void Reset(std::span<const int32_t> ranks, Bytes highest);
  void Push(int32_t line);
  void ReplaceEntry(int32_t old_line, int32_t line);
  int32_t LowestLine();
  int32_t LineAt(int32_t slot) const;
  int32_t NextLine(int32_t line) const {
    const int32_t next = line + lines_[line].length;
    return next < timeline_.slots ? next : next - timeline_.slots;
  }
  bool IsWholeRing(int32_t line) const { return lines_[line].length == timeline_.slots; }

  int32_t FindBlock(int32_t line) const;
  bool Accepts(int32_t block, Offset line_height) const;
  bool LeavesHope(int32_t block, int32_t line) const;
  bool HopeOnTheLeft(int32_t begin, int32_t line, Offset top) const;
  bool HopeOnTheRight(int32_t end, int32_t line, Offset top) const;
  bool ValleyHasHope(Arc valley, Offset brim) const;
  bool ClearOfPins(int32_t block, Offset end) const;
  bool ArcsAtHeight(int32_t block, Offset height) const;

  bool Place(int32_t block, Offset offset, Bytes highest, int32_t line);
  bool IsHopeless(int32_t line, Offset height, Bytes highest) const;
  int32_t FirstHopelessSlot(int32_t line, Offset height, Bytes highest) const;
  void TakeFromUnplacedLoad(int32_t block);
  void RaiseArc(Arc arc, int32_t at, Offset to);
  void LinkLine(int32_t begin, const Line& line);
  void InsertLine(int32_t begin, const Line& line);
  void EraseLine(int32_t line);
  void AbsorbNext(int32_t line);
  bool MergeWithEqualNeighbours(int32_t line);
  void Lift(int32_t line, Offset to);
  Offset LiftTarget(int32_t line) const;
  bool PlaceNextPinIfReached(Offset lowest, Bytes highest, int32_t* block);

  const Timeline& timeline_;
  CandidateTree candidates_;
  LoadTree unplaced_;  // load of the unplaced blocks; valid only while track_unplaced_
  Bytes highest_ = 0;
  mutable int64_t accept_work_ = 0;     // of blocks with several intervals: as the next
  mutable int64_t foresight_work_ = 0;  // memory words touched, approximately, since the last step
  bool foresees_ = false;
  bool all_plain_ = false;  // no block has pins or several arcs: each accepts any line that it lies within
  bool track_unplaced_ = false;
  std::vector<Line> lines_;                 // by first slot
  std::vector<uint64_t> line_bits_;         // bit s: a line begins at slot s
  LineHeap heap_;                           // an entry counts if its line still has that height
  std::vector<int32_t> pinned_;             // pinned blocks by ascending offset
  size_t next_pin_ = 0;                     // those before it are placed
  std::vector<Offset>* offsets_ = nullptr;  // of the dive in progress
  Bytes height_ = 0;
  int32_t stuck_slot_ = -1;
};

}  // namespace hotpack
