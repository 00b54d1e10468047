#include "runtime/memory/page_mover.h"

#include <algorithm>
#include <bit>

namespace hotpack {

void PageMover::UnmapTaken(PageWork* work) {
  if (work->take.empty() && work->take_zone.empty()) return;
  // Work may still be using these pages.
  DeviceWait wait = work->unfinished ? DeviceWait::kUnfinished : DeviceWait::kDone;
  if (!work->unfinished) ++driver_calls_;
  if (work->unfinished) {
    // The caller knows that already.
  } else if (work->max_wait != UINT64_MAX) {
    wait = memory_->SynchronizeWithin(work->max_wait);
  } else if (!memory_->Synchronize()) {
    wait = DeviceWait::kNotNow;
  }
  if (wait != DeviceWait::kDone) {
    work->unfinished = wait == DeviceWait::kUnfinished;
    work->not_taken.swap(work->take);
    work->take_zone.clear();
    return;
  }
  UnmapRanges(&work->take, &work->not_taken, work);
  std::vector<AddressRange> kept;  // entries there count as unmapped until they are checked again: harmless
  UnmapRanges(&work->take_zone, &kept, work);
}

// Unmaps `ranges` and keeps those that could be unmapped; the others go to `failed`.
void PageMover::UnmapRanges(std::vector<AddressRange>* ranges, std::vector<AddressRange>* failed, PageWork* work) {
  std::vector<AddressRange> done;
  for (const AddressRange& range : *ranges) {
    ++driver_calls_;
    if (memory_->Unmap(range.begin, range.bytes) != MemoryStatus::kOk) {
      failed->push_back(range);
      continue;
    }
    done.push_back(range);
    for (DeviceAddress at = range.begin; at < range.begin + range.bytes;) {
      const AddressRange extent = extents_->ExtentAt(at);
      work->extents.push_back({extents_->HandleAt(at), extent.bytes});
      at += extent.bytes;
    }
  }
  ranges->swap(done);
}

bool PageMover::ReleaseOne(const Extent& extent, PageWork* work) {
  ++driver_calls_;
  work->status = memory_->ReleaseChunk(extent.handle);
  if (work->status != MemoryStatus::kOk) return false;
  work->released += extent.bytes;
  return true;
}

// Places the available extents, the largest that fit. *gaps: the rest of the targets.
void PageMover::PlaceAvailable(PageWork* work, std::vector<AddressRange>* gaps) {
  std::vector<Extent>& extents = work->extents;
  const auto smaller = [](const Extent& a, const Extent& b) { return a.bytes < b.bytes; };
  std::stable_sort(extents.begin(), extents.end(), smaller);
  for (const AddressRange& run : work->targets) {
    const DeviceAddress end = run.begin + run.bytes;
    DeviceAddress at = run.begin;
    while (at < end) {
      const auto above = std::upper_bound(extents.begin(), extents.end(), Extent{0, end - at}, smaller);
      if (above == extents.begin()) break;
      work->mapped.push_back({at, *std::prev(above)});
      at += std::prev(above)->bytes;
      extents.erase(std::prev(above));
    }
    if (at < end) gaps->push_back({at, end - at});
  }
}

// Gives available extents that are too large for their places to the device: `bytes` of them, or all.
void PageMover::ReleaseSpare(uint64_t bytes, PageWork* work) {
  std::vector<Extent>& extents = work->extents;  // the smallest first
  while (bytes > 0 && !extents.empty()) {
    auto spare = std::find_if(extents.begin(), extents.end(), [bytes](const Extent& e) { return e.bytes >= bytes; });
    if (spare == extents.end()) --spare;
    if (!ReleaseOne(*spare, work)) return;
    bytes -= std::min(bytes, spare->bytes);
    extents.erase(spare);
  }
}

// Creates extents for the gaps, and for the addresses ahead. On a full device smaller ones may be available.
void PageMover::PlaceNew(const std::vector<AddressRange>& gaps, PageWork* work) {
  uint64_t most = std::max(memory_->ChunkBytes(), work->max_extent);
  uint64_t ahead = work->ahead;
  for (const AddressRange& gap : gaps) {
    const DeviceAddress end = gap.begin + gap.bytes;
    const bool is_last = end == work->targets.back().begin + work->targets.back().bytes;
    for (DeviceAddress at = gap.begin; at < end;) {
      Extent extent{0, std::min(most, std::bit_floor(end + (is_last ? ahead : 0) - at))};
      ++driver_calls_;
      ++work->calls.create;
      work->status = memory_->CreateChunk(extent.bytes, &extent.handle);
      if (work->status == MemoryStatus::kOutOfMemory && extent.bytes > memory_->ChunkBytes()) {
        most = extent.bytes / 2;
        ahead = 0;
        continue;
      }
      if (work->status != MemoryStatus::kOk) return;
      work->created += extent.bytes;
      work->mapped.push_back({at, extent});
      at += extent.bytes;
    }
  }
}

// Maps the placed extents, then makes them accessible, with one call for each contiguous stretch.
void PageMover::MapPlaced(PageWork* work) {
  std::vector<MappedExtent>& placed = work->mapped;
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  size_t mapped = 0, enabled = 0;
  for (; mapped < placed.size() && work->status == MemoryStatus::kOk; mapped += work->status == MemoryStatus::kOk) {
    ++driver_calls_;
    ++work->calls.map;
    const MappedExtent& next = placed[mapped];
    work->status = memory_->Map(next.begin, next.extent.bytes, next.extent.handle);
  }
  while (enabled < mapped && work->status == MemoryStatus::kOk) {
    const DeviceAddress begin = placed[enabled].begin;
    DeviceAddress end = begin;
    size_t next = enabled;
    for (; next < mapped && placed[next].begin == end; ++next) end += placed[next].extent.bytes;
    ++driver_calls_;
    ++work->calls.set_access;
    work->status = memory_->Enable(begin, end - begin);
    if (work->status == MemoryStatus::kOk) enabled = next;
  }
  // Undo mappings that are not accessible.
  for (; mapped > enabled; --mapped) {
    const MappedExtent& last = placed[mapped - 1];
    ++driver_calls_;
    if (memory_->Unmap(last.begin, last.extent.bytes) != MemoryStatus::kOk) break;
  }
  const auto at = [&placed](size_t k) { return placed.begin() + static_cast<std::ptrdiff_t>(k); };
  std::for_each(at(mapped), placed.end(), [work](const MappedExtent& m) { work->extents.push_back(m.extent); });
  work->stuck.assign(at(enabled), at(mapped));
  placed.resize(enabled);
}

void PageMover::MapTargets(PageWork* work) {
  std::vector<AddressRange> gaps;
  uint64_t missing = 0;
  PlaceAvailable(work, &gaps);
  for (const AddressRange& gap : gaps) missing += gap.bytes;
  ReleaseSpare(missing, work);
  if (work->status == MemoryStatus::kOk) PlaceNew(gaps, work);
  MapPlaced(work);
}

void PageMover::Execute(PageWork* work) {
  UnmapTaken(work);
  if (!work->release) {
    if (!work->unfinished || work->new_instead) MapTargets(work);
    return;
  }
  while (!work->extents.empty() && ReleaseOne(work->extents.back(), work)) work->extents.pop_back();
}

}  // namespace hotpack
