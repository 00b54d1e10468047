// Lower bounds on the height of any placement.
#pragma once

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// Returns the largest sum of sizes resident at one clock value ("load"), in bytes; 0 for an empty instance. The sum of
// all sizes must not overflow (Pack() returns kOverflow then). O(n log n). Thread-safe.
Bytes MaxLoad(const Instance& instance);

// Returns the best bound that is cheap to compute, the largest of
// - the load's maximum;
// - the top of the highest pinned block;
// - for each alignment a that leaves gaps, the largest aligned load. Only blocks whose alignment is a multiple of a
//   count. All of them begin at multiples of a. So those resident together are as high as the sum of their sizes
//   rounded up to a, less what rounding added to the topmost.
// O(n log n) times the number of such alignments, of which at most eight are tried. The timeline must have blocks.
Bytes LowerBound(const Timeline& timeline);

// The same; 0 for an empty instance. The instance must be well-formed (CheckInstance() returns kOk).
Bytes LowerBound(const Instance& instance);

// Returns a number of bytes, ≥ 1, such that the offsets and the height of some lowest placement are multiples of it. It
// is the largest g that divides all sizes and pinned offsets and, for each alignment, divides it or is a multiple of
// it. Rounding every offset of a placement down to a multiple of g keeps it valid and makes it no higher (proof:
// docs/research/exact_model.md). The timeline must have blocks. O(n) per pass; few passes.
Bytes HeightUnit(const Timeline& timeline);

}  // namespace hotpack
