#include "runtime/memory/arena.h"

#include <algorithm>

#include "runtime/base/node_reserve.h"

namespace hotpack {

MemoryStatus Arena::Open(uint64_t times) {
  chunk_ = memory_->ChunkBytes();
  MemoryStatus status = MemoryStatus::kNotSupported;
  for (; times >= 1; times /= 2) {
    uint64_t bytes = std::min(Up(std::max(memory_->TotalBytes() * times, 64 * chunk_)), kMaxArenaBytes);
    DeviceAddress base = 0;
    ++driver_calls_;
    status = memory_->Reserve(bytes, &base);
    if (status != MemoryStatus::kOk) continue;
    handle_.assign(bytes / chunk_, 0);
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
  constexpr size_t kNode = 4 * sizeof(void*) + 2 * sizeof(uint64_t);  // of a map or set of two words
  ReserveNodes(&nodes_, kNode, 2 * count);
}

void Arena::MarkUsed(DeviceAddress begin, uint64_t bytes) {
  for (uint64_t c = IndexOf(begin); c <= IndexOf(begin + bytes - 1); ++c) used_epoch_[c] = epoch_;
}

// Chooses the place in the best range: at one of its ends, or against its first or last chunk boundary. Prefers to
// break into as few wholly free chunks as possible, then to touch as few chunks as possible. If the block stays and its
// neighbours are released, the rest of these chunks is lost. (Not so in an arena of few chunks: there, gaps between
// blocks cost more.)
bool Arena::TryAllocate(uint64_t bytes, DeviceAddress* address) {
  if (IsSmall(bytes)) return TryAllocateSmall(bytes, address);
  DeviceAddress begin = 0;
  uint64_t length = 0;
  if (!free_.BestFit(bytes, &begin, &length)) return false;
  DeviceAddress end = begin + length;
  DeviceAddress first = Up(begin), last = std::max(first, Down(end));
  const bool roomy = chunks_held_ >= 64;
  std::pair<uint64_t, uint64_t> best{UINT64_MAX, 0};
  for (DeviceAddress at : {begin, end - bytes, first, last - bytes}) {
    if (at < begin || at + bytes > end) continue;
    if (!roomy && at != begin && at != end - bytes) continue;
    uint64_t touched = roomy ? Up(at + bytes) - Down(at) : 0;
    DeviceAddress from = std::max(Down(at), first), to = std::min(Up(at + bytes), last);
    std::pair<uint64_t, uint64_t> cost{to > from ? to - from : 0, touched};
    if (cost >= best) continue;
    best = cost;
    *address = at;
  }
  free_.Remove(*address, bytes);
  MarkUsed(*address, bytes);
  return true;
}

bool Arena::TryAllocateSmall(uint64_t bytes, DeviceAddress* address) {
  if (!small_.BestFit(bytes, address)) return false;
  small_.Remove(*address, bytes);
  MarkUsed(*address, bytes);
  return true;
}

void Arena::Free(DeviceAddress address, uint64_t bytes) {
  // A block lies in chunks of one kind. A range that a script reserved may not.
  DeviceAddress end = address + bytes;
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

// --- where to grow ---------------------------------------------------------------------------------------------------

// Counts the chunks without pages that [begin, end) touches.
uint64_t Arena::MissingChunks(DeviceAddress begin, DeviceAddress end) const {
  uint64_t missing = 0;
  for (uint64_t c = IndexOf(begin); c <= IndexOf(end - 1); ++c) missing += handle_[c] == 0;
  return missing;
}

// A maximal run of free addresses, mapped or not.
struct Arena::Run {
  DeviceAddress begin = 0, end = 0;
  std::vector<AddressRange> mapped;  // its mapped pieces
};

// Finds the place for `bytes` in free addresses that needs the fewest new pages; of several, the lowest. It lies at an
// end of a free run, or against a mapped piece of one.
bool Arena::ChooseWindow(uint64_t bytes, AddressRange* window) const {
  uint64_t best_missing = UINT64_MAX;
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
    consider(run, run.begin);
    for (const AddressRange& piece : run.mapped) {
      consider(run, piece.begin);
      if (piece.begin + piece.bytes >= bytes) consider(run, piece.begin + piece.bytes - bytes);
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

bool Arena::BeginGrowth(uint64_t bytes, uint64_t create_up_to, PageWork* work) {
  work->small = IsSmall(bytes);
  if (work->small) {
    if (unmapped_.ranges().empty()) return false;
    work->block = {ChooseSmallChunk(), chunk_};
  } else if (!ChooseWindow(bytes, &work->block)) {
    return false;
  }
  DeviceAddress begin = work->block.begin, end = begin + work->block.bytes;
  // Sets the span aside: the mapped part of the block, and whole chunks where there are no pages.
  for (uint64_t c = IndexOf(begin); c <= IndexOf(end - 1); ++c) {
    DeviceAddress chunk = base_ + c * chunk_;
    used_epoch_[c] = epoch_;
    if (handle_[c] == 0) {
      unmapped_.Remove(chunk, chunk_);
      work->targets.push_back(chunk);
    } else {
      DeviceAddress from = std::max(begin, chunk), to = std::min(end, chunk + chunk_);
      free_.Remove(from, to - from);
      work->span.push_back({from, to - from});
    }
  }
  GatherPages(create_up_to, work);
  return true;
}

void Arena::CancelGrowth(PageWork* work) {
  work->not_taken.swap(work->take);  // nothing was done yet: all ranges are restored
  Finish(work);
}

uint64_t Arena::Shortfall(const PageWork& work, uint64_t create_up_to) const {
  uint64_t found = work.handles.size() + (create_up_to > reserved() ? (create_up_to - reserved()) / chunk_ : 0);
  for (const AddressRange& range : work.take) found += range.bytes / chunk_;
  return work.targets.size() > found ? work.targets.size() - found : 0;
}

bool Arena::BeginMap(DeviceAddress begin, uint64_t bytes, uint64_t create_up_to, PageWork* work) {
  for (uint64_t c = IndexOf(begin); c <= IndexOf(begin + bytes - 1); ++c) {
    if (handle_[c] == 0) work->targets.push_back(base_ + c * chunk_);
  }
  if (work->targets.empty()) return false;
  GatherPages(create_up_to, work);
  return true;
}

bool Arena::BeginMapAvailable(const AddressRange& zone, uint64_t create_up_to, PageWork* work) {
  uint64_t available = pool_.size();
  if (create_up_to > reserved()) available += (create_up_to - reserved()) / chunk_;
  for (const FreeRanges* list : {&free_, &small_}) {
    for (const auto& [begin, bytes] : list->ranges()) {
      if (Down(begin + bytes) > Up(begin)) available += (Down(begin + bytes) - Up(begin)) / chunk_;
    }
  }
  for (DeviceAddress chunk = zone.begin; chunk < zone.begin + zone.bytes && work->targets.size() < available;
       chunk += chunk_) {
    if (handle_[IndexOf(chunk)] == 0) work->targets.push_back(chunk);
  }
  if (work->targets.empty()) return false;
  GatherPages(create_up_to, work);
  return true;
}

// Collects pages for all targets: the pool's, then new ones within the allowance, then those of free chunks. Execute
// creates the missing ones.
void Arena::GatherPages(uint64_t create_up_to, PageWork* work) {
  uint64_t need = work->targets.size();
  while (need > 0 && !pool_.empty()) {
    work->handles.push_back(pool_.back());
    pool_.pop_back();
    --need;
  }
  uint64_t allowance = create_up_to > reserved() ? (create_up_to - reserved()) / chunk_ : 0;
  if (need > allowance) TakeFreeChunks(need, /*old_only=*/false, work);
}

// Sets aside up to `chunks` wholly free chunks.
void Arena::TakeFreeChunks(uint64_t chunks, bool old_only, PageWork* work) {
  for (FreeRanges* list : {&free_, &small_}) chunks -= TakeFreeChunksOf(list, chunks, old_only, work);
}

// The same for one list, from the top end down. Returns how many.
uint64_t Arena::TakeFreeChunksOf(FreeRanges* list, uint64_t chunks, bool old_only, PageWork* work) {
  std::vector<AddressRange> found;
  uint64_t wanted = chunks;
  for (auto it = list->ranges().rbegin(); it != list->ranges().rend() && chunks > 0; ++it) {
    DeviceAddress first = Up(it->first), last = Down(it->first + it->second);
    for (DeviceAddress chunk = last; chunk > first && chunks > 0; chunk -= chunk_) {
      if (old_only && used_epoch_[IndexOf(chunk - chunk_)] == epoch_) continue;
      if (!found.empty() && found.back().begin == chunk) {
        found.back() = {chunk - chunk_, found.back().bytes + chunk_};
      } else {
        found.push_back({chunk - chunk_, chunk_});
      }
      --chunks;
    }
  }
  for (const AddressRange& range : found) list->Remove(range.begin, range.bytes);
  work->take.insert(work->take.end(), found.begin(), found.end());
  return wanted - chunks;
}

uint64_t Arena::Returnable() const {
  uint64_t bytes = pooled();
  for (const FreeRanges* list : {&free_, &small_}) {
    for (const auto& [begin, length] : list->ranges()) {
      const DeviceAddress first = Up(begin), last = Down(begin + length);
      if (last > first) bytes += last - first;
    }
  }
  return bytes;
}

bool Arena::BeginClear(PageWork* work, uint64_t chunks) {
  TakeFreeChunks(chunks, /*old_only=*/false, work);
  return !work->take.empty();
}

bool Arena::BeginRelease(PageWork* work) {
  work->release = true;
  work->handles.swap(pool_);
  return !work->handles.empty();
}

bool Arena::BeginTrim(PageWork* work) {
  work->release = true;
  work->handles.swap(pool_);
  TakeFreeChunks(UINT64_MAX, /*old_only=*/true, work);
  return !work->handles.empty() || !work->take.empty();
}

// --- driver calls, without the lock ----------------------------------------------------------------------------------

void Arena::UnmapTaken(PageWork* work) {
  if (work->take.empty() && work->take_zone.empty()) return;
  ++driver_calls_;
  if (!memory_->Synchronize()) {  // work may still be using these pages
    work->not_taken.swap(work->take);
    work->take_zone.clear();
    return;
  }
  UnmapRanges(&work->take, &work->not_taken, work);
  std::vector<AddressRange> kept;  // entries there count as unmapped until they are checked again: harmless
  UnmapRanges(&work->take_zone, &kept, work);
}

// Unmaps `ranges` and keeps those that could be unmapped; the others go to `failed`.
void Arena::UnmapRanges(std::vector<AddressRange>* ranges, std::vector<AddressRange>* failed, PageWork* work) {
  std::vector<AddressRange> done;
  for (const AddressRange& range : *ranges) {
    ++driver_calls_;
    if (memory_->Unmap(range.begin, range.bytes) != MemoryStatus::kOk) {
      failed->push_back(range);
      continue;
    }
    done.push_back(range);
    for (uint64_t c = IndexOf(range.begin); c < IndexOf(range.begin) + range.bytes / chunk_; ++c) {
      work->handles.push_back(handle_[c]);
    }
  }
  ranges->swap(done);
}

void Arena::MapTargets(PageWork* work) {
  while (work->handles.size() < work->targets.size()) {
    ChunkHandle handle = 0;
    ++driver_calls_;
    work->status = memory_->CreateChunk(&handle);
    if (work->status != MemoryStatus::kOk) return;
    ++work->created;
    work->handles.push_back(handle);
  }
  for (uint64_t k = 0; k < work->targets.size() && work->status == MemoryStatus::kOk; ++k) {
    ++driver_calls_;
    work->status = memory_->Map(work->targets[k], work->handles[k]);
    if (work->status == MemoryStatus::kOk) ++work->mapped;
  }
  uint64_t enabled = 0;
  for (uint64_t k = 0; k < work->mapped && work->status == MemoryStatus::kOk; k = enabled) {
    uint64_t end = k + 1;
    while (end < work->mapped && work->targets[end] == work->targets[end - 1] + chunk_) ++end;
    ++driver_calls_;
    work->status = memory_->Enable(work->targets[k], (end - k) * chunk_);
    if (work->status == MemoryStatus::kOk) enabled = end;
  }
  if (work->status == MemoryStatus::kOk) return;
  // Undo mappings that are not accessible.
  while (work->mapped > enabled) {
    ++driver_calls_;
    if (memory_->Unmap(work->targets[work->mapped - 1], chunk_) != MemoryStatus::kOk) break;
    --work->mapped;
  }
  work->stuck = work->mapped - enabled;
  work->mapped = enabled;
}

void Arena::Execute(PageWork* work) {
  UnmapTaken(work);
  if (!work->release) {
    MapTargets(work);
    return;
  }
  while (!work->handles.empty()) {
    ++driver_calls_;
    if (memory_->ReleaseChunk(work->handles.back()) != MemoryStatus::kOk) break;
    work->handles.pop_back();
    ++work->released;
  }
}

// --- commit ----------------------------------------------------------------------------------------------------------

bool Arena::Finish(PageWork* work) {
  chunks_held_ = chunks_held_ + work->created - work->released;
  for (const AddressRange& range : work->take) {
    for (uint64_t c = IndexOf(range.begin); c < IndexOf(range.begin) + range.bytes / chunk_; ++c) {
      handle_[c] = 0;
      is_small_[c] = false;
    }
    unmapped_.Add(range.begin, range.bytes);
  }
  for (const AddressRange& range : work->take_zone) {
    for (uint64_t c = IndexOf(range.begin); c < IndexOf(range.begin) + range.bytes / chunk_; ++c) handle_[c] = 0;
  }
  for (const AddressRange& range : work->not_taken) Free(range.begin, range.bytes);
  for (uint64_t k = 0; k < work->mapped; ++k) handle_[IndexOf(work->targets[k])] = work->handles[k];
  for (uint64_t k = work->mapped + work->stuck; k < work->handles.size(); ++k) pool_.push_back(work->handles[k]);
  bool ok = !work->release && work->mapped == work->targets.size();
  if (work->block.bytes == 0) return ok;  // pages of a zone
  DeviceAddress begin = work->block.begin, end = begin + work->block.bytes;
  for (uint64_t k = 0; k < work->targets.size(); ++k) {
    DeviceAddress chunk = work->targets[k];
    if (k >= work->mapped) {
      if (k >= work->mapped + work->stuck) unmapped_.Add(chunk, chunk_);
    } else if (!ok) {
      free_.Add(chunk, chunk_);
    } else {  // the part of the new chunks that the block does not need
      if (chunk < begin) free_.Add(chunk, begin - chunk);
      if (chunk + chunk_ > end) free_.Add(end, chunk + chunk_ - end);
    }
  }
  if (!ok) {
    for (const AddressRange& piece : work->span) free_.Add(piece.begin, piece.bytes);
  } else if (work->small) {
    is_small_[IndexOf(begin)] = true;
    small_.Add(begin, chunk_);
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
    if (handle_[IndexOf(chunk)] == 0) {
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
    const bool small = used > 0 && alone && IsSmall(used);
    is_small_[IndexOf(chunk)] = small;
    for (const AddressRange& gap : gaps) (small ? small_ : free_).Add(gap.begin, gap.bytes);
  }
}

bool Arena::TakeRange(const AddressRange& range) {
  DeviceAddress end = range.begin + range.bytes;
  if (!Mapped(range.begin, range.bytes)) return false;
  for (FreeRanges* list : {&free_, &small_}) {
    std::vector<AddressRange> pieces;
    auto it = list->ranges().upper_bound(range.begin);
    if (it != list->ranges().begin()) --it;
    for (; it != list->ranges().end() && it->first < end; ++it) {
      DeviceAddress from = std::max(it->first, range.begin), to = std::min(it->first + it->second, end);
      if (from < to) pieces.push_back({from, to - from});
    }
    for (const AddressRange& piece : pieces) list->Remove(piece.begin, piece.bytes);
  }
  return true;
}

std::vector<AddressRange> Arena::Fragments(const std::vector<AddressRange>& kept) const {
  std::vector<AddressRange> fragments;
  auto next = kept.begin();
  while (next != kept.end()) {
    // A run of chunks of one kind that kept blocks touch.
    DeviceAddress begin = Down(next->begin), end = begin;
    bool small = is_small_[IndexOf(begin)];
    DeviceAddress free_from = begin;
    for (; next != kept.end() && Down(next->begin) <= end && is_small_[IndexOf(next->begin)] == small; ++next) {
      if (next->begin > free_from) fragments.push_back({free_from, next->begin - free_from});
      free_from = next->begin + next->bytes;
      end = Up(free_from);
    }
    // The run may continue in a chunk of the other kind, which does not belong to it.
    DeviceAddress limit = end;
    if (next != kept.end() && Down(next->begin) < end) limit = std::max(free_from, Down(next->begin));
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
  return true;
}

}  // namespace hotpack
