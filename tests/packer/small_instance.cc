#include "small_instance.h"

#include <algorithm>
#include <iterator>

#include "random_instance.h"

namespace hotpack::testing {
namespace {

constexpr Bytes kAlignments[] = {1, 2, 3, 4, 5, 8, 16};

int64_t Draw(int64_t least, int64_t most, Random* random) { return least + random->Below(most - least + 1); }

bool Chance(double probability, Random* random) { return random->Unit() < probability; }

template <typename T, size_t kCount>
T AnyOf(const T (&values)[kCount], Random* random) {
  return values[random->Below(kCount)];
}

// Properties that all blocks of an instance share.
struct Shape {
  explicit Shape(Random* random)
      : clocks(AnyOf({Clock{2}, Clock{3}, Clock{4}, Clock{6}, Clock{9}, Clock{14}, Clock{60}}, random)),
        largest(AnyOf({Bytes{1}, Bytes{2}, Bytes{3}, Bytes{5}, Bytes{8}, Bytes{16}, Bytes{100}}, random)),
        size_step(Chance(0.8, random) ? 1 : Draw(2, 8, random)),
        short_lived(Chance(0.3, random)),
        always(AnyShare(random) / 4),
        carried(AnyShare(random)),
        several(AnyShare(random)),
        aligned(AnyShare(random)),
        one_alignment(Chance(0.2, random) ? AnyOf(kAlignments, random) : 0),
        equal(AnyShare(random) / 2),
        pinned(AnyShare(random) / 2) {}

  static double AnyShare(Random* random) { return AnyOf({0.0, 0.0, 0.3, 1.0}, random); }

  Clock clocks;  // residency lies in [0, clocks)
  Bytes largest;
  Bytes size_step;  // sizes are multiples of it
  bool short_lived;
  double always, carried, several, aligned;  // shares of blocks
  Bytes one_alignment;                       // of all aligned blocks; 0: each draws its own
  double equal, pinned;
};

Residency AnyInterval(Clock begin, Clock end, bool is_short, Random* random) {
  const Clock from = Draw(begin, end - 1, random);
  return {from, is_short ? std::min(end, from + Draw(1, 2, random)) : Draw(from + 1, end, random)};
}

void DrawResidency(const Shape& shape, Random* random, Block* block) {
  if (Chance(shape.always, random)) {
    block->residency = {{0, shape.clocks}};
  } else if (Chance(shape.carried, random)) {  // the middle is left out; touching intervals are allowed
    const Clock first_end = Draw(1, shape.clocks - 1, random);
    block->residency = {{0, first_end}, {Draw(first_end, shape.clocks - 1, random), shape.clocks}};
  } else if (Chance(shape.several, random)) {
    for (Clock from = 0; from < shape.clocks && block->residency.size() < 4;) {
      block->residency.push_back(AnyInterval(from, shape.clocks, Chance(0.7, random), random));
      from = block->residency.back().end;
    }
  } else {
    block->residency = {AnyInterval(0, shape.clocks, shape.short_lived, random)};
  }
}

Block DrawBlock(const Shape& shape, Random* random) {
  Block block;
  block.size = shape.size_step * Draw(1, shape.largest, random);
  if (Chance(shape.aligned, random)) {
    block.alignment = shape.one_alignment > 0 ? shape.one_alignment : AnyOf(kAlignments, random);
  }
  DrawResidency(shape, random, &block);
  return block;
}

bool CollidesWithPins(const Instance& instance, size_t block) {
  const Block& of = instance.blocks[block];
  for (size_t other = 0; other < instance.blocks.size(); ++other) {
    const Block& pin = instance.blocks[other];
    if (other == block || pin.pinned == kNotPinned) continue;
    if (of.pinned < pin.pinned + pin.size && pin.pinned < of.pinned + of.size && ResidentTogether(of, pin)) return true;
  }
  return false;
}

// Below the sum of sizes, so that some pins are far above the load, and holes below them too low for anything.
void PinSome(const Shape& shape, Random* random, Instance* instance) {
  Bytes sum = 0;
  for (const Block& block : instance->blocks) sum += block.size;
  const Offset highest = Chance(0.7, random) ? sum / 2 : sum;
  for (size_t block = 0; block < instance->blocks.size(); ++block) {
    if (!Chance(shape.pinned, random)) continue;
    Block& of = instance->blocks[block];
    of.pinned = Draw(0, highest, random) / of.alignment * of.alignment;
    if (CollidesWithPins(*instance, block)) of.pinned = kNotPinned;
  }
}

void ShiftClocks(Clock by, Instance* instance) {
  for (Block& block : instance->blocks) {
    for (Residency& residency : block.residency) {
      residency.begin += by;
      residency.end += by;
    }
  }
}

}  // namespace

Instance SmallInstance(int max_blocks, Random* random) {
  if (Chance(0.25, random)) return CutRectangle(max_blocks, random).instance;
  const Shape shape(random);
  Instance instance;
  const int64_t blocks = std::max(Draw(1, max_blocks, random), Draw(1, max_blocks, random));
  for (int64_t i = 0; i < blocks; ++i) {
    if (i > 0 && Chance(shape.equal, random)) {
      Block copy = instance.blocks[random->Below(i)];
      if (Chance(0.5, random)) std::swap(copy.residency, instance.blocks[random->Below(i)].residency);
      instance.blocks.push_back(copy);
    } else {
      instance.blocks.push_back(DrawBlock(shape, random));
    }
  }
  if (shape.pinned > 0) PinSome(shape, random, &instance);
  if (Chance(0.1, random)) ShiftClocks(AnyOf({Clock{-1}, Clock{-1000}, Clock{1} << 40}, random), &instance);
  return instance;
}

Instance HardInstance(int blocks, uint64_t seed) {
  Random random(seed);
  Instance instance = CutRectangle(blocks, &random).instance;
  for (Block& block : instance.blocks) {
    block.size = 1000 * block.size + random.Below(200);
    block.alignment = 1;
    block.pinned = kNotPinned;
  }
  return instance;
}

Instance AboveItsLoad() {
  return {{{.size = 4, .residency = {{1, 2}}},
           {.size = 3, .residency = {{4, 6}}},
           {.size = 5, .residency = {{7, 8}}},
           {.size = 5, .residency = {{6, 8}}},
           {.size = 3, .residency = {{5, 7}}},
           {.size = 5, .residency = {{0, 5}}},
           {.size = 2, .residency = {{3, 7}}}}};
}

}  // namespace hotpack::testing
