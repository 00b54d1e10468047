#include "profiler/uses.h"

#include <algorithm>
#include <unordered_map>

namespace hotpack {
namespace {

bool IsTick(const Event& event) { return event.kind == EventKind::kAllocate || event.kind == EventKind::kRelease; }

using BlockIndex = std::unordered_map<uint64_t, uint64_t>;  // id → index in Uses::blocks

BlockIndex ListBlocks(const Trace& trace, Uses* uses) {
  BlockIndex index;
  for (size_t position = 0; position < trace.events.size(); ++position) {
    const Event& event = trace.events[position];
    if (event.kind == EventKind::kAllocate) {
      index[event.id] = uses->blocks.size();
      uses->blocks.push_back({.id = event.id, .bytes = event.bytes, .allocated = position});
    } else if (event.kind == EventKind::kRelease) {
      if (const auto block = index.find(event.id); block != index.end())
        uses->blocks[block->second].released = position;
    }
  }
  return index;
}

void FindClock(const Trace& trace, const Notes& notes, Uses* uses) {
  uint64_t clock = 0, position = 0;
  for (const Launch& launch : notes.launches) {
    for (; position < launch.position && position < trace.events.size(); ++position) {
      if (IsTick(trace.events[position])) ++clock;
    }
    uses->clock.push_back(clock);
  }
}

bool IsLarger(const IdleGap& a, const IdleGap& b) {
  if (a.Area() != b.Area()) return a.Area() > b.Area();
  if (a.begin_launch != b.begin_launch) return a.begin_launch < b.begin_launch;
  return a.block < b.block;
}

}  // namespace

uint64_t IdleGap::Area() const {
  uint64_t area = 0;
  return __builtin_mul_overflow(bytes, end - begin, &area) ? UINT64_MAX : area;
}

Uses FindUses(const Trace& trace, const Notes& notes) {
  Uses uses;
  const BlockIndex index = ListBlocks(trace, &uses);
  FindClock(trace, notes, &uses);
  // Two passes over the launches: first the count of each block, then its launches.
  auto each = [&](auto use) {
    for (uint64_t i = 0; i < notes.launches.size(); ++i) {
      const Launch& launch = notes.launches[i];
      for (uint64_t b = launch.first_block; b < launch.first_block + launch.blocks; ++b) {
        if (const auto block = index.find(notes.launch_blocks[b]); block != index.end())
          use(i, uses.blocks[block->second]);
      }
    }
  };
  each([](uint64_t, BlockUses& block) { ++block.count; });
  uint64_t total = 0;
  for (BlockUses& block : uses.blocks) {
    block.first = total;
    total += block.count;
    block.count = 0;
  }
  uses.launches.resize(total);
  each([&uses](uint64_t launch, BlockUses& block) { uses.launches[block.first + block.count++] = launch; });
  return uses;
}

std::vector<IdleGap> GapsOf(const Uses& uses, uint64_t block) {
  std::vector<IdleGap> gaps;
  const BlockUses& of = uses.blocks[block];
  for (uint64_t i = of.first + 1; i < of.first + of.count; ++i) {
    const IdleGap gap{
        block,   uses.launches[i - 1], uses.launches[i], uses.clock[uses.launches[i - 1]], uses.clock[uses.launches[i]],
        of.bytes};
    if (gap.end > gap.begin) gaps.push_back(gap);
  }
  return gaps;
}

std::vector<IdleGap> LargestGaps(const Uses& uses, size_t most) {
  std::vector<IdleGap> largest;  // a heap whose front is the smallest of them
  for (uint64_t block = 0; block < uses.blocks.size() && most > 0; ++block) {
    for (const IdleGap& gap : GapsOf(uses, block)) {
      if (largest.size() == most) {
        if (!IsLarger(gap, largest.front())) continue;
        std::pop_heap(largest.begin(), largest.end(), IsLarger);
        largest.pop_back();
      }
      largest.push_back(gap);
      std::push_heap(largest.begin(), largest.end(), IsLarger);
    }
  }
  std::sort(largest.begin(), largest.end(), IsLarger);
  return largest;
}

}  // namespace hotpack
