// One reservation of addresses and one pool of pages: all memory of an engine.
//
//   reservation  ├── dynamic zone ──────────►     (fresh)     ◄────── planned zones ──┤
//                │█░░██░████░░ ░░░██│                              │ ████████ script ││
//                 █ live  ░ free, mapped  (blank) free, no pages
//
// Rules:
// 1. Best fit serves requests from mapped free memory. Requests of up to half a chunk are served from separate chunks.
//    So a few small long-lived blocks (a bias, a counter) do not each keep a chunk from being moved.
// 2. If nothing fits, the arena grows. It chooses the place that needs the fewest new pages. It takes pages of free
//    chunks before it asks the driver for more.
// 3. Planned zones are taken from the top end. When a script ends, its zone becomes ordinary free memory around the
//    live blocks.
//
// Thread safety: all functions except Open and Execute need the engine's lock. Each change of pages has three steps, so
// that no lock is held across a driver call: Begin... (locked) decides and sets aside, Execute (unlocked) makes driver
// calls, Finish (locked) commits. One PageWork at a time: PageManager's mutex for changes of pages ensures that.
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

// Offsets in the arena are 32-bit counts of 512-byte units.
inline constexpr uint64_t kMaxArenaBytes = (uint64_t{1} << 41) - (uint64_t{1} << 30);

// One change of pages.
struct PageWork {
  std::vector<AddressRange> take;       // free mapped chunks whose pages are used elsewhere
  std::vector<AddressRange> take_zone;  // the same, of chunks in a planned zone without live blocks
  std::vector<ChunkHandle> handles;     // available pages
  std::vector<DeviceAddress> targets;   // chunks to map
  uint64_t mapped = 0;                  // targets[0, mapped) are mapped
  // Targets after those that are mapped, not accessible, and cannot be unmapped: lost.
  uint64_t stuck = 0;
  std::vector<AddressRange> not_taken;  // ranges of `take` that could not be unmapped
  bool release = false;                 // give `handles` back to the device instead of mapping them
  uint64_t created = 0, released = 0;   // chunks
  MemoryStatus status = MemoryStatus::kOk;
  // The block that the work is for: it is set aside; `span` lists the parts of its span that were mapped before.
  AddressRange block;
  std::vector<AddressRange> span;
  bool small = false;  // the block is a chunk for small requests
};

class Arena {
 public:
  explicit Arena(DeviceMemory* memory) : memory_(memory) {}

  // Reserves addresses: `times` the device's memory. Makes driver calls. Needs no lock: no other thread knows the arena
  // yet.
  MemoryStatus Open(uint64_t times);
  bool open() const { return base_ != 0; }
  DeviceAddress base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t chunk() const { return chunk_; }

  // Places `bytes` in mapped free memory. Returns false if the arena must grow. O(log ranges).
  bool TryAllocate(uint64_t bytes, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes);

  // Begins growth for a block of `bytes`. Creates new pages while at most `create_up_to` bytes are held in total.
  // Beyond that, moves free pages first. Returns false if there are no addresses left.
  bool BeginGrowth(uint64_t bytes, uint64_t create_up_to, PageWork* work);
  // Undoes BeginGrowth.
  void CancelGrowth(PageWork* work);
  // Returns the chunks that Execute must create beyond `create_up_to` bytes held, unless pages are found elsewhere.
  uint64_t Shortfall(const PageWork& work, uint64_t create_up_to) const;
  // Begins mapping pages for the unmapped chunks of [begin, begin + bytes) in a planned zone. Returns false if there
  // are no such chunks.
  bool BeginMap(DeviceAddress begin, uint64_t bytes, uint64_t create_up_to, PageWork* work);
  // The same, but limited to the pages in the pool, in free chunks and within the allowance; the lowest chunks first.
  bool BeginMapAvailable(const AddressRange& zone, uint64_t create_up_to, PageWork* work);
  // Begins giving up pages: the pool's, and those of free chunks not used since `NewEpoch`. Returns false if there are
  // none.
  bool BeginTrim(PageWork* work);
  // Begins moving the pages of free chunks, at most `chunks`, into the pool: their addresses become blank. Returns
  // false if there are none.
  bool BeginClear(PageWork* work, uint64_t chunks = UINT64_MAX);
  // Begins giving up the pages of the pool, and no others. Returns false if there are none.
  bool BeginRelease(PageWork* work);
  // Makes the driver calls, without the lock. Stops at the first error and sets work->status; everything done so far is
  // consistent.
  void Execute(PageWork* work);
  // Commits. Returns whether all targets are mapped. If not, the block set aside is given back.
  bool Finish(PageWork* work);

  // Takes fresh addresses for a script, without pages. Returns false if there are no addresses left.
  bool TakeZone(uint64_t bytes, AddressRange* zone);
  // Turns the zone into ordinary memory. `live`: the parts in use, ascending. Chunks of which little is in use become
  // chunks for small requests: a large request would seldom fit there.
  void RetireZone(const AddressRange& zone, const std::vector<AddressRange>& live);
  bool Mapped(DeviceAddress begin, uint64_t bytes) const;                // whether all of it is mapped
  uint64_t MissingChunks(DeviceAddress begin, DeviceAddress end) const;  // chunks of [begin, end) that have no pages

  // Returns the memory that `kept` blocks (ascending) leave free in their chunks. It is held as long as these blocks
  // live. Each fragment lies in chunks of one kind.
  std::vector<AddressRange> Fragments(const std::vector<AddressRange>& kept) const;
  // Takes all free memory of the range, for a script. Returns false, with nothing done, if part of it has no pages.
  bool TakeRange(const AddressRange& range);

  // Calls function(AddressRange) for each run of chunks that have pages, ascending. O(chunks).
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
  // Ensures that `count` more free ranges need no heap allocation.
  void ReserveRanges(size_t count);
  uint64_t reserved() const { return chunks_held_ * chunk_; }               // bytes of the chunks in use or in the pool
  uint64_t held() const { return memory_->Fixed() ? bytes_ : reserved(); }  // bytes of physical memory
  uint64_t pooled() const { return pool_.size() * chunk_; }                 // ... of these, mapped nowhere
  uint64_t free_mapped() const { return free_.total() + small_.total(); }
  // Returns the bytes of the pool and of wholly free chunks: what the device can get back. O(ranges).
  uint64_t Returnable() const;
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
