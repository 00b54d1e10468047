#include "runtime/engine/dynamic_blocks.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "runtime/base/node_reserve.h"

namespace hotpack {

static_assert(std::is_trivially_destructible_v<DynamicBlock>);

DynamicBlocks::~DynamicBlocks() {
  for (const auto& [address, block] : blocks_) Delete(block);
}

void DynamicBlocks::Add(DeviceAddress address, const DynamicBlock& block) {
  ZoneBlock* const claimed = zone_.Find(address);
  if (claimed == nullptr) return AddOrdinary(address, block);
  if (!claimed->handed_out()) claimed->block = block;
}

void DynamicBlocks::AddOrdinary(DeviceAddress address, const DynamicBlock& block) {
  void* const memory = nodes_->allocate(sizeof(DynamicBlock), alignof(DynamicBlock));
  auto* const copy = new (memory) DynamicBlock(block);
  try {
    if (!blocks_.emplace(address, copy).second) Delete(copy);
  } catch (...) {
    Delete(copy);
    throw;
  }
}

bool DynamicBlocks::Remove(DeviceAddress address, DynamicBlock* block) {
  if (ZoneBlock* const found = zone_.Find(address); found != nullptr && found->handed_out()) {
    *block = found->block;
    zone_.Erase(found);
    return true;
  }
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return false;
  *block = *it->second;
  Delete(it->second);
  blocks_.erase(it);
  return true;
}

const DynamicBlock* DynamicBlocks::Find(DeviceAddress address) const {
  if (const ZoneBlock* const found = zone_.Find(address); found != nullptr && found->handed_out()) return &found->block;
  const auto it = blocks_.find(address);
  return it != blocks_.end() ? it->second : nullptr;
}

const DynamicBlock* DynamicBlocks::FindContaining(DeviceAddress address, DeviceAddress* begin) const {
  if (const ZoneBlock* const below = zone_.Below(address + 1); address < below->end && below->handed_out()) {
    *begin = below->begin;
    return &below->block;
  }
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  --it;
  if (address >= it->first + it->second->bytes) return nullptr;
  *begin = it->first;
  return it->second;
}

void DynamicBlocks::SetForeign(DeviceAddress address, bool foreign) {
  if (const auto it = blocks_.find(address); it != blocks_.end()) it->second->foreign = foreign;
}

void DynamicBlocks::MoveToZone(DeviceAddress address) {
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  zone_.Prepare();
  ZoneBlock* const moved = zone_.Claim(zone_.Below(address), address, address + it->second->bytes);
  if (moved == nullptr) return;  // it overlaps a live block: that cannot be
  moved->block = *it->second;
  Delete(it->second);
  blocks_.erase(it);
}

void DynamicBlocks::CloseZone() {
  for (ZoneBlock* block = zone_.lowest(); !zone_.IsEnd(block); block = zone_.lowest()) {
    if (block->handed_out()) {
      block->block.envelope_entry = kNone;
      block->block.foreign = false;
      AddOrdinary(block->begin, block->block);
    }
    zone_.Erase(block);
  }
  zone_.Close();
}

uint64_t DynamicBlocks::Units() const {
  uint64_t units = 0;
  ForEach([&](DeviceAddress, const DynamicBlock& block) { units += block.envelope_entry == kNone ? block.units : 0; });
  return units;
}

bool DynamicBlocks::AnyForeignLivesLongerThan(uint64_t requests, uint64_t count) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    return entry.second->foreign && entry.second->LivesLongerThan(requests, count);
  });
}

void DynamicBlocks::Reserve(size_t count) {
  ReserveNodes(nodes_, sizeof(DynamicBlock), count);
  ReserveBTreeNodes(nodes_, count);
}

}  // namespace hotpack
