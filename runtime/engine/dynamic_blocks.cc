#include "runtime/engine/dynamic_blocks.h"

#include "runtime/base/node_reserve.h"

namespace hotpack {

bool DynamicBlocks::Remove(DeviceAddress address, DynamicBlock* block) {
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return false;
  *block = it->second;
  blocks_.erase(it);
  return true;
}

const DynamicBlock* DynamicBlocks::Find(DeviceAddress address) const {
  const auto it = blocks_.find(address);
  return it != blocks_.end() ? &it->second : nullptr;
}

DynamicBlocks::Map::const_iterator DynamicBlocks::FindContaining(DeviceAddress address) const {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return blocks_.end();
  --it;
  return address < it->first + it->second.bytes ? it : blocks_.end();
}

void DynamicBlocks::SetForeign(DeviceAddress address, bool foreign) {
  if (const auto it = blocks_.find(address); it != blocks_.end()) it->second.foreign = foreign;
}

void DynamicBlocks::ForgetEnvelopeEntries() {
  for (auto& [address, block] : blocks_) {
    block.envelope_entry = kNone;
    block.foreign = false;
  }
}

uint64_t DynamicBlocks::Units() const {
  uint64_t units = 0;
  for (const auto& [address, block] : blocks_) units += block.envelope_entry == kNone ? block.units : 0;
  return units;
}

bool DynamicBlocks::AnyForeignLivesLongerThan(uint64_t requests, uint64_t count) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    return entry.second.foreign && entry.second.LivesLongerThan(requests, count);
  });
}

void DynamicBlocks::Reserve(size_t count) { ReserveNodes(nodes_, sizeof(Map::value_type) + 4 * sizeof(void*), count); }

}  // namespace hotpack
