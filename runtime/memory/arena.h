// One reservation of addresses, one pool of pages: where all of an engine's memory lies.
//
//   reservation  ├── dynamic zone ──────────►     (fresh)     ◄────── planned zones ──┤
//                │█░░██░████░░ ░░░██│                              │ ████████ script ││
//                 █ live  ░ free, mapped  (blank) free, no pages
//
// Best fit serves from mapped free memory; requests of up to half a chunk from chunks of their own, so that a few small
// blocks that stay (a bias, a counter) do not keep a chunk each from being moved. When nothing fits, the arena grows:
// it chooses the place that needs the fewest new pages, and takes these from wherever a whole chunk lies free, before
// it asks the driver for more. Planned zones are taken from the top end; when a script ends, its zone becomes ordinary
// free memory around what still lives.
//
// All functions but Execute need the engine's lock. Changes of pages are three steps, so that no lock is held across a
// driver call: Begin... (locked: decides and sets aside), Execute (unlocked: driver calls), Finish (locked: commits).
// One PageWork at a time: the engine's growth lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "runtime/base/node_pool.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/free_ranges.h"

namespace hotpack {

struct AddressRange {
  DeviceAddress begin = 0;
  uint64_t bytes = 0;
};

// Offsets in the arena are counted in units of 512 bytes, in 32 bits.
inline constexpr uint64_t kMaxArenaBytes = (uint64_t{1} << 41) - (uint64_t{1} << 30);

// One change of pages.
struct PageWork {
  std::vector<AddressRange> take;       // free mapped chunks whose pages are used elsewhere
  std::vector<AddressRange> take_zone;  // the same, of a planned zone's chunks that nothing lives in
  std::vector<ChunkHandle> handles;     // pages at hand
  std::vector<DeviceAddress> targets;   // chunks to map
  uint64_t mapped = 0;                  // targets[0, mapped) have been mapped
  uint64_t stuck = 0;                   // targets after those: mapped, not accessible, and not to be unmapped: lost
  std::vector<AddressRange> not_taken;  // of `take`: what could not be unmapped
  bool release = false;                 // give `handles` back to the device instead of mapping them
  uint64_t created = 0, released = 0;   // chunks
  MemoryStatus status = MemoryStatus::kOk;
  // The block this is for: set aside, and what of its span was mapped before.
  AddressRange block;
  std::vector<AddressRange> span;
  bool small = false;  // the block is a chunk for small requests
};

class Arena {
 public:
  explicit Arena(DeviceMemory* memory) : memory_(memory) {}

  // Reserves the addresses: `times` the device's memory. Driver calls; no lock needed, nobody else knows the arena yet.
  MemoryStatus Open(uint64_t times);
  bool open() const { return base_ != 0; }
  DeviceAddress base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t chunk() const { return chunk_; }

  // A place of `bytes` in mapped free memory. O(log ranges). False: the arena must grow.
  bool TryAllocate(uint64_t bytes, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes);

  // Growth for a block of `bytes`. New pages are created as long as no more than `create_up_to` bytes are held in all;
  // beyond that, free pages are moved first. False: no addresses left.
  bool BeginGrowth(uint64_t bytes, uint64_t create_up_to, PageWork* work);
  // Takes BeginGrowth back.
  void CancelGrowth(PageWork* work);
  // Chunks that Execute will have to create beyond `create_up_to` bytes held, unless pages are found elsewhere.
  uint64_t Shortfall(const PageWork& work, uint64_t create_up_to) const;
  // Pages for the unmapped chunks of [begin, begin + bytes) in a planned zone. False: there are none.
  bool BeginMap(DeviceAddress begin, uint64_t bytes, uint64_t create_up_to, PageWork* work);
  // The same, but only as many chunks, from the lowest up, as there are pages in the pool, in free chunks and within
  // the allowance.
  bool BeginMapAvailable(const AddressRange& zone, uint64_t create_up_to, PageWork* work);
  // Gives up pages: the pool's and those of free chunks not used since `NewEpoch`. False: there are none.
  bool BeginTrim(PageWork* work);
  // Takes the pages of free chunks, up to so many, into the pool: their addresses are blank again. False: there are
  // none.
  bool BeginClear(PageWork* work, uint64_t chunks = UINT64_MAX);
  // Gives up the pages of the pool, and of nothing else. False: there are none.
  bool BeginRelease(PageWork* work);
  // Without the lock. Stops at the first error, with work->status set; everything done so far is consistent.
  void Execute(PageWork* work);
  // Returns whether all targets are mapped. If not, the block set aside is given back.
  bool Finish(PageWork* work);

  // Fresh addresses for a script, without pages. False: no addresses left.
  bool TakeZone(uint64_t bytes, AddressRange* zone);
  // The zone is ordinary memory from now on; `live`: what is in use of it, ascending. Chunks in which little of that
  // lies are for small requests: a large one would seldom fit beside it.
  void RetireZone(const AddressRange& zone, const std::vector<AddressRange>& live);
  bool Mapped(DeviceAddress begin, uint64_t bytes) const;                // throughout
  uint64_t MissingChunks(DeviceAddress begin, DeviceAddress end) const;  // those of [begin, end) that have no pages

  // What `kept` blocks (ascending) leave over of the chunks they lie in: memory that is held as long as they live. Each
  // fragment lies in chunks of one kind.
  std::vector<AddressRange> Fragments(const std::vector<AddressRange>& kept) const;
  // Takes whatever is free of the range, for a script's use. False, and nothing done, if part of it has no pages.
  bool TakeRange(const AddressRange& range);

  // function(AddressRange) for each run of chunks that have pages, ascending. O(chunks).
  template <typename Function>
  void ForEachMapped(Function function) const {
    for (size_t i = 0; i < handle_.size();) {
      const size_t begin = i;
      while (i < handle_.size() && handle_[i] != 0) ++i;
      if (i > begin) function(AddressRange{base_ + begin * chunk_, (i - begin) * chunk_});
      if (i == begin) ++i;
    }
  }

  void NewEpoch() { ++epoch_; }
  void ReserveRanges(size_t count);                            // room for so many more free ranges without the heap
  uint64_t reserved() const { return chunks_held_ * chunk_; }  // bytes of the chunks in use or in the pool
  uint64_t held() const { return memory_->Fixed() ? bytes_ : reserved(); }  // physical bytes held
  uint64_t pooled() const { return pool_.size() * chunk_; }                 // of these, mapped nowhere
  uint64_t free_mapped() const { return free_.total() + small_.total(); }
  uint64_t driver_calls() const { return driver_calls_.load(std::memory_order_relaxed); }

  bool Consistent() const;  // free ranges lie in mapped chunks, unmapped ones in none. O(chunks)

 private:
  struct Run;
  uint64_t IndexOf(DeviceAddress address) const { return (address - base_) / chunk_; }
  uint64_t Up(uint64_t v) const { return (v + chunk_ - 1) & ~(chunk_ - 1); }
  uint64_t Down(uint64_t v) const { return v & ~(chunk_ - 1); }
  bool IsSmall(uint64_t bytes) const { return bytes <= chunk_ / 2; }
  bool TryAllocateSmall(uint64_t bytes, DeviceAddress* address);
  DeviceAddress ChooseSmallChunk() const;
  void MarkUsed(DeviceAddress begin, uint64_t bytes);
  bool ChooseWindow(uint64_t bytes, AddressRange* window) const;
  void GatherPages(uint64_t create_up_to, PageWork* work);
  void TakeFreeChunks(uint64_t chunks, bool old_only, PageWork* work);
  uint64_t TakeFreeChunksOf(FreeRanges* list, uint64_t chunks, bool old_only, PageWork* work);
  void UnmapTaken(PageWork* work);
  void UnmapRanges(std::vector<AddressRange>* ranges, std::vector<AddressRange>* failed, PageWork* work);
  void MapTargets(PageWork* work);

  DeviceMemory* memory_;
  DeviceAddress base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t chunk_ = 0;
  uint64_t epoch_ = 1;
  uint64_t chunks_held_ = 0;
  std::atomic<uint64_t> driver_calls_{0};
  std::vector<ChunkHandle> handle_;   // by chunk: its page, 0 if not mapped
  std::vector<uint64_t> used_epoch_;  // by chunk: when a dynamic block was last put there
  std::vector<bool> is_small_;        // by chunk: for small requests
  std::vector<ChunkHandle> pool_;     // pages that are not mapped
  NodePool nodes_;
  FreeRanges free_{&nodes_};      // free and mapped
  FreeRanges small_{&nodes_};     // the same, in chunks for small requests
  FreeRanges unmapped_{&nodes_};  // free addresses without pages; whole chunks
};

}  // namespace hotpack
