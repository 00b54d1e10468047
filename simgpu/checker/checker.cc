#include "simgpu/checker/checker.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "simgpu/checker/report.h"

namespace simgpu {

Checker::Blocks::iterator Checker::FindBlock(uint64_t address) {
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return live_.end();
  --it;
  return address < it->second.end ? it : live_.end();
}

Checker::Ghosts::iterator Checker::FirstGhost(uint64_t begin) {
  auto it = ghosts_.upper_bound(begin);
  if (it != ghosts_.begin() && std::prev(it)->second.end > begin) --it;
  return it;
}

// Removes [begin, end) from the ghosts. Returns the unfinished parts, in ascending order.
std::vector<Checker::Below> Checker::TakeGhosts(uint64_t begin, uint64_t end) {
  std::vector<Below> taken;
  auto it = FirstGhost(begin);
  while (it != ghosts_.end() && it->first < end) {
    const uint64_t ghost_begin = it->first;
    Ghost ghost = std::move(it->second);
    it = ghosts_.erase(it);
    ghost.uses.DropFinished(*order_);
    if (ghost.uses.empty()) continue;
    if (ghost.end > end) it = ghosts_.emplace_hint(it, end, ghost);
    if (ghost_begin < begin) ghosts_[ghost_begin] = {begin, ghost.uses};
    taken.push_back({std::max(begin, ghost_begin), std::min(end, ghost.end), std::move(ghost.uses)});
  }
  return taken;
}

void Checker::AddGhost(Ghosts::iterator* last, uint64_t begin, uint64_t end, UseSet uses) {
  if (begin >= end || uses.empty()) return;
  if (*last != ghosts_.end() && (*last)->second.end == begin && (*last)->second.uses.SameAs(uses)) {
    (*last)->second.end = end;
    return;
  }
  *last = ghosts_.emplace(begin, Ghost{end, std::move(uses)}).first;
}

// A block leaves its own uses everywhere, and the uses of earlier blocks where those were. Work ordered after this
// block need not be ordered after those, for example if the block was never used.
void Checker::LeaveGhost(Blocks::iterator block) {
  UseSet own = std::move(block->second.uses);
  own.DropFinished(*order_);
  uint64_t at = block->first;
  auto last = ghosts_.end();
  for (Below& below : block->second.below) {
    AddGhost(&last, at, below.begin, own);
    below.uses.DropFinished(*order_);
    below.uses.Merge(own, *order_);
    AddGhost(&last, below.begin, below.end, std::move(below.uses));
    at = below.end;
  }
  AddGhost(&last, at, block->second.end, std::move(own));
}

// Clears the range for a new block. Returns false if the driver's own block at the same place is the same one.
bool Checker::ClearOverlaps(uint64_t begin, uint64_t end, Teller teller) {
  auto it = live_.upper_bound(begin);
  if (it != live_.begin() && std::prev(it)->second.end > begin) --it;
  while (it != live_.end() && it->first < end) {
    Block& old = it->second;
    if (old.teller == Teller::kDriver && teller == Teller::kOutside) {
      if (it->first == begin && old.end == end) {
        old.teller = Teller::kOutside;
        return false;
      }
      if (it->first <= begin && end <= old.end) {  // an allocator's arena: its parts are the blocks
        Region region = memory_->Find(begin);
        if (region.arena != nullptr) *region.arena = true;
        LeaveGhost(it);
        it = live_.erase(it);
        continue;
      }
    }
    Report("overlap",
           "block [0x%" PRIx64 ", 0x%" PRIx64 ") was given while block [0x%" PRIx64 ", 0x%" PRIx64 ") is live", begin,
           end, it->first, old.end);
    lost_.insert(it->first);
    LeaveGhost(it);
    it = live_.erase(it);
  }
  return true;
}

void Checker::Given(uint64_t address, uint64_t bytes, Teller teller, Owner owner) {
  if (!enabled_ || bytes == 0) return;
  const uint64_t end = address + bytes;
  if (!ClearOverlaps(address, end, teller)) return;
  Block block{.end = end, .serial = next_serial_++, .teller = teller, .owner = owner};
  block.below = TakeGhosts(address, end);
  for (const Below& below : block.below) block.after.Merge(below.uses, *order_);
  if (teller == Teller::kOutside) {
    const Region region = memory_->Find(address);
    if (region.arena != nullptr && (region.begin != address || region.end != end)) *region.arena = true;
  }
  live_[address] = std::move(block);
  lost_.erase(address);
}

namespace {

thread_local uint64_t last_returned = 0;  // by an outside teller: the driver's own call about it follows

}  // namespace

void Checker::UnknownFree(uint64_t address) {
  if (!enabled_ || last_returned == address) {
    last_returned = 0;
    return;
  }
  const bool again = returned_.contains(address);
  Report(again ? "double-free" : "unknown-free",
         again ? "block 0x%" PRIx64 " was released again" : "0x%" PRIx64 " is the start of no block", address);
}

void Checker::Returned(uint64_t address, Teller teller) {
  if (!enabled_) return;
  const bool outside = teller == Teller::kOutside;
  last_returned = outside ? address : 0;
  auto it = live_.find(address);
  Release* release = outside ? &releases_[std::this_thread::get_id()] : nullptr;
  if (outside) *release = {};
  if (it == live_.end()) {
    if (!outside) return;  // an arena, or the outside teller was here before
    if (lost_.erase(address) > 0) {
      release->address = address;
      return;
    }
    last_returned = 0;
    UnknownFree(address);
    last_returned = address;
    return;
  }
  if (outside) *release = {.address = address, .block = it->second, .again = returned_.contains(address)};
  LeaveGhost(it);
  live_.erase(it);
  returned_.insert(address);
}

void Checker::Kept(uint64_t address) {
  if (!enabled_) return;
  if (last_returned == address) last_returned = 0;
  const auto it = releases_.find(std::this_thread::get_id());
  if (it == releases_.end() || it->second.address != address) return;
  Release release = std::exchange(it->second, {});
  if (release.block.end == 0) {
    lost_.insert(address);
    return;
  }
  // An allocator that refuses a release cannot have given the addresses away since. If it has, that is reported.
  ClearOverlaps(address, release.block.end, release.block.teller);
  TakeGhosts(address, release.block.end);  // only its own: the uses of earlier blocks are in `below`
  live_.insert_or_assign(address, std::move(release.block));
  if (!release.again) returned_.erase(address);
}

void Checker::CheckMapped(Blocks::iterator block, const char* what) {
  const uint64_t generation = memory_->Generation();
  if (block->second.checked_generation == generation) return;
  block->second.checked_generation = generation;
  for (uint64_t at = block->first; at < block->second.end;) {
    const Region region = memory_->Find(at);
    const bool missing = region.kind == RegionKind::kUnmapped || region.kind == RegionKind::kForeign;
    if (missing || !region.accessible) {
      Report(missing ? "unmapped" : "no-access",
             "%s uses block [0x%" PRIx64 ", 0x%" PRIx64 "), but 0x%" PRIx64 " is %s", what, block->first,
             block->second.end, at, missing ? "not mapped" : "mapped without access");
      return;
    }
    at = region.end;
  }
}

void Checker::UseBlock(Epoch op, Blocks::iterator block, const char* what) {
  Block& b = block->second;
  if (!b.after.empty()) {
    b.after.DropFinished(*order_);
    for (Epoch earlier : b.after) {
      if (order_->Before(earlier, op.stream)) continue;
      Report(
          "reuse-without-order",
          "%s on stream %d uses block [0x%" PRIx64 ", 0x%" PRIx64
          ") but is not ordered after the use of an earlier block at these addresses by stream %d (operation %" PRIu64
          ")",
          what, op.stream, block->first, b.end, earlier.stream, earlier.tick);
      b.after = UseSet();  // once a block
      break;
    }
  }
  CheckMapped(block, what);
  b.uses.Add(op);
}

// Handles a use of addresses in no live block, from `address` to at most `end`. Returns where it stopped. `in_graph`: a
// graph may use memory that outlives its block.
uint64_t Checker::UseOutside(Epoch op, uint64_t address, uint64_t end, const char* what, bool in_graph) {
  const Region region = memory_->Find(address);
  const auto next = live_.upper_bound(address);
  uint64_t stop = std::min(end, region.end);
  if (next != live_.end()) stop = std::min(stop, next->first);
  switch (region.kind) {
    case RegionKind::kForeign:
    case RegionKind::kHost:
      break;
    case RegionKind::kUnmapped:
      Report("use-after-free", "%s on stream %d uses [0x%" PRIx64 ", 0x%" PRIx64 "), where no memory is", what,
             op.stream, address, stop);
      break;
    case RegionKind::kAllocation:
    case RegionKind::kMapped:
      if (*region.arena && in_graph) {
        // Nothing to report.
      } else if (*region.arena) {
        Report("use-after-free", "%s on stream %d uses [0x%" PRIx64 ", 0x%" PRIx64 "), which is in no live block", what,
               op.stream, address, stop);
      } else if (!region.accessible) {
        Report("no-access", "%s on stream %d uses [0x%" PRIx64 ", 0x%" PRIx64 "), which is mapped without access", what,
               op.stream, address, stop);
      }
      region.uses->Add(op);
      break;
  }
  return stop;
}

void Checker::CheckGivenBefore(Epoch op, Blocks::iterator block, uint64_t address, const char* what,
                               uint64_t given_before) {
  if (block->second.serial < given_before) return;
  Report("use-after-free", "%s on stream %d uses 0x%" PRIx64 ", which was given to another block after the capture",
         what, op.stream, address);
}

void Checker::Use(Epoch op, uint64_t address, uint64_t bytes, const char* what, uint64_t given_before) {
  if (!enabled_) return;
  const uint64_t end = address + bytes;
  while (address < end) {
    auto block = FindBlock(address);
    if (block != live_.end()) {
      CheckGivenBefore(op, block, address, what, given_before);
      UseBlock(op, block, what);
      address = block->second.end;
    } else {
      address = UseOutside(op, address, end, what, given_before != ~uint64_t{0});
    }
  }
}

void Checker::UsePointer(Epoch op, uint64_t word, bool is_pointer, const char* what, uint64_t given_before) {
  if (!enabled_) return;
  auto block = FindBlock(word);
  if (block != live_.end()) {
    CheckGivenBefore(op, block, word, what, given_before);
    UseBlock(op, block, what);
    return;
  }
  const Region region = memory_->Find(word);
  if (region.kind == RegionKind::kForeign || region.kind == RegionKind::kHost) return;
  if (region.kind != RegionKind::kUnmapped && !*region.arena) {  // the program's own use of the driver's memory
    UseOutside(op, word, word + 1, what, false);
    return;
  }
  // A pointer to the end of a live block is an end, not a use. A graph may use memory that outlives its block.
  if (!is_pointer || FindBlock(word - 1) != live_.end()) return;
  if (given_before != ~uint64_t{0} && region.kind != RegionKind::kUnmapped) {
    region.uses->Add(op);
    return;
  }
  UseOutside(op, word, word + 1, what, false);
}

void Checker::Forget(uint64_t begin, uint64_t end) {
  if (!enabled_) return;
  for (auto it = live_.lower_bound(begin); it != live_.end() && it->first < end; it = live_.erase(it)) {
    returned_.insert(it->first);
    LeaveGhost(it);
  }
}

void Checker::ForgetDevice(int device) {
  if (!enabled_) return;
  for (auto it = live_.begin(); it != live_.end();) {
    auto next = std::next(it);
    if (memory_->Find(it->first).device == device) Forget(it->first, it->first + 1);
    it = next;
  }
}

void Checker::ForgetContext(uint64_t context) {
  if (!enabled_) return;
  for (auto it = live_.begin(); it != live_.end();) {
    auto next = std::next(it);
    const Owner& owner = it->second.owner;
    // Memory of a pool outlives contexts, unless an allocator made it of its own mappings.
    const bool goes =
        owner.context == context && (!owner.pooled || memory_->Find(it->first).kind == RegionKind::kMapped);
    if (goes) Forget(it->first, it->first + 1);
    it = next;
  }
}

void Checker::TakenAway(uint64_t begin, uint64_t end, const char* what) {
  if (!enabled_) return;
  auto it = live_.upper_bound(begin);
  if (it != live_.begin() && std::prev(it)->second.end > begin) --it;
  for (; it != live_.end() && it->first < end; it = live_.erase(it)) {
    Report("taken-away", "%s of [0x%" PRIx64 ", 0x%" PRIx64 "), but block [0x%" PRIx64 ", 0x%" PRIx64 ") is live", what,
           begin, end, it->first, it->second.end);
    lost_.insert(it->first);
    LeaveGhost(it);
  }
  UseSet unfinished;
  for (const Below& below : TakeGhosts(begin, end)) unfinished.Merge(below.uses, *order_);
  for (uint64_t at = begin; at < end;) {
    const Region region = memory_->Find(at);
    if (region.uses != nullptr) unfinished.Merge(*region.uses, *order_);
    if (region.end <= at) break;
    at = region.end;
  }
  for (Epoch e : unfinished) {
    Report("unmap-in-use", "%s of [0x%" PRIx64 ", 0x%" PRIx64 "), which unfinished work on stream %d may still use",
           what, begin, end, e.stream);
    break;
  }
}

}  // namespace simgpu
