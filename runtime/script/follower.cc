#include "runtime/script/follower.h"

#include <algorithm>

namespace hotpack {
namespace {
constexpr uint32_t kLongest = 64;  // requests compared: no more than the shortest history stores
}  // namespace

// Converts entries to cells: from the script's own space of offsets to units from `base`.
void Follower::Place(uint64_t base, uint64_t zone) {
  zone_begin_ = static_cast<uint32_t>((zone - base) / kBlockUnit);
  cell_storage_.assign(size_, Cell{});
  cells_ = cell_storage_.data();
  std::vector<uint32_t> offsets;
  offsets.reserve(size_);
  for (uint32_t i = 0; i < size_; ++i) {
    const ScriptEntry& entry = script_->entries[i];
    Cell& cell = cells_[i];
    cell.units = entry.units;
    cell.age = entry.age;
    cell.predecessors = entry.predecessors;
    cell.first_successor = entry.first_successor;
    cell.last_successor = script_->entries[i + 1].first_successor;
    if (entry.offset == kNone) continue;
    if (entry.offset >= script_->zone_offset) {
      cell.offset = entry.offset - script_->zone_offset + zone_begin_;
    } else {
      auto fragment = std::upper_bound(script_->fragments.begin(), script_->fragments.end(), entry.offset,
                                       [](uint32_t offset, const Fragment& h) { return offset < h.offset; }) -
                      1;
      cell.offset = entry.offset - fragment->offset + static_cast<uint32_t>((fragment->address - base) / kBlockUnit);
    }
    offsets.push_back(cell.offset);
  }
  live_.Build(offsets);
  for (Cell& cell : cell_storage_) {
    if (cell.offset != kNone) cell.slot = live_.IndexOf(live_.Find(cell.offset));
  }
}

// Restores the state that Place() leaves.
void Follower::ClearTurns() {
  for (Cell& cell : cell_storage_) cell.pending = cell.ghosts = cell.foreign = 0;
  live_.Clear();
}

void Follower::Start(std::shared_ptr<const Script> script, uint32_t position, uint64_t base, uint64_t zone) {
  if (script == script_ && base == base_ && zone == zone_) {
    ClearTurns();
  } else {
    script_ = std::move(script);
    base_ = base;
    zone_ = zone;
    size_ = script_->size();
    Place(base, zone);
    seen_.assign(size_, Seen{});
    learned_ = false;
  }
  successors_ = script_->successors.data();
  cursor_ = position;
  skipped_.clear();
  skipped_.reserve(kWindow + 1);
  ready_.reserve(size_);  // usually no later heap allocation
  foreign_.clear();
  lost_ = last_was_novel_ = false;
  unmatched_ = ended_ = unmapped_ = 0;
  last_unmatched_at_ = 0;
  divergences_ = left_at_ = left_before_ = 0;
  larger_ = {};
  // An entry waits for those predecessors whose next turn, counted from `position`, comes before its own. The last
  // turns of all others count as ended.
  auto turn = [&](uint32_t i) { return i >= position ? i - position : i + size_ - position; };
  for (uint32_t i = 0; i < size_; ++i) {
    const Cell& cell = cells_[i];
    for (uint32_t s = cell.first_successor; s < cell.last_successor; ++s) {
      if (turn(i) < turn(successors_[s])) ++cells_[successors_[s]].pending;
    }
    if (cell.offset == kNone) {
      cells_[i].pending |= kUnplannedBit;
    } else {
      cells_[i].pending |= kUnmappedBit;
      ++unmapped_;
    }
  }
}

void Follower::Stop() {
  script_.reset();
  live_.Build({});
  size_ = ended_ = unmapped_ = 0;
  lost_ = learned_ = false;
  foreign_.clear();
  skipped_.clear();
}

// --- turns ----------------------------------------------------------------------------------------------------------

// Records that the turn of `entry` is not taken.
void Follower::Ghost(uint32_t entry) {
  Cell& cell = cells_[entry];
  if (cell.offset == kNone) return;
  ++cell.ghosts;
  cell.pending |= kGhostBit;
  EndGhosts(entry);
}

// Ends the ghost turns of `entry` whose predecessors have ended, and all turns that this frees. Uses a list instead of
// recursion: chains can be long.
void Follower::EndGhosts(uint32_t entry) {
  if ((cells_[entry].pending & kCountMask) != 0) return;
  ready_.assign(1, entry);
  while (!ready_.empty()) {
    uint32_t i = ready_.back();
    ready_.pop_back();
    Cell& cell = cells_[i];
    if (cell.ghosts == 0 || (cell.pending & kCountMask) != 0) continue;
    if (--cell.ghosts == 0) cell.pending &= ~kGhostBit;
    cell.pending += cell.predecessors;  // waits for its next turn now
    for (uint32_t s = cell.first_successor; s < cell.last_successor; ++s) {
      uint32_t k = successors_[s];
      if ((--cells_[k].pending & kGhostBit) != 0 && (cells_[k].pending & kCountMask) == 0) ready_.push_back(k);
    }
  }
}

void Follower::GhostSkipped() {
  for (uint32_t entry : skipped_) Ghost(entry);
  skipped_.clear();
}

void Follower::WrapAround() {
  if (larger_.entry != kNone) {
    if (larger_.passed_end || size_ - larger_.entry > Quiet()) {
      LearnLarger();
    } else {
      larger_.passed_end = true;
    }
  }
  cursor_ = 0;
  ++ended_;
  GhostSkipped();
}

// Moves the cursor to `position`. Entries passed over are either skipped (their turn may still come), or become ghosts
// at once.
void Follower::MoveTo(uint32_t position, bool may_return) {
  if (!may_return) GhostSkipped();
  while (cursor_ != position) {
    if (!may_return) {
      Ghost(cursor_);
    } else {
      if (skipped_.size() >= kWindow) {
        Ghost(skipped_.front());
        skipped_.erase(skipped_.begin());
      }
      skipped_.push_back(cursor_);
    }
    Advance();
  }
}

void Follower::SkipTo(uint32_t position) { MoveTo(position, /*may_return=*/false); }

// --- finding the position -------------------------------------------------------------------------------------------

Follower::Answer Follower::Next(uint32_t units, uint64_t ordinal, const History& history) {
  if (ordinal - last_unmatched_at_ > kWindow) {  // that was another deviation
    unmatched_ = 0;
    last_was_novel_ = false;
  }
  bool skipped = false;
  uint32_t position = Locate(units, ordinal, history, &skipped);
  if (position != cursor_) NoteLeft(ordinal);
  if (position == kNone) {
    if (unmatched_ == 0) ++divergences_;
    ++unmatched_;
    last_unmatched_ = units;
    last_unmatched_at_ = ordinal;
    if (unmatched_ > kWindow) lost_ = true;
    return {Outcome::kOffScript, kNone};
  }
  if (position != cursor_ && !skipped && unmatched_ == 0) ++divergences_;
  unmatched_ = 0;
  last_was_novel_ = false;
  return Take(position, units, ordinal, skipped);
}

uint32_t Follower::Locate(uint32_t units, uint64_t ordinal, const History& history, bool* skipped) {
  constexpr uint32_t kSure = 16;
  if (!lost_) {
    bool fits = cells_[cursor_].units == units;
    if (fits && (cells_[cursor_].pending & kBusyMask) == 0) return cursor_;
    // Not the expected request, or too early for it. If the iteration resembles itself, the cursor may have been wrong
    // for long. Accepts only a position that explains more of the past than the cursor does.
    uint32_t least = std::max(kSure, fits ? Agreement(cursor_, ordinal, history) + 1 : 0);
    uint32_t position = FindContext(ordinal, history, least);
    if (position != kNone) {
      larger_ = {};
      MoveTo(position, /*may_return=*/false);
      return position;
    }
    if (fits) return cursor_;
    for (uint32_t entry : skipped_) {
      if (cells_[entry].units == units) {
        *skipped = true;
        return entry;
      }
    }
    uint32_t ahead = FindAhead(units, ordinal);
    if (ahead != kNone) return ahead;
  }
  if (lost_ || unmatched_ + 1 >= Script::kContext) {
    uint32_t position = FindContext(ordinal, history, Script::kContext);
    if (position != kNone) {
      // Far away: the entries in between will not come.
      larger_ = {};
      MoveTo(position, /*may_return=*/false);
      lost_ = false;
      return position;
    }
  }
  return kNone;
}

// Handles one missing request, several missing ones, or a changed one: returns the entry at most kWindow ahead that
// `units` means, if that is clear. An inserted request leaves the cursor where it is, which is right as well.
uint32_t Follower::FindAhead(uint32_t units, uint64_t ordinal) {
  uint32_t reach = std::min(kWindow, size_ - 1);
  uint32_t count = 0, first = kNone;
  for (uint32_t k = 1; k <= reach; ++k) {
    uint32_t i = After(cursor_, k);
    if (cells_[i].units != units) continue;
    if (count++ == 0) first = i;
    if (k >= 2 && unmatched_ > 0 && cells_[After(cursor_, k - 1)].units == last_unmatched_) return i;
  }
  bool after_changed = unmatched_ > 0 && last_was_novel_ && reach > 0 && cells_[After(cursor_, 1)].units == units;
  if (after_changed) {
    if (last_unmatched_ > std::max(cells_[cursor_].units, seen_[cursor_].units)) {
      // Among other deviations it may have been an unrelated request.
      if (left_before_ == 0 || ordinal - left_before_ > Quiet()) larger_ = {cursor_, last_unmatched_, ordinal, false};
    }
    return After(cursor_, 1);
  }
  if (count == 1) return first;
  last_was_novel_ = count == 0;
  // Slightly smaller than planned: the same request, in place.
  if (count == 0 && unmatched_ == 0 && units < cells_[cursor_].units && cells_[cursor_].units / 2 <= units) {
    return cursor_;
  }
  return kNone;
}

// Records that request `ordinal` is not the next entry's.
void Follower::NoteLeft(uint64_t ordinal) {
  if (larger_.ordinal != ordinal) larger_ = {};  // it began another sequence, perhaps an iteration of another shape
  left_before_ = left_at_;
  left_at_ = ordinal;
}

void Follower::LearnLarger() {
  seen_[larger_.entry].units = std::max(seen_[larger_.entry].units, larger_.units);
  learned_ = true;
  larger_ = {};
}

// Returns how many of the last requests, up to request `ordinal`, match the script up to entry `last`; at most
// kLongest.
uint32_t Follower::Agreement(uint32_t last, uint64_t ordinal, const History& history) const {
  uint32_t length = 0, i = last;
  while (length < kLongest && length <= ordinal && history.Units(ordinal - length) == cells_[i].units) {
    ++length;
    i = i == 0 ? size_ - 1 : i - 1;
  }
  return length;
}

// Returns the entry after the script's longest match with the last requests; of several, the next one. The match must
// have at least `least` (≥ kContext) requests; kNone if there is none.
uint32_t Follower::FindContext(uint64_t ordinal, const History& history, uint32_t least) const {
  constexpr int kTries = 256;
  if (ordinal + 1 < Script::kContext || least > kLongest) return kNone;
  uint32_t window[Script::kContext];
  for (uint32_t k = 0; k < Script::kContext; ++k) window[k] = history.Units(ordinal + 1 - Script::kContext + k);
  uint32_t hash = ContextHash(window, Script::kContext);
  auto it = std::lower_bound(script_->contexts.begin(), script_->contexts.end(), std::make_pair(hash, 0u));
  uint32_t best = kNone, best_length = least - 1, best_distance = kNone;
  for (int tries = 0; tries < kTries && it != script_->contexts.end() && it->first == hash; ++it, ++tries) {
    uint32_t last = Before(it->second, 1);  // the entry that this request would be
    uint32_t length = Agreement(last, ordinal, history);
    uint32_t distance = last >= cursor_ ? last - cursor_ : last + size_ - cursor_;
    if (length > best_length || (length == best_length && best != kNone && distance < best_distance)) {
      best = last;
      best_length = length;
      best_distance = distance;
    }
  }
  return best;
}

// The request is entry `position`. Claims its place if it is free.
Follower::Answer Follower::Take(uint32_t position, uint32_t units, uint64_t ordinal, bool skipped) {
  Cell& cell = cells_[position];
  if (skipped) {
    skipped_.erase(std::find(skipped_.begin(), skipped_.end(), position));
  } else {
    MoveTo(position, /*may_return=*/true);
  }
  // A skipped entry that is still missing blocks its successors: it counts as not coming.
  if ((cell.pending & kBusyMask) != 0 && !skipped_.empty()) GhostSkipped();
  Answer answer{Outcome::kUnplanned, position};
  if (cell.offset == kNone) {
    // dynamic by the script
  } else if ((cell.pending & kBusyMask) != 0 || units > cell.units) {
    answer.outcome = Outcome::kDisplaced;
    Ghost(position);
  } else {
    answer.outcome = (cell.pending & kUnmappedBit) != 0 ? Outcome::kUnmapped : Outcome::kPlanned;
    Claim(position, cell, units, ordinal);
  }
  if (!skipped) Advance();
  return answer;
}

// --- foreign blocks and missing pages -------------------------------------------------------------------------------

void Follower::SetUnmapped(uint32_t begin, uint32_t end) {
  for (uint32_t i = 0; i < size_; ++i) {
    if (!Overlaps(i, begin, end) || (cells_[i].pending & kUnmappedBit) != 0) continue;
    cells_[i].pending |= kUnmappedBit;
    ++unmapped_;
  }
}

void Follower::AddForeign(uint32_t begin, uint32_t end) {
  foreign_.push_back({begin, end, kNone});
  for (uint32_t i = 0; i < size_; ++i) {
    if (!Overlaps(i, begin, end)) continue;
    ++cells_[i].foreign;
    cells_[i].pending |= kForeignBit;
  }
}

void Follower::AddForeign(const std::vector<Range>& blocks) {
  foreign_.insert(foreign_.end(), blocks.begin(), blocks.end());
  if (blocks.empty()) return;
  for (uint32_t i = 0; i < size_; ++i) {
    Cell& cell = cells_[i];
    if (cell.offset == kNone) continue;
    auto it = std::upper_bound(blocks.begin(), blocks.end(), cell.offset,
                               [](uint32_t offset, const Range& block) { return offset < block.end; });
    for (; it != blocks.end() && it->begin < cell.offset + cell.units; ++it) {
      ++cell.foreign;
      cell.pending |= kForeignBit;
    }
  }
}

void Follower::RemoveForeign(uint32_t begin, uint32_t end) {
  auto it =
      std::find_if(foreign_.begin(), foreign_.end(), [&](const Range& r) { return r.begin == begin && r.end == end; });
  if (it == foreign_.end()) return;
  foreign_.erase(it);
  for (uint32_t i = 0; i < size_; ++i) {
    if (!Overlaps(i, begin, end)) continue;
    if (--cells_[i].foreign == 0) cells_[i].pending &= ~kForeignBit;
  }
}

std::vector<Follower::Range> Follower::LiveRanges() const {
  std::vector<Range> ranges = foreign_;
  for (const LiveSlots::Slot& slot : live_.slots()) {
    uint32_t i = slot.entry;
    if (i != kNone) ranges.push_back({cells_[i].offset, cells_[i].offset + cells_[i].units, i});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

uint32_t Follower::FindIdleRange(uint32_t units, uint32_t age, uint32_t height, const std::vector<Range>& without_pages,
                                 uint32_t alignment) const {
  std::vector<Range> busy = LiveRanges();
  busy.insert(busy.end(), without_pages.begin(), without_pages.end());
  auto use = [&](uint32_t i) {
    if (cells_[i].offset != kNone) busy.push_back({cells_[i].offset, cells_[i].offset + cells_[i].units, i});
  };
  for (uint32_t k = 0; k < std::min(age, size_); ++k) use(After(cursor_, k));
  for (uint32_t entry : skipped_) use(entry);
  std::sort(busy.begin(), busy.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  uint32_t top = zone_begin_ + height;
  uint32_t best = kNone, best_size = kNone, free_from = zone_begin_;
  auto consider = [&](uint32_t end) {
    const uint32_t begin = (free_from + alignment - 1) & ~(alignment - 1);
    if (end > begin && end - begin >= units && end - free_from < best_size) {
      best = begin;
      best_size = end - free_from;
    }
  };
  for (const Range& range : busy) {
    if (range.end <= zone_begin_ || range.begin >= top) continue;
    consider(range.begin);
    free_from = std::max(free_from, range.end);
  }
  consider(top);
  return best;
}

// --- learning -------------------------------------------------------------------------------------------------------

// Returns the life in turns of the script, which inserted or missing requests do not change. Of the lives that end at
// the cursor, returns the one nearest to `age`.
uint64_t Follower::ScriptAge(uint32_t entry, uint32_t age) const {
  uint64_t first = cursor_ > entry ? cursor_ - entry : cursor_ + size_ - entry;
  if (age <= first) return first;
  uint64_t rounds = (age - first + size_ / 2) / size_;
  return first + rounds * size_;
}

void Follower::NoteAge(uint32_t entry, uint32_t age) {
  if (lost_) return;
  uint64_t turns = ScriptAge(entry, age);
  if (turns > size_) return;  // cannot be planned
  Seen& seen = seen_[entry];
  auto life = static_cast<uint32_t>(turns);
  seen.min_age = seen.min_age == 0 ? life : std::min(seen.min_age, life);
  const ProfileBlock& known = script_->profile.blocks[entry];
  if (known.planned && life <= known.age) return;
  // A single occurrence may be an accident (a tensor kept for a while), unless it is only slightly longer, or no life
  // was known. Two occurrences justify a plan for the shorter of the two lives.
  if (!known.planned || life - known.age <= std::max(8u, size_ / 16)) seen.longest = std::max(seen.longest, life);
  uint32_t longest = std::max(seen.longest, life);
  seen.max_age = std::max(seen.max_age, std::min(seen.longest, life));
  seen.longest = longest;
  if (seen.max_age > 0 && (!known.planned || seen.max_age > known.age)) learned_ = true;
}

Profile Follower::LearnedProfile() const {
  Profile profile = script_->profile;
  for (uint32_t i = 0; i < size_; ++i) {
    ProfileBlock& block = profile.blocks[i];
    const Seen& seen = seen_[i];
    block.units = std::max(block.units, seen.units);
    if (seen.min_age != 0 && block.planned) block.min_age = std::min(block.min_age, seen.min_age);
    if (seen.max_age == 0) continue;
    block.age = std::max(block.age, seen.max_age);
    if (!block.planned) block.min_age = seen.min_age;
    block.planned = true;
  }
  return profile;
}

bool Follower::Consistent() const {
  // At most one live block per address. A live entry's successors are waiting. Every entry knows the foreign blocks
  // that it overlaps.
  for (uint32_t i = 0; i < size_; ++i) {
    auto foreign =
        std::count_if(foreign_.begin(), foreign_.end(), [&](const Range& r) { return Overlaps(i, r.begin, r.end); });
    if (cells_[i].foreign != foreign || ((cells_[i].pending & kForeignBit) != 0) != (foreign != 0)) return false;
    if (cells_[i].ghosts != 0 && (cells_[i].pending & kCountMask) == 0) return false;
  }
  std::vector<Range> ranges = LiveRanges();
  for (size_t k = 1; k < ranges.size(); ++k) {
    if (ranges[k].begin < ranges[k - 1].end) return false;
  }
  for (const Range& range : ranges) {
    if (range.entry == kNone) continue;
    const Cell& e = cells_[range.entry];
    for (uint32_t s = e.first_successor; s < e.last_successor; ++s) {
      uint32_t count = cells_[successors_[s]].pending & kCountMask;
      if (count == 0 || count > size_ * 2) return false;
    }
  }
  return true;
}

}  // namespace hotpack
