#include "bench/models/tape.h"

#include <utility>

#include "packer/block_unit.h"

namespace hotpack::bench {

uint64_t Tape::Allocate(Bytes bytes) {
  trace_.events.push_back({.kind = EventKind::kAllocate, .id = blocks_, .bytes = static_cast<uint64_t>(bytes)});
  return blocks_++;
}

void Tape::Release(uint64_t block) { trace_.events.push_back({.kind = EventKind::kRelease, .id = block}); }

void Tape::Mark() { trace_.events.push_back({.kind = EventKind::kMark}); }

Instance Tape::ToInstance() const {
  Instance instance;
  Clock clock = 1;
  for (const Event& event : trace_.events) {
    if (event.kind == EventKind::kAllocate) {
      Block block;
      block.size = static_cast<Bytes>(RoundUpToUnit(event.bytes));
      block.residency.push_back({clock++, 0});
      instance.blocks.push_back(std::move(block));
    } else if (event.kind == EventKind::kRelease) {
      instance.blocks[event.id].residency[0].end = clock++;
    }
  }
  return instance;
}

}  // namespace hotpack::bench
