// Iterations of several shapes: training and evaluation, sequence lengths, a last batch that is smaller. Where they
// come in no regular order there is no period; but between two iterations little is live, so the history falls into
// pieces there, and equal pieces are the same shape.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/history.h"
#include "profiler/profile.h"

namespace hotpack {

// A piece of a history that came several times.
//
//   live ▲    ╱╲        ╱╲   ╱╲
//        │   ╱  ╲  ╱╲  ╱  ╲ ╱  ╲    b: twice, a: thrice; c lies below the line: it belongs to the piece before it
//        │··╱····╲╱··╲╱····╲·····c··
//        └──┴ a  ┴ b ┴ a ...
struct Shape {
  std::vector<uint64_t> begins;  // of its occurrences: indices into the tail, ascending; at least two
  uint64_t length = 0;           // requests
};

// Where the pieces of a history begin, as FindShapes sees them, whether they come again or not: indices into the tail,
// ascending; the last one ends the last piece. Fewer than two: there is no piece. O(n).
std::vector<uint64_t> PieceBounds(const HistoryTail& tail);

// The shapes that a history's end is made of, those with most requests in all first. A piece begins where least is live
// between two hills, the first such place; a hill rises above a sixteenth of the range. What has not been released
// within half the tail counts as staying. O(n log n).
std::vector<Shape> FindShapes(const HistoryTail& tail);

// What one occurrence after the other lived like, as a cycle: a block that is released after the piece's end is planned
// as carried into the same piece; what another piece that ends alike carries into it lives as long as that one does.
// O(length × occurrences), at most 16 of them.
Profile BuildShapeProfile(const HistoryTail& tail, const Shape& shape);

}  // namespace hotpack
