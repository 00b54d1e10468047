#include "runtime/memory/arena.h"

#include <algorithm>

#include "runtime/base/node_reserve.h"

namespace hotpack {
namespace {

constexpr uint64_t kMuchFreeShare = 4;  // "much is free": more than this part of the memory held
constexpr uint64_t kManyChunks = 512;   // held: what is lost in one of them hardly counts

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
