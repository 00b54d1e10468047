#include <algorithm>
#include <vector>

#include "small_instance.h"

namespace hotpack::testing {
namespace {

struct Piece {
  Clock begin, end;
  Offset bottom, top;
};

bool Chance(double probability, Random* random) { return random->Unit() < probability; }

// In [least, most].
int64_t Draw(int64_t least, int64_t most, Random* random) { return least + random->Below(most - least + 1); }

// Cuts the piece into `pieces`, or fewer where it gets too small. Appends them.
void Cut(const Piece& piece, int64_t pieces, Random* random, std::vector<Piece>* all) {
  const Clock width = piece.end - piece.begin;
  const Bytes height = piece.top - piece.bottom;
  if (pieces <= 1 || (width == 1 && height == 1)) {
    all->push_back(piece);
    return;
  }
  if (pieces >= 5 && width >= 3 && height >= 3 && Chance(0.4, random)) {
    const Clock left = Draw(piece.begin + 1, piece.end - 2, random);
    const Clock right = Draw(left + 1, piece.end - 1, random);
    const Offset lower = Draw(piece.bottom + 1, piece.top - 2, random);
    const Offset upper = Draw(lower + 1, piece.top - 1, random);
    const Piece wheel[] = {{piece.begin, right, upper, piece.top},
                           {right, piece.end, lower, piece.top},
                           {left, piece.end, piece.bottom, lower},
                           {piece.begin, left, piece.bottom, upper},
                           {left, right, lower, upper}};
    int64_t left_over = pieces - 5;
    for (const Piece& part : wheel) {
      const int64_t more = Draw(0, left_over, random);
      left_over -= more;
      Cut(part, 1 + more, random, all);
    }
    return;
  }
  const int64_t first = Draw(1, pieces - 1, random);
  Piece low = piece;
  Piece high = piece;
  if (height == 1 || (width > 1 && Chance(0.5, random))) {
    low.end = high.begin = Draw(piece.begin + 1, piece.end - 1, random);
  } else {
    low.top = high.bottom = Draw(piece.bottom + 1, piece.top - 1, random);
  }
  Cut(low, first, random, all);
  Cut(high, pieces - first, random, all);
}

// Rotates time by `shift`: intervals that pass the end continue at 0.
Block BlockOf(const Piece& piece, Clock clocks, Clock shift) {
  Block block;
  block.size = piece.top - piece.bottom;
  const Clock begin = (piece.begin + shift) % clocks;
  const Clock end = begin + (piece.end - piece.begin);
  if (end <= clocks) {
    block.residency = {{begin, end}};
  } else if (end - clocks == begin) {
    block.residency = {{0, clocks}};
  } else {
    block.residency = {{0, end - clocks}, {begin, clocks}};
  }
  return block;
}

void Erase(size_t block, KnownInstance* known) {
  known->instance.blocks.erase(known->instance.blocks.begin() + static_cast<std::ptrdiff_t>(block));
  known->placement.offsets.erase(known->placement.offsets.begin() + static_cast<std::ptrdiff_t>(block));
}

// Blocks of the same size at the same offset can be one block: they are never resident together.
void MergeSome(Random* random, KnownInstance* known) {
  std::vector<Block>& blocks = known->instance.blocks;
  const std::vector<Offset>& offsets = known->placement.offsets;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = blocks.size() - 1; j > i; --j) {
      if (offsets[i] != offsets[j] || blocks[i].size != blocks[j].size || Chance(0.5, random)) continue;
      blocks[i].residency.insert(blocks[i].residency.end(), blocks[j].residency.begin(), blocks[j].residency.end());
      std::sort(blocks[i].residency.begin(), blocks[i].residency.end(),
                [](const Residency& a, const Residency& b) { return a.begin < b.begin; });
      Erase(j, known);
    }
  }
}

// Leaves blocks out, or takes the middle out of an interval.
void Thin(Random* random, KnownInstance* known) {
  std::vector<Block>& blocks = known->instance.blocks;
  for (size_t i = blocks.size(); i-- > 0;) {
    Residency& last = blocks[i].residency.back();
    if (Chance(0.1, random) && blocks.size() > 1) {
      Erase(i, known);
    } else if (Chance(0.2, random) && last.end - last.begin >= 3) {
      const Clock end = last.end;
      last.end = Draw(last.begin + 1, end - 2, random);
      blocks[i].residency.push_back({Draw(last.end + 1, end - 1, random), end});
    }
  }
}

void AlignAndPinSome(double aligned, double pinned, Random* random, KnownInstance* known) {
  constexpr Bytes kAlignments[] = {2, 3, 4, 5, 8, 16};
  for (size_t i = 0; i < known->instance.blocks.size(); ++i) {
    Block& block = known->instance.blocks[i];
    const Offset offset = known->placement.offsets[i];
    const Bytes alignment = kAlignments[random->Below(std::size(kAlignments))];
    if (offset % alignment == 0 && Chance(aligned, random)) block.alignment = alignment;
    if (Chance(pinned, random)) block.pinned = offset;
  }
}

void Shuffle(Random* random, KnownInstance* known) {
  for (size_t i = known->instance.blocks.size(); i > 1; --i) {
    const auto other = static_cast<size_t>(random->Below(static_cast<int64_t>(i)));
    std::swap(known->instance.blocks[i - 1], known->instance.blocks[other]);
    std::swap(known->placement.offsets[i - 1], known->placement.offsets[other]);
  }
}

}  // namespace

KnownInstance CutRectangle(int max_blocks, Random* random) {
  const int64_t blocks = std::max(Draw(1, max_blocks, random), Draw(1, max_blocks, random));
  const bool coarse = Chance(0.5, random);  // many cuts at the same places
  const Clock clocks = coarse ? Draw(2, 4 + blocks, random) : Draw(blocks, 20 * blocks, random);
  const Bytes height = coarse ? Draw(2, 4 + blocks, random) : Draw(blocks, 50 * blocks, random);
  std::vector<Piece> pieces;
  Cut({0, clocks, 0, height}, blocks, random, &pieces);

  KnownInstance known;
  const Clock shift = Chance(0.4, random) ? random->Below(clocks) : 0;
  for (const Piece& piece : pieces) {
    known.instance.blocks.push_back(BlockOf(piece, clocks, shift));
    known.placement.offsets.push_back(piece.bottom);
  }
  if (Chance(0.3, random)) MergeSome(random, &known);
  if (Chance(0.2, random)) Thin(random, &known);
  if (Chance(0.4, random)) AlignAndPinSome(Chance(0.5, random) ? 0.5 : 0, random->Unit() / 2, random, &known);
  Shuffle(random, &known);
  for (size_t i = 0; i < known.instance.blocks.size(); ++i) {
    known.placement.height =
        std::max(known.placement.height, known.placement.offsets[i] + known.instance.blocks[i].size);
  }
  return known;
}

}  // namespace hotpack::testing
