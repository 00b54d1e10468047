// Core types of hotpack: the words every other file uses.
//
//   request             one call that asks for device memory; its ordinal in the iteration is λ (lambda)
//   clock               a counter that moves by one at each allocation and each release (Sekiyama 2018, §4.1: y)
//   block               one request's memory: size, alignment, residency, stream
//   residency           the half-open clock intervals [begin, end) in which a block must be at its offset.
//                       One interval as a rule; two for a carried block, or one that is swapped out in between
//   hot iteration       the part of the run whose request sequence repeats; its length is the period
//   carried block       released in a later iteration than the one that asked for it
//   retained block      not released within K periods (weights, optimizer state); not packed
//   instance/placement  what the packer is given / what it returns: one offset a block
//   load, lower bound   sum of resident sizes at a clock value; its maximum. No placement is lower
//   height              top of the highest block of a placement
//   script              the requests of one hot iteration in order, with size, offset and spatial predecessors
//   spatial predecessor a block that used some of the same addresses before: released (and its work done) first
//   on / off script     the next request is the one expected / is not
//   planned / dynamic   a block placed by the script / by best fit
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

// The lowest multiple of `alignment` that is at least `offset`. offset ≥ 0, alignment ≥ 1.
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

// What the packer is given. A block is named by its index.
struct Instance {
  std::vector<Block> blocks;
};

// What the packer returns: offsets[i] belongs to blocks[i].
struct Placement {
  std::vector<Offset> offsets;
  Bytes height = 0;  // max over blocks of offset + size; 0 if there are no blocks
};

}  // namespace hotpack
