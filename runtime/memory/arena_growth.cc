// Arena: which pages a growth, a mapping or a trim takes, and from where.
#include <algorithm>
#include <bit>

#include "runtime/memory/arena.h"

namespace hotpack {
namespace {

constexpr uint64_t kLaterShare = 4;      // how much smaller new extents are once the job has released memory
constexpr uint64_t kSmallShare = 8;      // a new extent for small requests is at most this part of their chunks
constexpr uint64_t kReleasedShare = 64;  // "has only grown": less than this part of the memory held was released

}  // namespace

// A maximal run of free addresses, mapped or not.
struct Arena::Run {
  DeviceAddress begin = 0, end = 0;
  std::vector<AddressRange> mapped;  // its mapped pieces
};

// Finds the place for `bytes` in free addresses that needs the fewest new pages; of several, the lowest. It lies at an
// end of a free run, or against a mapped piece of one.
bool Arena::ChooseWindow(uint64_t bytes, AddressRange* window) const {
  uint64_t best_missing = UINT64_MAX;
  const uint64_t mask = AlignmentOf(bytes) - 1;
  auto consider = [&](const Run& run, DeviceAddress begin) {
    if (begin < run.begin || begin + bytes > run.end) return;
    uint64_t missing = MissingChunks(begin, begin + bytes);
    if (missing < best_missing) {
      best_missing = missing;
      *window = {begin, bytes};
    }
  };
  auto close = [&](const Run& run) {
    if (run.end - run.begin < bytes) return;
    consider(run, (run.begin + mask) & ~mask);
    for (const AddressRange& piece : run.mapped) {
      consider(run, (piece.begin + mask) & ~mask);
      if (piece.begin + piece.bytes >= bytes) consider(run, (piece.begin + piece.bytes - bytes) & ~mask);
    }
  };
  auto mapped = free_.ranges().begin(), mapped_end = free_.ranges().end();
  auto blank = unmapped_.ranges().begin(), blank_end = unmapped_.ranges().end();
  Run run;
  while (mapped != mapped_end || blank != blank_end) {
    bool take_mapped = blank == blank_end || (mapped != mapped_end && mapped->first < blank->first);
    const auto& [begin, length] = take_mapped ? *mapped : *blank;
    if (begin != run.end) {
      close(run);
      run = {begin, begin, {}};
    }
    run.end = begin + length;
    if (take_mapped) run.mapped.push_back({begin, length});
    take_mapped ? ++mapped : ++blank;
  }
  close(run);
  return best_missing != UINT64_MAX;
}

// Returns whether hardly any block was released so far. Then no extent has a block that outlives its neighbours.
bool Arena::OnlyGrown() const { return released_ <= reserved_ / kReleasedShare; }

// Returns the size of new extents if `more` bytes are added: a power of two.
uint64_t Arena::ExtentLimit(uint64_t more) const {
  const ExtentLimits limits = memory_->Extents();
  const uint64_t share = (reserved_ + more) / (OnlyGrown() ? limits.share : kLaterShare * limits.share);
  return std::max(chunk_, std::bit_floor(std::min(limits.bytes, share)));
}

// Adds the runs of chunks without pages in [begin, end), whole chunks, to the targets.
void Arena::AddMissing(DeviceAddress begin, DeviceAddress end, PageWork* work) const {
  for (DeviceAddress chunk = begin; chunk < end; chunk += chunk_) {
    if (extents_.IsMapped(IndexOf(chunk))) continue;
    std::vector<AddressRange>& runs = work->targets;
    if (runs.empty() || runs.back().begin + runs.back().bytes != chunk) runs.push_back({chunk, 0});
    runs.back().bytes += chunk_;
  }
}

bool Arena::BeginGrowth(uint64_t bytes, uint64_t create_up_to, uint64_t ahead_up_to, PageWork* work) {
  work->small = IsSmall(bytes);
  if (work->small) {
    if (unmapped_.ranges().empty()) return false;
    work->block = {ChooseSmallChunk(), chunk_};
  } else if (!ChooseWindow(bytes, &work->block)) {
    return false;
  }
  const DeviceAddress begin = work->block.begin, end = begin + work->block.bytes;
  // Sets the span aside: the mapped part of the block, and whole chunks where there are no pages.
  MarkUsed(begin, work->block.bytes);
  AddMissing(Down(begin), Up(end), work);
  for (const AddressRange& run : work->targets) unmapped_.Remove(run.begin, run.bytes);
  for (uint64_t c = IndexOf(begin); c <= IndexOf(end - 1); ++c) {
    if (!extents_.IsMapped(c)) continue;
    const DeviceAddress chunk = base_ + c * chunk_;
    const DeviceAddress from = std::max(begin, chunk), to = std::min(end, chunk + chunk_);
    free_.Remove(from, to - from);
    work->span.push_back({from, to - from});
  }
  work->max_extent = ExtentLimit(work->TargetBytes());
  if (work->small) {
    work->max_extent = std::min(work->max_extent, std::max(chunk_, std::bit_floor(small_bytes_ / kSmallShare)));
  }
  GatherPages(create_up_to, work);
  GrowAhead(ahead_up_to, work);
  return true;
}

// Lets growth reach beyond the block, to the end of its last new extent. Only with new pages, as far as
// `ahead_up_to` allows.
void Arena::GrowAhead(uint64_t ahead_up_to, PageWork* work) {
  if (work->targets.empty() || !work->take.empty() || !OnlyGrown()) return;
  const uint64_t found = BytesOf(work->extents), wanted = work->TargetBytes();
  if (found >= wanted) return;
  const AddressRange& last = work->targets.back();
  const uint64_t ahead = (work->max_extent - last.bytes % work->max_extent) % work->max_extent;
  const DeviceAddress begin = last.begin + last.bytes;
  auto it = unmapped_.Containing(begin);
  if (ahead == 0 || it == unmapped_.ranges().end() || begin + ahead > it->first + it->second) return;
  if (wanted - found + ahead > Allowance(ahead_up_to)) return;
  unmapped_.Remove(begin, ahead);
  work->ahead = ahead;
}

void Arena::CancelGrowth(PageWork* work) {
  work->not_taken.swap(work->take);  // nothing was done yet: all ranges are restored
  Finish(work);
}

uint64_t Arena::Shortfall(const PageWork& work, uint64_t create_up_to) const {
  uint64_t found = BytesOf(work.extents) + Allowance(create_up_to) / chunk_ * chunk_;
  for (const AddressRange& range : work.take) found += range.bytes;
  const uint64_t wanted = work.TargetBytes();
  return wanted > found ? (wanted - found) / chunk_ : 0;
}

bool Arena::BeginMap(DeviceAddress begin, uint64_t bytes, const AddressRange& within, uint64_t create_up_to,
                     PageWork* work) {
  AddMissing(Down(begin), Up(begin + bytes), work);
  if (work->targets.empty()) return false;
  work->max_extent = ExtentLimit(work->TargetBytes());
  const uint64_t mask = work->max_extent - 1;
  PageWork wide;
  AddMissing(std::max(within.begin, Down(begin) & ~mask),
             std::min(within.begin + within.bytes, (Up(begin + bytes) + mask) & ~mask), &wide);
  const uint64_t wanted = wide.TargetBytes();
  if (wanted > work->TargetBytes() && wanted <= Allowance(create_up_to)) work->targets.swap(wide.targets);
  GatherPages(create_up_to, work);
  return true;
}

bool Arena::BeginMapAvailable(const AddressRange& zone, uint64_t create_up_to, PageWork* work) {
  uint64_t available = pooled() + Allowance(create_up_to) / chunk_ * chunk_;
  for (const AddressRange& extent : FreeExtents(/*old_only=*/false)) available += extent.bytes;
  for (DeviceAddress chunk = zone.begin; chunk < zone.begin + zone.bytes && available > 0; chunk += chunk_) {
    if (extents_.IsMapped(IndexOf(chunk))) continue;
    AddMissing(chunk, chunk + chunk_, work);
    available -= chunk_;
  }
  if (work->targets.empty()) return false;
  work->max_extent = ExtentLimit(work->TargetBytes());
  GatherPages(create_up_to, work);
  return true;
}

// Collects pages for all targets: the pool's, then new ones within the allowance, then those of free extents. Execute
// creates the missing ones.
void Arena::GatherPages(uint64_t create_up_to, PageWork* work) {
  work->extents.swap(pool_);
  const uint64_t wanted = work->TargetBytes(), found = BytesOf(work->extents);
  if (wanted <= found) return;
  if (wanted - found > Allowance(create_up_to)) TakeFreeExtents(wanted - found, /*old_only=*/false, work);
}

// Calls function(AddressRange) for each wholly free extent of the list, from the top end down.
template <typename Function>
void Arena::ForEachFreeExtent(const FreeRanges& list, Function function) const {
  for (auto it = list.ranges().rbegin(); it != list.ranges().rend(); ++it) {
    const DeviceAddress begin = it->first, end = begin + it->second;
    for (DeviceAddress at = end; at > begin;) {
      const AddressRange extent = ExtentAt(at - 1);
      if (extent.begin < begin) break;
      if (extent.begin + extent.bytes <= end) function(extent);
      at = extent.begin;
    }
  }
}

std::vector<AddressRange> Arena::FreeExtents(bool old_only) const {
  std::vector<AddressRange> extents;
  for (const FreeRanges* list : {&free_, &small_}) {
    ForEachFreeExtent(*list, [&](const AddressRange& extent) {
      if (!old_only || !UsedInEpoch(extent)) extents.push_back(extent);
    });
  }
  return extents;
}

bool Arena::UsedInEpoch(const AddressRange& extent) const {
  const auto first = used_epoch_.begin() + static_cast<std::ptrdiff_t>(IndexOf(extent.begin));
  const auto last = first + static_cast<std::ptrdiff_t>(extent.bytes / chunk_);
  return std::find(first, last, epoch_) != last;
}

// Sets aside wholly free extents of `bytes`, or of all there are. Takes those that fit into what is still wanted, then
// the smallest one.
void Arena::TakeFreeExtents(uint64_t bytes, bool old_only, PageWork* work) {
  const auto take = [&](const AddressRange& extent) {
    (is_small_[IndexOf(extent.begin)] ? small_ : free_).Remove(extent.begin, extent.bytes);
    if (!work->take.empty() && work->take.back().begin == extent.begin + extent.bytes) {
      work->take.back() = {extent.begin, work->take.back().bytes + extent.bytes};
    } else {
      work->take.push_back(extent);
    }
    bytes -= std::min(bytes, extent.bytes);
  };
  AddressRange smallest;
  for (const AddressRange& extent : FreeExtents(old_only)) {
    if (extent.bytes <= bytes) {
      take(extent);
    } else if (smallest.bytes == 0 || extent.bytes < smallest.bytes) {
      smallest = extent;
    }
  }
  if (bytes > 0 && smallest.bytes > 0) take(smallest);
}

uint64_t Arena::Returnable() const {
  uint64_t bytes = pooled();
  for (const FreeRanges* list : {&free_, &small_}) {
    ForEachFreeExtent(*list, [&bytes](const AddressRange& extent) { bytes += extent.bytes; });
  }
  return bytes;
}

uint64_t Arena::Stuck() const {
  uint64_t bytes = 0;
  if (!extents_.AnyLarge()) return bytes;
  for (const FreeRanges* list : {&free_, &small_}) {
    for (const auto& [begin, length] : list->ranges()) {
      for (DeviceAddress at = begin; at < begin + length;) {
        const AddressRange extent = ExtentAt(at);
        const DeviceAddress end = std::min(begin + length, extent.begin + extent.bytes);
        if (extent.bytes > chunk_ && end - at < extent.bytes) bytes += end - at;
        at = end;
      }
    }
  }
  return bytes;
}

bool Arena::BeginClear(PageWork* work, uint64_t bytes) {
  TakeFreeExtents(bytes, /*old_only=*/false, work);
  return !work->take.empty();
}

bool Arena::BeginRelease(PageWork* work) {
  work->release = true;
  work->extents.swap(pool_);
  return !work->extents.empty();
}

bool Arena::BeginTrim(PageWork* work) {
  work->release = true;
  work->extents.swap(pool_);
  TakeFreeExtents(UINT64_MAX, /*old_only=*/true, work);
  return !work->extents.empty() || !work->take.empty();
}

}  // namespace hotpack
