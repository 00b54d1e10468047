// Core types of hotpack, and the glossary: the words that every other file uses.
//
// Requests and plans
//   request             one call that asks for device memory; its ordinal in the iteration is λ (lambda)
//   clock               a counter that moves by one at each allocation and each release (Sekiyama 2018, §4.1: y)
//   block               one request's memory: size, alignment, residency. The packer does not know streams
//   residency           the half-open clock intervals [begin, end) in which a block must be at its offset.
//                       Usually one interval; two for a carried block, or for one that is swapped out in between
//   hot iteration       the part of the run whose request sequence repeats; its length is the period
//   phase               the script's entry with which an iteration of the job begins
//   shape               the request sequence of one kind of iteration, if a job has several kinds (profiler/shapes.h)
//   carried block       released in a later iteration than the one that asked for it
//   retained block      not released within K periods (weights, optimizer state); not packed
//   instance/placement  the packer's input / its result: one offset per block
//   load, lower bound   sum of resident sizes at a clock value; its maximum. No placement is lower
//   height              top of the highest block of a placement
//
// Scripts
//   script              the requests of one hot iteration in order, with size, offset and spatial predecessors
//   envelope            one sequence of entries that has every iteration seen as a subsequence (docs/envelope.md)
//   variant             one of the scripts that a job is known to follow; the job follows one at a time
//   spatial predecessor a block that used some of the same addresses before: released (and its work done) first
//   on / off script     the next request is the one expected / is not
//   planned / dynamic   a block placed by the script / by best fit
//   displaced           a request that the script has a place for, served elsewhere because that place is still in use
//   ghost               a turn of an entry that was not taken: its request was missing or displaced. It ends by itself
//                       when its spatial predecessors have ended
//   foreign             a block that lies where the followed script has places, but is not served by that script
//   parked              no script is followed; the last one waits, without memory, for its iteration
//   steady              a script is followed, all its pages are mapped, and no better plan is due
//
// Memory
//   chunk               an aligned run of addresses that is mapped as a whole (DeviceMemory::ChunkBytes)
//   page                the physical memory of one chunk, mapped or in the arena's pool
//   extent              the physical memory of one driver handle: one or several chunks, mapped and unmapped as a whole
//   zone                a range of the arena's addresses: the planned zone belongs to the followed script,
//                       the dynamic zone to best fit
//   fragment            free memory outside the planned zone that is held anyway, because retained blocks lie in the
//                       same extents. A script may place blocks there
//   idle range          a part of the planned zone that no live block uses, and no entry during an expected life.
//                       A displaced block may lie there
//   reserved range      a part of the zone that blocks of other scripts use during the whole cycle. A new plan keeps
//                       it free
//
//   offset ▲   ┌───────────┐
//          │   │  block 2  │        block 1 has two residency intervals: it is carried
//          ├───┼───────┬───┼───┐    over the iteration boundary and keeps one offset
//          │ 1 │   0   │   │ 1 │
//          └───┴───────┴───┴───┴──► clock
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace hotpack {

using Bytes = int64_t;   // a size in bytes, ≥ 0
using Offset = int64_t;  // an address in bytes, relative to the start of the arena, ≥ 0
using Clock = int64_t;   // a moment, in clock ticks

// Half-open interval of clock ticks, begin < end.
struct Residency {
  Clock begin;
  Clock end;
};

inline constexpr Offset kNotPinned = -1;

// Returns the lowest multiple of `alignment` that is at least `offset`. offset ≥ 0, alignment ≥ 1.
constexpr Offset RoundUp(Offset offset, Bytes alignment) {
  const Offset rest = offset % alignment;
  return rest == 0 ? offset : offset + (alignment - rest);
}

struct Block {
  Bytes size = 0;                               // > 0
  Bytes alignment = 1;                          // ≥ 1; the offset is a multiple of it. Need not be a power of two
  Offset pinned = kNotPinned;                   // ≥ 0: the block must be placed exactly here
  absl::InlinedVector<Residency, 1> residency;  // at least one; ascending, disjoint
};

// The packer's input. A block is identified by its index.
struct Instance {
  std::vector<Block> blocks;
};

// The packer's result: offsets[i] belongs to blocks[i].
struct Placement {
  std::vector<Offset> offsets;
  Bytes height = 0;  // max over blocks of offset + size; 0 if there are no blocks
};

}  // namespace hotpack
