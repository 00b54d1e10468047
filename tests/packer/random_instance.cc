#include "random_instance.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hotpack::testing {
namespace {

int64_t Draw(int64_t least, int64_t most, std::mt19937_64* random) {
  return std::uniform_int_distribution<int64_t>(least, most)(*random);
}

bool Chance(double probability, std::mt19937_64* random) {
  return std::uniform_real_distribution<double>(0, 1)(*random) < probability;
}

// `count` different clock values in [0, clocks], ascending.
std::vector<Clock> DifferentClocks(size_t count, Clock clocks, std::mt19937_64* random) {
  std::vector<Clock> values;
  while (values.size() < count) {
    const Clock value = Draw(0, clocks, random);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Each at the lowest offset that is free for it among the blocks before it, found by trying.
Offset LowestFreeOffset(const Instance& instance, const std::vector<Offset>& offsets, size_t block) {
  const Block& placed = instance.blocks[block];
  for (Offset offset = 0;; offset += placed.alignment) {
    bool free = true;
    for (size_t other = 0; other < block && free; ++other) {
      free = !ResidentTogether(placed, instance.blocks[other]) ||
             offset >= offsets[other] + instance.blocks[other].size || offsets[other] >= offset + placed.size;
    }
    if (free) return offset;
  }
}

void PinSome(double share, std::mt19937_64* random, Instance* instance) {
  std::vector<Offset> offsets;
  for (size_t block = 0; block < instance->blocks.size(); ++block) {
    offsets.push_back(LowestFreeOffset(*instance, offsets, block));
    if (Chance(share, random)) instance->blocks[block].pinned = offsets[block];
  }
}

}  // namespace

uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const char* const set = std::getenv("HOTPACK_TEST_SEED");
    const uint64_t value = set != nullptr ? std::strtoull(set, nullptr, 10) : 20180214;
    std::printf("HOTPACK_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

Instance RandomInstance(const InstanceShape& shape, std::mt19937_64* random) {
  Instance instance;
  for (int i = 0; i < shape.blocks; ++i) {
    Block block;
    block.size = Draw(1, shape.largest, random);
    if (Chance(shape.alignments, random)) block.alignment = Draw(2, 8, random);
    if (Chance(shape.carried, random)) {
      const std::vector<Clock> inner = DifferentClocks(2, shape.clocks - 2, random);
      block.residency = {{0, inner[0] + 1}, {inner[1] + 1, shape.clocks}};
    } else {
      const size_t intervals = Chance(shape.gaps, random) ? static_cast<size_t>(Draw(2, 3, random)) : 1;
      const std::vector<Clock> ends = DifferentClocks(2 * intervals, shape.clocks, random);
      for (size_t k = 0; k < intervals; ++k) block.residency.push_back({ends[2 * k], ends[2 * k + 1]});
    }
    instance.blocks.push_back(block);
  }
  if (shape.pinned > 0) PinSome(shape.pinned, random, &instance);
  return instance;
}

Instance ManySizedInstance(int blocks, uint64_t seed) {
  std::mt19937_64 random(seed);
  InstanceShape shape;
  shape.blocks = blocks;
  shape.clocks = 4 * blocks;
  shape.largest = 100'000;
  shape.alignments = 0.3;
  shape.carried = 0.1;
  shape.gaps = 0.2;
  return RandomInstance(shape, &random);
}

InstanceShape RandomShape(std::mt19937_64* random) {
  constexpr double kShares[] = {0, 0, 0.2, 1.0};
  const auto share = [&] { return kShares[Draw(0, 3, random)]; };
  InstanceShape shape;
  shape.blocks = static_cast<int>(Draw(0, 60, random));
  shape.clocks = Draw(8, 100, random);
  shape.largest = Draw(1, 100, random);
  shape.alignments = share();
  shape.carried = share();
  shape.gaps = share();
  shape.pinned = share() / 2;
  return shape;
}

bool ResidentTogether(const Block& a, const Block& b) {
  for (const Residency& x : a.residency) {
    for (const Residency& y : b.residency) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace hotpack::testing
