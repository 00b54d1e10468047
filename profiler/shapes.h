// Iterations of several shapes: training and evaluation, sequence lengths, a smaller last batch. If they come in no
// regular order, there is no period. But little memory is live between two iterations. So the history is cut into
// pieces there, and equal pieces are the same shape.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/history.h"
#include "profiler/profile.h"

namespace hotpack {

// A piece of a history that occurred several times.
//
//   live ▲    ╱╲        ╱╲   ╱╲
//        │   ╱  ╲  ╱╲  ╱  ╲ ╱  ╲    b: twice, a: three times; c lies below the line: part of the previous piece
//        │··╱····╲╱··╲╱····╲·····c··
//        └──┴ a  ┴ b ┴ a ...
struct Shape {
  std::vector<uint64_t> begins;  // of its occurrences: indices into the tail, ascending; at least two
  uint64_t length = 0;           // requests
};

// Returns where the pieces of a history begin according to FindShapes, whether they repeat or not: indices into the
// tail, ascending. The last index ends the last piece. Fewer than two: there is no piece. O(n).
std::vector<uint64_t> PieceBounds(const HistoryTail& tail);

// Returns the shapes at a history's end, the one with most requests in total first. A piece begins between two hills,
// at the first place where least is live. A hill rises above a sixteenth of the range. Blocks not released within half
// the tail count as permanent. O(n log n).
std::vector<Shape> FindShapes(const HistoryTail& tail);

// Builds the profile of a shape's occurrences, as a cycle. A block released after the piece's end is planned as carried
// into the same piece. If another piece with the same end carries a block into this shape, the block's place is kept
// for the longer of the two lives. O(length × occurrences), at most 16 of them.
Profile BuildShapeProfile(const HistoryTail& tail, const Shape& shape);

}  // namespace hotpack
