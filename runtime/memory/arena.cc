#include "runtime/memory/arena.h"

#include <algorithm>
#include <bit>

#include "runtime/base/node_reserve.h"

namespace hotpack {
namespace {

constexpr uint64_t kLaterShare = 4;      // how much smaller new extents are once the job has released memory
constexpr uint64_t kSmallShare = 8;      // a new extent for small requests is at most this part of their chunks
constexpr uint64_t kMuchFreeShare = 4;   // "much is free": more than this part of the memory held
constexpr uint64_t kManyChunks = 512;    // held: what is lost in one of them hardly counts
constexpr uint64_t kReleasedShare = 64;  // "has only grown": less than this part of the memory held was released

}  // namespace

MemoryStatus Arena::Open(uint64_t times) {
  chunk_ = memory_->ChunkBytes();
  MemoryStatus status = MemoryStatus::kNotSupported;
  for (; times >= 1; times /= 2) {
    uint64_t bytes = std::min(Up(std::max(memory_->TotalBytes() * times, 64 * chunk_)), kMaxArenaBytes);
    DeviceAddress base = 0;
    mover_.CountCall();
    status = memory_->Reserve(bytes, &base);
    if (status != MemoryStatus::kOk) continue;
    extents_.Open(base, bytes, chunk_);
    used_epoch_.assign(bytes / chunk_, 0);
    is_small_.assign(bytes / chunk_, false);
    unmapped_.Add(base, bytes);
    bytes_ = bytes;
    base_ = base;
    return status;
  }
  return status;
}

void Arena::ReserveRanges(size_t count) {
  ReserveBTreeNodes(&nodes_, 2 * count);  // of both trees of a list
}

void Arena::MarkUsed(DeviceAddress begin, uint64_t bytes) {
  for (uint64_t c = IndexOf(begin); c <= IndexOf(begin + bytes - 1); ++c) used_epoch_[c] = epoch_;
}

// Chooses the place in the best range: at one of its ends, or against its first or last wholly free extent. Prefers to
// break into as few wholly free extents as possible, then to touch as few as possible. If the block stays and its
// neighbours are released, the rest of these extents is lost. Not so in an arena of few chunks, or in one of many if
// little is free: there, the gaps between blocks cost more. Most blocks of a load near its peak go together.
bool Arena::TryAllocate(uint64_t bytes, DeviceAddress* address) {
  if (IsSmall(bytes)) return TryAllocateSmall(bytes, address);
  DeviceAddress begin = 0;
  uint64_t length = 0;
  const uint64_t alignment = AlignmentOf(bytes);
  if (!free_.BestFit(bytes + alignment - kBlockUnit, &begin, &length)) return false;
  const DeviceAddress end = begin + length;
  const auto extent_end = [this](DeviceAddress at) {
    const AddressRange extent = ExtentAt(at);
    return extent.begin + extent.bytes;
  };
  // The wholly free extents lie in [first, last).
  const DeviceAddress first = ExtentAt(begin).begin == begin ? begin : extent_end(begin);
  const DeviceAddress last = std::max(first, extent_end(end - 1) == end ? end : ExtentAt(end - 1).begin);
  const bool roomy =
      reserved_ >= 64 * chunk_ && (reserved_ < kManyChunks * chunk_ || free_.total() > reserved_ / kMuchFreeShare);
  const auto up = [alignment](DeviceAddress at) { return (at + alignment - 1) & ~(alignment - 1); };
  const auto down = [alignment](DeviceAddress at) { return at & ~(alignment - 1); };
  std::pair<uint64_t, uint64_t> best{UINT64_MAX, 0};
  for (DeviceAddress at : {up(begin), down(end - bytes), up(first), down(last - bytes)}) {
    if (at < begin || at + bytes > end) continue;
    if (!roomy && at != up(begin) && at != down(end - bytes)) continue;
    const DeviceAddress touched_begin = ExtentAt(at).begin, touched_end = extent_end(at + bytes - 1);
    const uint64_t touched = roomy ? touched_end - touched_begin : 0;
    const DeviceAddress from = std::max(touched_begin, first), to = std::min(touched_end, last);
    const std::pair<uint64_t, uint64_t> cost{to > from ? to - from : 0, touched};
    if (cost >= best) continue;
    best = cost;
    *address = at;
  }
  free_.Remove(*address, bytes);
  MarkUsed(*address, bytes);
  return true;
}

bool Arena::TryAllocateSmall(uint64_t bytes, DeviceAddress* address) {
  const uint64_t alignment = AlignmentOf(bytes);
  if (!small_.BestFit(bytes + alignment - kBlockUnit, address)) return false;
  *address = (*address + alignment - 1) & ~(alignment - 1);
  small_.Remove(*address, bytes);
  MarkUsed(*address, bytes);
  return true;
}

bool Arena::TryAllocateAt(DeviceAddress address, uint64_t bytes) {
  const auto range = free_.Containing(address);
  if (range == free_.ranges().end() || range->first + range->second < address + bytes) return false;
  free_.Remove(address, bytes);
  MarkUsed(address, bytes);
  return true;
}

void Arena::Free(DeviceAddress address, uint64_t bytes) {
  // A block lies in chunks of one kind. A range that a script reserved may not.
  DeviceAddress end = address + bytes;
  if (!IsSmall(bytes)) released_ += bytes;
  while (address < end) {
    bool small = is_small_[IndexOf(address)];
    DeviceAddress stop = Down(address) + chunk_;
    while (stop < end && is_small_[IndexOf(stop)] == small) stop += chunk_;
    stop = std::min(stop, end);
    (small ? small_ : free_).Add(address, stop - address);
    address = stop;
  }
}

// Chooses the lowest chunk without pages in the upper half of the addresses, so that small blocks stay together. If
// addresses are memory (Fixed), none can be spared for that: then the lowest of all.
DeviceAddress Arena::ChooseSmallChunk() const {
  DeviceAddress half = memory_->Fixed() ? base_ : Down(base_ + bytes_ / 2);
  auto it = unmapped_.Containing(half);
  if (it != unmapped_.ranges().end()) return half;
  it = unmapped_.ranges().lower_bound(half);
  return it != unmapped_.ranges().end() ? it->first : unmapped_.ranges().begin()->first;
}

void Arena::SetSmall(const AddressRange& range, bool small) {
  for (uint64_t c = IndexOf(range.begin); c < IndexOf(range.begin) + range.bytes / chunk_; ++c) {
    if (is_small_[c] == small) continue;
    is_small_[c] = small;
    small_bytes_ = small ? small_bytes_ + chunk_ : small_bytes_ - chunk_;
  }
}

// --- where to grow ---------------------------------------------------------------------------------------------------

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

// --- commit ----------------------------------------------------------------------------------------------------------

void Arena::Forget(const AddressRange& range) {
  extents_.Forget(range);
  SetSmall(range, false);
}

// Returns the addresses that were set aside and have no mapping.
void Arena::ReturnUnmapped(const PageWork& work) {
  std::vector<AddressRange> set_aside = work.targets;
  if (work.ahead > 0) set_aside.back().bytes += work.ahead;
  std::vector<MappedExtent> mapped = work.mapped;  // ascending, as the stuck ones after them
  mapped.insert(mapped.end(), work.stuck.begin(), work.stuck.end());
  auto next = mapped.begin();
  for (const AddressRange& run : set_aside) {
    DeviceAddress from = run.begin;
    for (; next != mapped.end() && next->begin < run.begin + run.bytes; ++next) {
      if (next->begin > from) unmapped_.Add(from, next->begin - from);
      from = next->begin + next->extent.bytes;
    }
    if (from < run.begin + run.bytes) unmapped_.Add(from, run.begin + run.bytes - from);
  }
}

bool Arena::Finish(PageWork* work) {
  reserved_ = reserved_ + work->created - work->released;
  calls_.create += work->calls.create;
  calls_.map += work->calls.map;
  calls_.set_access += work->calls.set_access;
  for (const AddressRange& range : work->take) {
    Forget(range);
    unmapped_.Add(range.begin, range.bytes);
  }
  for (const AddressRange& range : work->take_zone) Forget(range);
  for (const AddressRange& range : work->not_taken) Free(range.begin, range.bytes);
  uint64_t mapped_bytes = 0;
  for (const MappedExtent& mapped : work->mapped) {
    extents_.Register(mapped);
    mapped_bytes += mapped.extent.bytes;
  }
  pool_.insert(pool_.end(), work->extents.begin(), work->extents.end());
  const bool ok = !work->release && work->status == MemoryStatus::kOk && mapped_bytes >= work->TargetBytes();
  if (work->block.bytes == 0) return ok;  // pages of a zone
  ReturnUnmapped(*work);
  const DeviceAddress begin = work->block.begin, end = begin + work->block.bytes;
  for (const MappedExtent& mapped : work->mapped) {
    const DeviceAddress from = mapped.begin, to = from + mapped.extent.bytes;
    if (work->small && ok) {
      SetSmall({from, to - from}, true);
      small_.Add(from, to - from);
    } else if (!ok) {
      free_.Add(from, to - from);
    } else {  // the part that the block does not need
      if (from < begin) free_.Add(from, std::min(to, begin) - from);
      if (to > end) free_.Add(std::max(from, end), to - std::max(from, end));
    }
  }
  if (!ok) {
    for (const AddressRange& piece : work->span) free_.Add(piece.begin, piece.bytes);
  }
  return ok;
}

// --- planned zones ---------------------------------------------------------------------------------------------------

bool Arena::TakeZone(uint64_t bytes, AddressRange* zone) {
  bytes = Up(std::max<uint64_t>(bytes, 1));
  for (auto it = unmapped_.ranges().rbegin(); it != unmapped_.ranges().rend(); ++it) {
    if (it->second < bytes) continue;
    *zone = {it->first + it->second - bytes, bytes};
    unmapped_.Remove(zone->begin, bytes);
    return true;
  }
  return false;
}

void Arena::RetireZone(const AddressRange& zone, const std::vector<AddressRange>& live) {
  DeviceAddress end = zone.begin + zone.bytes;
  auto next = live.begin();
  std::vector<AddressRange> gaps;
  for (DeviceAddress chunk = zone.begin; chunk < end; chunk += chunk_) {
    if (!extents_.IsMapped(IndexOf(chunk))) {
      unmapped_.Add(chunk, chunk_);
      continue;
    }
    DeviceAddress free_from = chunk, chunk_end = chunk + chunk_;
    uint64_t used = 0;
    bool alone = true;  // no block here lies in another chunk, too
    gaps.clear();
    while (next != live.end() && next->begin < chunk_end) {
      if (next->begin > free_from) gaps.push_back({free_from, next->begin - free_from});
      free_from = std::max(free_from, next->begin + next->bytes);
      used += next->bytes;
      alone = alone && next->begin >= chunk && free_from <= chunk_end;
      if (free_from > chunk_end) break;  // it continues in the next chunk
      ++next;
    }
    if (free_from < chunk_end) gaps.push_back({free_from, chunk_end - free_from});
    const bool small = used > 0 && alone && IsSmall(used) && ExtentAt(chunk).bytes == chunk_;
    SetSmall({chunk, chunk_}, small);
    for (const AddressRange& gap : gaps) (small ? small_ : free_).Add(gap.begin, gap.bytes);
  }
}

// Returns the parts of the list's ranges that lie in `range`, ascending.
std::vector<AddressRange> Arena::PiecesOf(const FreeRanges& list, const AddressRange& range) {
  const DeviceAddress end = range.begin + range.bytes;
  std::vector<AddressRange> pieces;
  auto it = list.ranges().upper_bound(range.begin);
  if (it != list.ranges().begin()) --it;
  for (; it != list.ranges().end() && it->first < end; ++it) {
    const DeviceAddress from = std::max(it->first, range.begin), to = std::min(it->first + it->second, end);
    if (from < to) pieces.push_back({from, to - from});
  }
  return pieces;
}

bool Arena::TakeRange(const AddressRange& range) {
  if (!Mapped(range.begin, range.bytes)) return false;
  for (FreeRanges* list : {&free_, &small_}) {
    for (const AddressRange& piece : PiecesOf(*list, range)) list->Remove(piece.begin, piece.bytes);
  }
  return true;
}

bool Arena::RetakeZone(const AddressRange& zone, uint64_t used) {
  const DeviceAddress end = zone.begin + zone.bytes;
  const auto crosses = [this](DeviceAddress at) {
    return at > base_ && at < base_ + bytes_ && extents_.IsMapped(IndexOf(at)) && ExtentAt(at).begin != at;
  };
  if (crosses(zone.begin) || crosses(end)) return false;
  FreeRanges* const lists[] = {&free_, &small_, &unmapped_};
  std::vector<AddressRange> pieces[std::size(lists)];
  uint64_t total = used;
  for (size_t k = 0; k < std::size(lists); ++k) {
    pieces[k] = PiecesOf(*lists[k], zone);
    for (const AddressRange& piece : pieces[k]) total += piece.bytes;
  }
  if (total != zone.bytes) return false;
  for (size_t k = 0; k < std::size(lists); ++k) {
    for (const AddressRange& piece : pieces[k]) lists[k]->Remove(piece.begin, piece.bytes);
  }
  SetSmall(zone, false);
  return true;
}

std::vector<AddressRange> Arena::Fragments(const std::vector<AddressRange>& kept) const {
  std::vector<AddressRange> fragments;
  auto next = kept.begin();
  while (next != kept.end()) {
    // A run of extents of one kind that kept blocks touch.
    DeviceAddress begin = ExtentAt(next->begin).begin, end = begin;
    const bool small = is_small_[IndexOf(begin)];
    DeviceAddress free_from = begin;
    for (; next != kept.end() && ExtentAt(next->begin).begin <= end && is_small_[IndexOf(next->begin)] == small;
         ++next) {
      if (next->begin > free_from) fragments.push_back({free_from, next->begin - free_from});
      free_from = next->begin + next->bytes;
      const AddressRange last = ExtentAt(free_from - 1);
      end = last.begin + last.bytes;
    }
    // The run may continue in an extent of the other kind, which does not belong to it.
    DeviceAddress limit = end;
    if (next != kept.end() && ExtentAt(next->begin).begin < end) {
      limit = std::max(free_from, ExtentAt(next->begin).begin);
    }
    if (limit > free_from) fragments.push_back({free_from, limit - free_from});
  }
  return fragments;
}

bool Arena::Mapped(DeviceAddress begin, uint64_t bytes) const { return MissingChunks(begin, begin + bytes) == 0; }

bool Arena::Consistent() const {
  for (const auto& [begin, bytes] : free_.ranges()) {
    if (!Mapped(begin, bytes)) return false;
    auto it = unmapped_.Containing(begin);
    if (it != unmapped_.ranges().end()) return false;
  }
  for (const auto& [begin, bytes] : small_.ranges()) {
    if (!Mapped(begin, bytes) || !is_small_[IndexOf(begin)] || !is_small_[IndexOf(begin + bytes - 1)]) return false;
  }
  for (const auto& [begin, bytes] : unmapped_.ranges()) {
    if (begin % chunk_ != 0 || bytes % chunk_ != 0) return false;
    if (MissingChunks(begin, begin + bytes) != bytes / chunk_) return false;
  }
  for (uint64_t c = 0; c < extents_.size(); ++c) {  // an extent has chunks of one kind
    if (extents_.IsMapped(c) && is_small_[extents_.FirstOf(c)] != is_small_[c]) return false;
  }
  return extents_.Consistent();
}

}  // namespace hotpack
