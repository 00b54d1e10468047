// The blocks that are not served by script, and the load of all blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <utility>

#include "profiler/history.h"
#include "runtime/base/btree.h"
#include "runtime/engine/dynamic_block.h"
#include "runtime/engine/failed_requests.h"
#include "runtime/engine/zone_blocks.h"
#include "runtime/memory/device_memory.h"

namespace hotpack {

// Guarded by the engine's lock. O(log blocks) unless noted. A B-tree of addresses finds the blocks: in a binary tree of
// 400,000, a search reads about three times as many cache lines. Those where an envelope has places are kept apart
// (zone_blocks.h).
class DynamicBlocks {
 public:
  explicit DynamicBlocks(std::pmr::memory_resource* nodes) : nodes_(nodes), blocks_(nodes), zone_(nodes) {}
  ~DynamicBlocks();
  DynamicBlocks(const DynamicBlocks&) = delete;
  DynamicBlocks& operator=(const DynamicBlocks&) = delete;

  // --- the load of all live blocks, planned ones included: units of 512 bytes. O(1) --------------------------------
  void CountLive(uint32_t units) {  // a request was served
    live_units_ += units;
    if (live_units_ > live_peak_units_) live_peak_units_ = live_units_;
  }
  void RemoveLive(uint64_t units) { live_units_ -= units; }
  // A request whose memory is being looked for counts as live, and not for the peak: it may fail.
  void AddPending(uint32_t units) { pending_units_ += units; }
  void RemovePending(uint32_t units) { pending_units_ -= units; }
  uint64_t served_units() const { return live_units_; }
  uint64_t live_units() const { return live_units_ + pending_units_; }
  uint64_t live_peak_units() const { return live_peak_units_; }

  // --- blocks -------------------------------------------------------------------------------------------------------
  // Returns a trace id for a request that is not monitored. It is above all ordinals.
  uint64_t NewTraceId() { return (uint64_t{1} << 63) + next_trace_id_++; }
  // Does nothing if a block begins at `address` already. Addresses that were claimed in zone() become this block.
  void Add(DeviceAddress address, const DynamicBlock& block);
  // Removes the block that begins at `address`. Returns false if there is none.
  bool Remove(DeviceAddress address, DynamicBlock* block);
  // Returns null if no block begins at `address`.
  const DynamicBlock* Find(DeviceAddress address) const;
  // Returns the block that contains `address`, and its first address. Returns null if there is none.
  const DynamicBlock* FindContaining(DeviceAddress address, DeviceAddress* begin) const;
  void SetForeign(DeviceAddress address, bool foreign);
  // The blocks where an envelope has places, and what is claimed there.
  ZoneBlocks& zone() { return zone_; }
  const ZoneBlocks& zone() const { return zone_; }
  void MoveToZone(DeviceAddress address);  // the block at `address` lies there from now on
  void CloseZone();                        // the blocks there are ordinary ones from now on. O(blocks)
  // Calls function(address, block) for each block that overlaps [begin, end), those of zone() last. O(log blocks +
  // calls).
  template <typename Function>
  void ForEachIn(DeviceAddress begin, DeviceAddress end, Function function) {
    auto it = blocks_.upper_bound(begin);
    if (it != blocks_.begin()) --it;
    for (; it != blocks_.end() && it->first < end; ++it) {
      if (it->first + it->second->bytes > begin) function(it->first, *it->second);
    }
    ZoneBlock* block = zone_.Below(begin);
    if (block->end <= begin) block = block->above;
    for (; !zone_.IsEnd(block) && block->begin < end; block = block->above) {
      if (block->handed_out()) function(block->begin, block->block);
    }
  }
  // Returns the bytes of all chunks of `chunk` bytes, a power of two, in which blocks lie that counts(address, block)
  // accepts. O(blocks).
  template <typename Predicate>
  uint64_t ChunkBytes(uint64_t chunk, Predicate counts) const {
    uint64_t bytes = 0;
    DeviceAddress counted_to = 0;  // chunks below are counted
    ForEach([&](DeviceAddress address, const DynamicBlock& block) {
      if (!counts(address, block)) return;
      const DeviceAddress from = std::max(counted_to, address & ~(chunk - 1));
      const DeviceAddress to = (address + block.bytes + chunk - 1) & ~(chunk - 1);
      if (to > from) bytes += to - from;
      counted_to = std::max(counted_to, to);
    });
    return bytes;
  }
  // Calls function(address, block) for each block, ascending. O(blocks).
  template <typename Function>
  void ForEach(Function function) const {
    auto it = blocks_.begin();
    for (const ZoneBlock* block = zone_.lowest(); !zone_.IsEnd(block); block = block->above) {
      for (; it != blocks_.end() && it->first < block->begin; ++it) function(it->first, std::as_const(*it->second));
      if (block->handed_out()) function(block->begin, block->block);
    }
    for (; it != blocks_.end(); ++it) function(it->first, std::as_const(*it->second));
  }
  std::pmr::memory_resource* nodes() const { return nodes_; }
  // Requests that got no block.
  FailedRequests& failed() { return failed_; }
  const FailedRequests& failed() const { return failed_; }
  size_t size() const { return blocks_.size() + zone_.size(); }
  // Units asked for, without the blocks at places of an envelope. O(blocks).
  uint64_t Units() const;
  // Returns whether a foreign block has lived for more than `requests` requests. O(blocks).
  bool AnyForeignLivesLongerThan(uint64_t requests, uint64_t count) const;
  // Ensures that `count` more blocks need no heap allocation.
  void Reserve(size_t count);

 private:
  using Map = absl::btree_map<DeviceAddress, DynamicBlock*, std::less<DeviceAddress>,
                              std::pmr::polymorphic_allocator<std::pair<const DeviceAddress, DynamicBlock*>>>;

  void AddOrdinary(DeviceAddress address, const DynamicBlock& block);
  void Delete(DynamicBlock* block) { nodes_->deallocate(block, sizeof(DynamicBlock), alignof(DynamicBlock)); }

  std::pmr::memory_resource* const nodes_;
  Map blocks_;
  ZoneBlocks zone_;
  uint64_t next_trace_id_ = 0;
  uint64_t live_units_ = 0, live_peak_units_ = 0, pending_units_ = 0;
  FailedRequests failed_;
};

}  // namespace hotpack
