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
// 4. Pages are mapped and unmapped by whole extents, because the driver unmaps no part of a mapping. The size of a new
//    extent is a power of two, at most 128 MiB and 1/1024 of the memory held (ExtentLimits). It ends where its block
//    ends. So an extent in which one block stays costs little.
// 5. While the job has only grown, new extents have up to 1/256 of the memory held, and the last one may reach beyond
//    its block. So growth to 64 GiB takes about 2,000 extents, whatever the size of its blocks.
// 6. An extent that is too large for the place that needs its pages goes to the device. Smaller ones are created.
//
// Pages are changed by PageMover (page_mover.h), and found by ExtentTable (extent_table.h).
//
// Thread safety: all functions except Open and Execute need the engine's lock. Each change of pages has three steps, so
// that no lock is held across a driver call: Begin... (locked) decides and sets aside, Execute (unlocked) makes driver
// calls, Finish (locked) commits. One PageWork at a time: PageManager's mutex for changes of pages ensures that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "packer/block_unit.h"
#include "runtime/base/node_pool.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/extent_table.h"
#include "runtime/memory/free_ranges.h"
#include "runtime/memory/page_mover.h"

namespace hotpack {

inline constexpr uint64_t kLargeBlock = 1 << 20;  // bytes from which a block may have an alignment of its own

// Offsets in the arena are 32-bit counts of 512-byte units.
inline constexpr uint64_t kMaxArenaBytes = (uint64_t{1} << 41) - (uint64_t{1} << 30);

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

  // Requests of at least kLargeBlock bytes begin at multiples of `bytes`: a power of two from 512 to chunk(). Call
  // before the first of them.
  void SetLargeAlignment(uint64_t bytes) { large_alignment_ = bytes; }
  uint64_t large_alignment() const { return large_alignment_; }
  uint64_t AlignmentOf(uint64_t bytes) const { return bytes < kLargeBlock ? kBlockUnit : large_alignment_; }

  // Places `bytes` in mapped free memory. Returns false if the arena must grow. O(log ranges).
  bool TryAllocate(uint64_t bytes, DeviceAddress* address);
  // Places `bytes` at `address`. Returns false if not all of it is free and mapped, in chunks that are not for small
  // requests. O(log ranges).
  bool TryAllocateAt(DeviceAddress address, uint64_t bytes);
  void Free(DeviceAddress address, uint64_t bytes);

  // Begins growth for a block of `bytes`. Creates new pages while at most `create_up_to` bytes are held in total.
  // Beyond that, moves free pages first. New extents may reach beyond the block while at most `ahead_up_to` bytes are
  // held. Returns false if there are no addresses left.
  bool BeginGrowth(uint64_t bytes, uint64_t create_up_to, uint64_t ahead_up_to, PageWork* work);
  // Undoes BeginGrowth.
  void CancelGrowth(PageWork* work);
  // Returns the chunks that Execute must create beyond `create_up_to` bytes held, unless pages are found elsewhere.
  uint64_t Shortfall(const PageWork& work, uint64_t create_up_to) const;
  // Begins mapping pages for the unmapped chunks of [begin, begin + bytes) in a planned zone. Includes the chunks of
  // `within` around it that a new extent reaches, if `create_up_to` allows all of them. Returns false if all pages of
  // [begin, begin + bytes) are there.
  bool BeginMap(DeviceAddress begin, uint64_t bytes, const AddressRange& within, uint64_t create_up_to, PageWork* work);
  // The same, but limited to the pages in the pool, in free chunks and within the allowance; the lowest chunks first.
  bool BeginMapAvailable(const AddressRange& zone, uint64_t create_up_to, PageWork* work);
  // Begins giving up pages: the pool's, and those of free extents not used since `NewEpoch`. Returns false if there are
  // none.
  bool BeginTrim(PageWork* work);
  // Begins moving the pages of free extents, of at least `bytes` if there are as many, into the pool: their addresses
  // become blank. Returns false if there are none.
  bool BeginClear(PageWork* work, uint64_t bytes = UINT64_MAX);
  // Begins giving up the pages of the pool, and no others. Returns false if there are none.
  bool BeginRelease(PageWork* work);
  // Makes the driver calls, without the lock (PageMover::Execute).
  void Execute(PageWork* work) { mover_.Execute(work); }
  // Commits. Returns whether all targets are mapped. If not, the block set aside is given back.
  bool Finish(PageWork* work);

  // Takes fresh addresses for a script, without pages. Returns false if there are no addresses left.
  bool TakeZone(uint64_t bytes, AddressRange* zone);
  // Takes a former zone back, with the pages that it has. `used`: bytes of the blocks that lie in it at least partly.
  // Returns false, with nothing done, unless all other addresses of the zone are free and no extent crosses an end.
  // O(free ranges of the zone + its chunks).
  bool RetakeZone(const AddressRange& zone, uint64_t used);
  // Turns the zone into ordinary memory. `live`: the parts in use, ascending. Chunks of which little is in use become
  // chunks for small requests: a large request would seldom fit there.
  void RetireZone(const AddressRange& zone, const std::vector<AddressRange>& live);
  bool Mapped(DeviceAddress begin, uint64_t bytes) const;  // whether all of it is mapped
  // As ExtentTable has them.
  uint64_t MissingChunks(DeviceAddress begin, DeviceAddress end) const { return extents_.MissingChunks(begin, end); }
  AddressRange ExtentAt(DeviceAddress address) const { return extents_.ExtentAt(address); }
  DeviceAddress MappedEnd(DeviceAddress begin, DeviceAddress end) const { return extents_.MappedEnd(begin, end); }
  ChunkHandle HandleAt(DeviceAddress address) const { return extents_.HandleAt(address); }

  // Returns the memory that `kept` blocks (ascending) leave free in their extents. It is held as long as these blocks
  // live. Each fragment lies in extents of one kind.
  std::vector<AddressRange> Fragments(const std::vector<AddressRange>& kept) const;
  // Takes all free memory of the range, for a script. Returns false, with nothing done, if part of it has no pages.
  bool TakeRange(const AddressRange& range);

  // Calls function(AddressRange) for each run of chunks that have pages, ascending. O(chunks).
  template <typename Function>
  void ForEachMapped(Function function) const {
    extents_.ForEachMapped(function);
  }

  void NewEpoch() { ++epoch_; }
  // Ensures that `count` more free ranges need no heap allocation.
  void ReserveRanges(size_t count);
  uint64_t reserved() const { return reserved_; }                           // bytes of all extents, also in the pool
  uint64_t held() const { return memory_->Fixed() ? bytes_ : reserved(); }  // bytes of physical memory
  uint64_t pooled() const { return BytesOf(pool_); }                        // ... of these, mapped nowhere
  uint64_t free_mapped() const { return free_.total() + small_.total(); }
  // Returns the bytes of the pool and of wholly free extents: what the device can get back. O(free extents).
  uint64_t Returnable() const;
  // Returns the free bytes of partly used extents of more than a chunk: other places cannot have their pages. O(free
  // extents).
  uint64_t Stuck() const;
  uint64_t driver_calls() const { return mover_.driver_calls(); }
  const PageCalls& calls() const { return calls_; }

  bool Consistent() const;  // free ranges lie in mapped chunks, unmapped ones in none. O(chunks)

 private:
  struct Run;
  uint64_t IndexOf(DeviceAddress address) const { return extents_.IndexOf(address); }
  uint64_t Up(uint64_t v) const { return (v + chunk_ - 1) & ~(chunk_ - 1); }
  uint64_t Down(uint64_t v) const { return v & ~(chunk_ - 1); }
  bool IsSmall(uint64_t bytes) const { return bytes <= chunk_ / 2; }
  bool TryAllocateSmall(uint64_t bytes, DeviceAddress* address);
  DeviceAddress ChooseSmallChunk() const;
  void MarkUsed(DeviceAddress begin, uint64_t bytes);
  bool ChooseWindow(uint64_t bytes, AddressRange* window) const;
  bool OnlyGrown() const;
  uint64_t ExtentLimit(uint64_t more) const;
  uint64_t Allowance(uint64_t create_up_to) const { return create_up_to - std::min(create_up_to, reserved_); }
  void AddMissing(DeviceAddress begin, DeviceAddress end, PageWork* work) const;
  void GrowAhead(uint64_t ahead_up_to, PageWork* work);
  void GatherPages(uint64_t create_up_to, PageWork* work);
  template <typename Function>
  void ForEachFreeExtent(const FreeRanges& list, Function function) const;
  std::vector<AddressRange> FreeExtents(bool old_only) const;
  bool UsedInEpoch(const AddressRange& extent) const;
  void TakeFreeExtents(uint64_t bytes, bool old_only, PageWork* work);
  void Forget(const AddressRange& range);
  void ReturnUnmapped(const PageWork& work);
  void SetSmall(const AddressRange& range, bool small);
  static std::vector<AddressRange> PiecesOf(const FreeRanges& list, const AddressRange& range);
  static uint64_t BytesOf(const std::vector<Extent>& extents) {
    uint64_t bytes = 0;
    for (const Extent& extent : extents) bytes += extent.bytes;
    return bytes;
  }

  DeviceMemory* memory_;
  DeviceAddress base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t chunk_ = 0;
  uint64_t epoch_ = 1;
  uint64_t large_alignment_ = kBlockUnit;
  uint64_t reserved_ = 0;
  uint64_t released_ = 0;  // bytes of all large blocks released so far
  PageCalls calls_;
  ExtentTable extents_;
  PageMover mover_{memory_, &extents_};
  std::vector<uint64_t> used_epoch_;  // by chunk: when a dynamic block was last put there
  std::vector<bool> is_small_;        // by chunk: for small requests. The same for all chunks of an extent
  uint64_t small_bytes_ = 0;          // of such chunks
  std::vector<Extent> pool_;          // pages that are not mapped
  NodePool nodes_;
  FreeRanges free_{&nodes_};      // free and mapped
  FreeRanges small_{&nodes_};     // the same, in chunks for small requests
  FreeRanges unmapped_{&nodes_};  // free addresses without pages; whole chunks
};

}  // namespace hotpack
