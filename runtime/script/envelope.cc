#include "runtime/script/envelope.h"

#include <algorithm>
#include <cmath>

#include "packer/block_unit.h"
#include "runtime/script/envelope_alignment.h"

namespace hotpack {
namespace {

constexpr size_t kSizes = 48, kContexts = 8, kReleases = 6;  // remembered by entry
constexpr size_t kSuccessors = 12, kBranches = 24;
constexpr float kDecay = 0.9f;                   // of a successor's weight, at each request of its entry
constexpr int kLongLife = 8, kNotReleased = 40;  // classes of lives
constexpr size_t kMostMet = 1 << 20;
constexpr uint64_t kSlackUnits = 2048;  // loads that differ by 1 MiB are equal

// Appends a value that is new, and drops the oldest one above `most`.
template <typename Value>
void Remember(std::vector<Value>* values, Value value, size_t most) {
  if (std::find(values->begin(), values->end(), value) != values->end()) return;
  if (values->size() >= most) values->erase(values->begin());
  values->push_back(value);
}

}  // namespace

int LifeClass(uint64_t age) {
  return age == 0 ? kNotReleased : std::min(kLongLife, static_cast<int>(2 * std::log2(static_cast<double>(age))));
}

uint32_t EnvelopeBranch(const EnvelopeEntry& from, uint32_t from_position, uint32_t to_position, uint32_t before) {
  if (from.successors.size() < 2) return before;
  return EnvelopeBranchStep(before, EnvelopeChoiceStep(from_position, to_position));
}

// --- an iteration ----------------------------------------------------------------------------------------------------

std::vector<uint32_t> Envelope::Merge(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                                      const ReleasedAt& released_at) {
  std::vector<uint32_t> entries = Align(first, iteration, released_at);
  const auto inserted = static_cast<uint64_t>(std::count(entries.begin(), entries.end(), kNone));
  full_ = entries_.size() + inserted > limits_.most_entries;
  if (full_) return std::vector<uint32_t>(entries.size(), kNone);
  Insert(&entries);
  for (size_t i = 0; i < iteration.size(); ++i) {
    const uint64_t released = iteration[i].released;
    const uint64_t ordinal = first + i;
    Learn(&entries_[entries[i]], iteration[i], LifeClass(released == UINT64_MAX ? 0 : released - ordinal));
    if (last_entry_ != kNone) LearnSuccessor(last_entry_, entries[i]);
    last_entry_ = entries[i];
  }
  LearnLives(first, iteration, entries, released_at);
  LearnMistakes(iteration, entries);
  ++iterations_;
  return entries;
}

std::vector<uint32_t> Envelope::Align(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                                      const ReleasedAt& released_at) const {
  if (order_.empty()) return std::vector<uint32_t>(iteration.size(), kNone);
  std::vector<int> lives;
  std::vector<uint32_t> units, carried;
  for (size_t i = 0; i < iteration.size(); ++i) {
    const uint64_t released = iteration[i].released;
    lives.push_back(LifeClass(released == UINT64_MAX ? 0 : released - first - i));
    units.push_back(iteration[i].sign.units);
  }
  for (const LiveBlock& block : live_) carried.push_back(entries_[block.entry].last_units);
  const uint64_t own = IterationLoad(first, iteration, released_at, units, carried);
  const double limit = static_cast<double>(std::max(own, LoadUnits())) * limits_.load_growth + kSlackUnits;
  for (const bool equal_sizes : {false, true}) {
    std::vector<uint32_t> entries = AlignIteration(entries_, order_, iteration, lives, equal_sizes);
    if (static_cast<double>(LoadWith(first, iteration, entries, released_at)) <= limit) return entries;
  }
  return std::vector<uint32_t>(iteration.size(), kNone);
}

// The largest sum of units that are live at a request. `units`: of the iteration's requests; `carried_units`: of live_.
uint64_t Envelope::IterationLoad(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                                 const ReleasedAt& released_at, const std::vector<uint32_t>& units,
                                 const std::vector<uint32_t>& carried_units) const {
  const uint64_t end = first + iteration.size();
  std::vector<int64_t> change(iteration.size() + 1, 0);
  for (size_t k = 0; k < live_.size(); ++k) {
    const uint64_t released = released_at(live_[k].ordinal);
    if (released <= first) continue;
    change[0] += carried_units[k];
    if (released < end) change[released - first] -= carried_units[k];
  }
  for (size_t i = 0; i < iteration.size(); ++i) {
    change[i] += units[i];
    if (iteration[i].released < end) change[iteration[i].released - first] -= units[i];
  }
  int64_t now = 0, most = 0;
  for (const int64_t each : change) most = std::max(most, now += each);
  return static_cast<uint64_t>(most);
}

uint64_t Envelope::LoadWith(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                            const std::vector<uint32_t>& entries, const ReleasedAt& released_at) const {
  std::vector<uint32_t> placed = PlacedUnits(), units, carried;
  for (size_t i = 0; i < iteration.size(); ++i) {
    const uint32_t asked = iteration[i].sign.units;
    if (entries[i] == kNone) {
      units.push_back(asked);
      continue;
    }
    uint32_t& entry_units = placed[entries[i]];
    if (entry_units != 0) entry_units = std::max(entry_units, asked);
    units.push_back(std::max(asked, entries_[entries[i]].max_units));
  }
  for (const LiveBlock& block : live_) carried.push_back(placed[block.entry]);
  return std::max(moments_.Load(placed), IterationLoad(first, iteration, released_at, units, carried));
}

// Gives each request without an entry a new one, behind the entry of the request before it.
void Envelope::Insert(std::vector<uint32_t>* entries) {
  std::vector<std::vector<uint32_t>> behind(order_.size() + 1);  // behind[p + 1]: after position p
  size_t at = 0;
  bool inserted = false;
  for (uint32_t& entry : *entries) {
    if (entry != kNone) {
      at = position_[entry] + 1;
      continue;
    }
    entry = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
    position_.push_back(0);
    behind[at].push_back(entry);
    inserted = true;
  }
  if (!inserted) return;
  std::vector<uint32_t> order = behind[0];
  for (size_t p = 0; p < order_.size(); ++p) {
    order.push_back(order_[p]);
    order.insert(order.end(), behind[p + 1].begin(), behind[p + 1].end());
  }
  order_ = std::move(order);
  for (size_t p = 0; p < order_.size(); ++p) position_[order_[p]] = static_cast<uint32_t>(p);
  changed_ = true;
}

void Envelope::Learn(EnvelopeEntry* entry, const EnvelopeRequest& request, int life) {
  const uint32_t units = request.sign.units;
  if (entry->requests > 0 && units != entry->last_units) ++entry->changes;
  if (entry->requests == 0) {
    entry->first_units = units;
  } else if (units > entry->max_units) {
    ++entry->growths;
    changed_ = true;
  }
  ++entry->requests;
  entry->last_units = units;
  entry->max_units = std::max(entry->max_units, units);
  entry->min_units = std::min(entry->min_units, units);
  Remember(&entry->sizes, units, kSizes);
  Remember(&entry->contexts, request.sign.context, kContexts);
  Remember(&entry->releases, request.sign.releases, kReleases);
  entry->life = life;
  if (request.stream == 0 || request.stream == entry->stream) return;
  changed_ = true;
  entry->stream = request.stream;
}

void Envelope::LearnSuccessor(uint32_t from, uint32_t to) {
  std::vector<EnvelopeEntry::Successor>& successors = entries_[from].successors;
  EnvelopeEntry::Successor* found = nullptr;
  for (EnvelopeEntry::Successor& each : successors) {
    each.weight *= kDecay;
    for (auto& [branch, weight] : each.by_branch) {
      if (branch == branch_) weight *= kDecay;
    }
    if (each.entry == to) found = &each;
  }
  if (found == nullptr) {
    successors.push_back({to, 0, {}});
    found = &successors.back();
  }
  found->weight += 1;
  auto& branches = found->by_branch;
  const auto known =
      std::find_if(branches.begin(), branches.end(), [this](const auto& b) { return b.first == branch_; });
  if (known != branches.end()) {
    known->second += 1;
  } else {
    if (branches.size() >= kBranches) branches.erase(branches.begin());
    branches.emplace_back(branch_, 1.0f);
  }
  branch_ = NextBranch(from, to);
  if (successors.size() > kSuccessors) {
    successors.erase(std::min_element(successors.begin(), successors.end(),
                                      [](const auto& a, const auto& b) { return a.weight < b.weight; }));
  }
}

// --- lives -----------------------------------------------------------------------------------------------------------

void Envelope::Bury(const LiveBlock& block) {
  EnvelopeEntry& entry = entries_[block.entry];
  if (entry.releases_seen++ == 0) changed_ = true;
  moments_.Died(block.entry);
}

void Envelope::LearnLongestLife(uint32_t entry, uint32_t until) {
  uint32_t& latest = entries_[entry].until;
  if (latest == kNone || position_[until] > position_[latest]) latest = until;
}

// Plays the requests and releases of the iteration in their order.
void Envelope::LearnLives(uint64_t first, const std::vector<EnvelopeRequest>& iteration,
                          const std::vector<uint32_t>& entries, const ReleasedAt& released_at) {
  std::vector<std::vector<LiveBlock>> dies(iteration.size() + 1);  // dies[i]: released before request i
  std::vector<LiveBlock> stays;
  const auto file = [&](const LiveBlock& block, uint64_t released) {
    if (released > first + iteration.size()) {
      stays.push_back(block);
    } else {
      dies[released <= first ? 0 : released - first].push_back(block);
    }
  };
  for (const LiveBlock& block : live_) file(block, released_at(block.ordinal));
  for (size_t i = 0; i < iteration.size(); ++i) file({first + i, entries[i], iterations_}, iteration[i].released);
  for (size_t i = 0; i <= iteration.size(); ++i) {
    for (const LiveBlock& block : dies[i]) {
      Bury(block);
      if (block.iteration == iterations_ && i > 0) LearnLongestLife(block.entry, entries[i - 1]);
    }
    if (i == iteration.size()) break;
    const bool overlapped = moments_.Overlaps(entries[i]);
    if (moments_.Born(entries[i]) || moments_.Overlaps(entries[i]) != overlapped) changed_ = true;
  }
  live_.clear();
  for (const LiveBlock& block : stays) {
    entries_[block.entry].outlasts = true;
    if (iterations_ - block.iteration < kMaxIterations) {
      live_.push_back(block);
      continue;
    }
    EnvelopeEntry& entry = entries_[block.entry];
    ++entry.overlong;
    if (2 * entry.overlong >= entry.requests) entry.retained = true;
    moments_.Died(block.entry);
  }
}

// A follower that took one entry for another will do so again.
void Envelope::LearnMistakes(const std::vector<EnvelopeRequest>& iteration, const std::vector<uint32_t>& entries) {
  for (size_t i = 0; i < iteration.size(); ++i) {
    if (iteration[i].taken == kNone || iteration[i].taken == entries[i]) continue;
    const std::pair<uint32_t, uint32_t> pair{iteration[i].taken, entries[i]};
    if (std::find(mistaken_.begin(), mistaken_.end(), pair) != mistaken_.end()) continue;
    mistaken_.push_back(pair);
    changed_ = true;
  }
}

// --- the packer's input ----------------------------------------------------------------------------------------------

std::vector<uint32_t> Envelope::PlacedUnits() const {
  std::vector<uint32_t> units;
  for (const EnvelopeEntry& entry : entries_) {
    units.push_back(entry.retained || entry.releases_seen == 0 ? 0 : entry.max_units);
  }
  return units;
}

uint32_t Envelope::RoomUnits(uint32_t entry) const {
  const EnvelopeEntry& e = entries_[entry];
  if (e.changes == 0) return e.max_units;
  const double room = std::ceil(e.max_units * limits_.headroom);
  const bool grows = e.requests >= 4 && e.growths * 4 >= (e.requests - 1) * 3;
  return static_cast<uint32_t>(grows ? std::max(room, 2.0 * e.max_units - e.first_units) : room);
}

uint64_t Envelope::LoadUnits() const { return moments_.Load(PlacedUnits()); }

uint64_t Envelope::RoomLoadUnits() const {
  std::vector<uint32_t> units = PlacedUnits();
  for (uint32_t e = 0; e < units.size(); ++e) {
    if (units[e] > 0) units[e] = RoomUnits(e) * (moments_.Overlaps(e) ? 2 : 1);
  }
  return moments_.Load(units);
}

Instance Envelope::ToInstance(std::vector<uint32_t>* index) const {
  const auto residencies = moments_.Residencies(static_cast<uint32_t>(entries_.size()));
  Instance instance;
  index->clear();
  const std::vector<uint32_t> units = PlacedUnits();
  for (const uint32_t e : order_) {
    if (units[e] == 0 || residencies[e].empty()) continue;
    Block block;
    block.size = static_cast<Bytes>(RoomUnits(e)) * static_cast<Bytes>(kBlockUnit);
    block.residency = residencies[e];
    for (int place = 0; place < (moments_.Overlaps(e) ? 2 : 1); ++place) {
      instance.blocks.push_back(block);
      index->push_back(e);
    }
  }
  return instance;
}

uint64_t EnvelopeEntry::HostBytes() const {
  uint64_t bytes = sizeof(*this) + (sizes.capacity() + releases.capacity()) * sizeof(uint32_t) +
                   contexts.capacity() * sizeof(uint64_t) + successors.capacity() * sizeof(Successor);
  for (const Successor& successor : successors) {
    bytes += successor.by_branch.capacity() * sizeof(successor.by_branch[0]);
  }
  return bytes;
}

uint64_t Envelope::HostBytes() const {
  constexpr uint64_t kNode = 6 * sizeof(uint64_t);  // of a tree
  uint64_t bytes = moments_.HostBytes() + (order_.capacity() + position_.capacity()) * sizeof(uint32_t);
  bytes += met_.size() * kNode;
  for (const EnvelopeEntry& entry : entries_) bytes += entry.HostBytes();
  return bytes;
}

ConflictRows Envelope::Conflicts(const std::vector<uint32_t>& index) const {
  ConflictRows rows(index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (moments_.Conflict(index[i], index[j])) rows.Set(i, j);
    }
  }
  return rows;
}

bool Envelope::HasSeveralStreams() const {
  uint16_t stream = 0;
  for (const EnvelopeEntry& entry : entries_) {
    if (entry.stream == 0) continue;
    if (stream != 0 && entry.stream != stream) return true;
    stream = entry.stream;
  }
  return false;
}

ConflictRows Envelope::WithStreamsApart(ConflictRows conflicts, const std::vector<uint32_t>& index) const {
  if (!HasSeveralStreams()) return conflicts;
  for (size_t i = 0; i < index.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (entries_[index[i]].OnOtherStream(entries_[index[j]])) conflicts.Set(i, j);
    }
  }
  return conflicts;
}

std::vector<ConflictRows> Envelope::Wishes(const ConflictRows& conflicts, const std::vector<uint32_t>& index) const {
  std::vector<std::vector<size_t>> blocks_of(entries_.size());
  for (size_t i = 0; i < index.size(); ++i) blocks_of[index[i]].push_back(i);
  ConflictRows rows = WithStreamsApart(conflicts, index);
  std::vector<ConflictRows> wishes;
  if (HasSeveralStreams()) wishes.push_back(rows);
  for (const auto& [entry, other] : met_) {
    for (const size_t i : blocks_of[entry]) {
      for (const size_t j : blocks_of[other]) rows.Set(i, j);
    }
  }
  if (!met_.empty()) wishes.push_back(rows);
  for (const auto& [taken, right] : mistaken_) {
    for (size_t j = 0; j < index.size(); ++j) {
      if (index[j] == taken || !moments_.Conflict(right, index[j])) continue;
      for (const size_t i : blocks_of[taken]) rows.Set(i, j);
    }
  }
  if (!mistaken_.empty()) wishes.push_back(rows);
  for (size_t i = 0; i < index.size(); ++i) {
    const EnvelopeEntry& entry = entries_[index[i]];
    if (entry.until == kNone) continue;
    const uint32_t begin = position_[index[i]], end = position_[entry.until];
    for (size_t j = 0; j < index.size(); ++j) {
      if (position_[index[j]] > begin && position_[index[j]] <= end) rows.Set(i, j);
    }
  }
  wishes.push_back(std::move(rows));
  return wishes;
}

void Envelope::Met(uint32_t entry, uint32_t other) {
  if (entry == other || std::max(entry, other) >= entries_.size()) return;
  if (met_.size() < kMostMet && met_.emplace(entry, other).second) changed_ = true;
}

}  // namespace hotpack
