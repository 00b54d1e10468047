// The blocks that are not served by script, and the load of all blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <utility>

#include "profiler/history.h"
#include "runtime/base/btree.h"
#include "runtime/engine/engine_request.h"
#include "runtime/engine/failed_requests.h"
#include "runtime/memory/device_memory.h"

namespace hotpack {

// A block that is not served by script. It may lie in the dynamic zone, a retired zone, a fragment, the followed
// script's zone, a place of an envelope, or managed memory.
struct DynamicBlock {
  uint64_t bytes = 0;               // of addresses, a multiple of 512
  uint32_t units = 0;               // asked for
  uint32_t entry = kNone;           // the script's entry that it stands for; kNone: none
  uint64_t ordinal = kUnmonitored;  // its request
  uint64_t follow_epoch = 0;        // when it was placed: `entry` belongs to the script followed then
  uint64_t trace_id = 0;            // unique in the engine
  uint32_t envelope_entry = kNone;  // the envelope's entry whose place it has; kNone: none
  // It lies, at least partly, where the followed script or envelope has places.
  bool foreign = false;

  // Returns whether it has lived for more than `requests` requests. `count`: requests so far.
  bool LivesLongerThan(uint64_t requests, uint64_t count) const {
    return ordinal == kUnmonitored || count - ordinal > requests;
  }
};

// Guarded by the engine's lock. O(log blocks) unless noted. A B-tree of addresses finds the blocks: in a binary tree of
// 400,000, a search reads about three times as many cache lines.
class DynamicBlocks {
 public:
  explicit DynamicBlocks(std::pmr::memory_resource* nodes) : nodes_(nodes), blocks_(nodes) {}
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
  // Does nothing if a block begins at `address` already.
  void Add(DeviceAddress address, const DynamicBlock& block);
  // Removes the block that begins at `address`. Returns false if there is none.
  bool Remove(DeviceAddress address, DynamicBlock* block);
  // Returns null if no block begins at `address`.
  const DynamicBlock* Find(DeviceAddress address) const;
  // Returns the block that contains `address`, and its first address. Returns null if there is none.
  const DynamicBlock* FindContaining(DeviceAddress address, DeviceAddress* begin) const;
  void SetForeign(DeviceAddress address, bool foreign);
  void ForgetEnvelopeEntries();  // the blocks are ordinary ones from now on. O(blocks)
  // Calls function(address, block) for each block that overlaps [begin, end). O(log blocks + calls).
  template <typename Function>
  void ForEachIn(DeviceAddress begin, DeviceAddress end, Function function) {
    auto it = blocks_.upper_bound(begin);
    if (it != blocks_.begin()) --it;
    for (; it != blocks_.end() && it->first < end; ++it) {
      if (it->first + it->second->bytes > begin) function(it->first, *it->second);
    }
  }
  // Calls function(address, block) for each block, ascending. O(blocks).
  template <typename Function>
  void ForEach(Function function) const {
    for (const auto& [address, block] : blocks_) function(address, std::as_const(*block));
  }
  std::pmr::memory_resource* nodes() const { return nodes_; }
  // Requests that got no block.
  FailedRequests& failed() { return failed_; }
  const FailedRequests& failed() const { return failed_; }
  size_t size() const { return blocks_.size(); }
  // Units asked for, without the blocks at places of an envelope. O(blocks).
  uint64_t Units() const;
  // Returns whether a foreign block has lived for more than `requests` requests. O(blocks).
  bool AnyForeignLivesLongerThan(uint64_t requests, uint64_t count) const;
  // Ensures that `count` more blocks need no heap allocation.
  void Reserve(size_t count);

 private:
  using Map = absl::btree_map<DeviceAddress, DynamicBlock*, std::less<DeviceAddress>,
                              std::pmr::polymorphic_allocator<std::pair<const DeviceAddress, DynamicBlock*>>>;

  void Delete(DynamicBlock* block) { nodes_->deallocate(block, sizeof(DynamicBlock), alignof(DynamicBlock)); }

  std::pmr::memory_resource* const nodes_;
  Map blocks_;
  uint64_t next_trace_id_ = 0;
  uint64_t live_units_ = 0, live_peak_units_ = 0, pending_units_ = 0;
  FailedRequests failed_;
};

}  // namespace hotpack
