// Lower bounds on the height of any placement.
#pragma once

#include "packer/timeline.h"
#include "packer/types.h"

namespace hotpack {

// The largest sum of sizes resident at one clock value ("load"), in bytes. O(n log n). 0 for an empty instance. The sum
// of all sizes must fit (Pack() calls the opposite kOverflow). Thread-safe.
Bytes MaxLoad(const Instance& instance);

// The best bound that is known cheaply, the largest of
//  - the load's maximum;
//  - the top of the highest pinned block;
//  - for each alignment a that leaves gaps, the largest aligned load: only the blocks whose alignment is a multiple of
//    a count. All of them begin at multiples of a, so those resident together are as high as the sum of their sizes
//    rounded up to a, less what rounding added to the topmost.
// O(n log n) times the number of such alignments, of which at most eight are tried. The timeline must have blocks.
Bytes LowerBound(const Timeline& timeline);

// The same; 0 for an empty instance. The instance must be well-formed (CheckInstance() says kOk).
Bytes LowerBound(const Instance& instance);

// The number of bytes, ≥ 1, in which the offsets and the height of some lowest placement can be counted: the largest g
// that divides all sizes and pinned offsets and, for each alignment, divides it or is a multiple of it. Rounding every
// offset of a placement down to a multiple of g keeps it valid and makes it no higher (docs/exact_model.md has the
// proof). The timeline must have blocks. O(n) a pass, and few passes.
Bytes HeightUnit(const Timeline& timeline);

}  // namespace hotpack
