#include "runtime/script/envelope_script.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "packer/block_unit.h"

namespace hotpack {

namespace {

constexpr double kUnseenShare = 0.02;  // of a successor that was not chosen lately
constexpr double kBranchPrior = 0.7;   // what is known of all branches counts as so many choices of one

template <typename Value>
uint64_t BytesOf(const std::vector<Value>& values) {
  return values.capacity() * sizeof(Value);
}

uint64_t ScriptBytes(const EnvelopeScript& script) {
  uint64_t bytes = sizeof(script) + BytesOf(script.steps) + BytesOf(script.forks) + BytesOf(script.choices) +
                   BytesOf(script.branches) + BytesOf(script.chances) + BytesOf(script.sizes) +
                   BytesOf(script.contexts) + BytesOf(script.releases) + BytesOf(script.order) +
                   BytesOf(script.positions) + BytesOf(script.past) + script.by_context.HostBytes() +
                   script.by_units.HostBytes();
  for (const EnvelopeEntry& entry : script.entries) bytes += entry.HostBytes();
  if (script.places == nullptr) return bytes;
  bytes += BytesOf(script.places->by_entry);
  for (const EnvelopeSupport& support : script.places->supports) bytes += sizeof(support) + BytesOf(support.places);
  return bytes;
}

// Adds the step of the entry that has none yet.
void AddStep(bool overlaps, EnvelopeScript* script) {
  constexpr uint32_t kSeen = 3;  // requests after which a size that has not changed counts as fixed
  const EnvelopeEntry& entry = script->entries[script->steps.size()];
  EnvelopeStep step;
  if (!entry.contexts.empty()) step.context = entry.contexts.back();
  if (entry.successors.size() == 1) step.successor = entry.successors[0].entry;
  step.last_units = entry.last_units;
  step.max_units = entry.max_units;
  step.min_units = entry.min_units;
  step.first_size = static_cast<uint32_t>(script->sizes.size());
  step.first_context = static_cast<uint32_t>(script->contexts.size());
  step.first_release = static_cast<uint32_t>(script->releases.size());
  step.sizes = static_cast<uint16_t>(entry.sizes.size());
  step.contexts = static_cast<uint8_t>(entry.contexts.size());
  step.releases = static_cast<uint8_t>(entry.releases.size());
  step.fixed = entry.requests >= kSeen && entry.changes == 0;
  step.overlaps = overlaps;
  for (const uint64_t context : entry.contexts) step.contexts_seen |= EnvelopeStep::Bit(context);
  for (const uint32_t releases : entry.releases) step.releases_seen |= EnvelopeStep::ReleasesBit(releases);
  for (const uint32_t units : entry.sizes) step.sizes_seen |= EnvelopeStep::Bit(units);
  script->sizes.insert(script->sizes.end(), entry.sizes.begin(), entry.sizes.end());
  std::sort(script->sizes.begin() + step.first_size, script->sizes.end());
  script->contexts.insert(script->contexts.end(), entry.contexts.begin(), entry.contexts.end());
  script->releases.insert(script->releases.end(), entry.releases.begin(), entry.releases.end());
  script->steps.push_back(step);
}

double WeightIn(const EnvelopeEntry::Successor& successor, uint32_t branch) {
  for (const auto& [seen, weight] : successor.by_branch) {
    if (seen == branch) return weight;
  }
  return 0;
}

// Adds the fork of the entry that has none yet.
void AddFork(EnvelopeScript* script) {
  const auto from = static_cast<uint32_t>(script->forks.size());
  const std::vector<EnvelopeEntry::Successor>& successors = script->entries[from].successors;
  EnvelopeFork fork;
  fork.first_choice = static_cast<uint32_t>(script->choices.size());
  fork.first_branch = static_cast<uint32_t>(script->branches.size());
  fork.first_chance = static_cast<uint32_t>(script->chances.size());
  fork.choices = static_cast<uint32_t>(successors.size());
  double all = 0;
  for (const auto& successor : successors) {
    all += static_cast<double>(successor.weight);
    if (successors.size() == 1) break;  // no choice: its chance is 1 on each branch
    for (const auto& [branch, weight] : successor.by_branch) {
      const auto begin = script->branches.begin() + fork.first_branch;
      if (std::find(begin, script->branches.end(), branch) == script->branches.end()) {
        script->branches.push_back(branch);
      }
    }
  }
  fork.branches = static_cast<uint32_t>(script->branches.size()) - fork.first_branch;
  // Weights of the branch, and of all branches as a prior.
  const auto chance = [&](double weight, double in_branch, const EnvelopeEntry::Successor& successor) {
    const double share = static_cast<double>(successor.weight) / all;
    return std::log2(std::max(kUnseenShare, (weight + kBranchPrior * share) / (in_branch + kBranchPrior)));
  };
  for (const auto& successor : successors) {
    const uint32_t step = EnvelopeChoiceStep(script->positions[from], script->positions[successor.entry]);
    script->choices.push_back({successor.entry, step, chance(0, 0, successor)});
  }
  for (uint32_t i = 0; i < fork.branches; ++i) {
    const uint32_t branch = script->branches[fork.first_branch + i];
    double in_branch = 0;
    for (const auto& successor : successors) in_branch += WeightIn(successor, branch);
    for (const auto& successor : successors) {
      script->chances.push_back(chance(WeightIn(successor, branch), in_branch, successor));
    }
  }
  script->forks.push_back(fork);
}

bool IsPast(const EnvelopeScript& script, uint32_t entry, uint32_t own) {
  return script.positions[entry] < script.positions[own] && !script.entries[own].outlasts &&
         !script.entries[own].OnOtherStream(script.entries[entry]);
}

void AddPast(EnvelopeScript* script) {
  static_assert(EnvelopePlaces::kSupports <= 8, "a bit each");
  const std::vector<EnvelopeSupport>& supports = script->places->supports;
  script->past.assign(2 * script->entries.size(), 0);
  for (uint32_t index = 0; index < supports.size(); ++index) {
    const std::vector<EnvelopeSupport::Place>& places = supports[index].places;
    for (size_t i = 0; i < places.size(); ++i) {
      if (IsPast(*script, places[i].place / 2, index / 2)) script->past[index] |= static_cast<uint8_t>(1u << i);
    }
  }
}

}  // namespace

void EnvelopePlaces::FindSupports(const std::vector<uint32_t>& index, const ConflictRows& apart) {
  supports.assign(2 * by_entry.size(), {});
  std::vector<uint32_t> place_of;  // by block
  for (const uint32_t entry : index) {
    const bool second = !place_of.empty() && place_of.back() == PlaceIndex(entry, 0);
    place_of.push_back(PlaceIndex(entry, second ? 1 : 0));
  }
  const auto begin_of = [&](uint32_t place) { return by_entry[place / 2].offsets[place % 2]; };
  std::vector<EnvelopeSupport::Place> below;
  for (size_t i = 0; i < index.size(); ++i) {
    const uint32_t begin = begin_of(place_of[i]);
    EnvelopeSupport& support = supports[place_of[i]];
    support.floor = FloorOf(begin);
    below.clear();
    for (size_t j = 0; j < index.size(); ++j) {
      const uint32_t top = begin_of(place_of[j]) + by_entry[index[j]].room;
      if (j != i && top <= begin && top > support.floor && apart.At(i, j)) below.push_back({place_of[j], top});
    }
    std::sort(below.begin(), below.end(), [](const auto& a, const auto& b) { return a.top > b.top; });
    if (below.size() > kSupports) {
      support.floor = below[kSupports].top;
      below.resize(kSupports);
    }
    support.places = below;
  }
}

uint32_t EnvelopePlaces::FloorOf(uint32_t offset) const {
  if (offset >= zone_offset) return zone_offset;
  const auto after = std::upper_bound(fragments.begin(), fragments.end(), offset,
                                      [](uint32_t at, const Fragment& fragment) { return at < fragment.offset; });
  return std::prev(after)->offset;
}

uint64_t EnvelopePlaces::AddressOf(uint32_t offset, uint64_t zone) const {
  if (offset >= zone_offset) return zone + uint64_t{offset - zone_offset} * kBlockUnit;
  const auto after = std::upper_bound(fragments.begin(), fragments.end(), offset,
                                      [](uint32_t at, const Fragment& fragment) { return at < fragment.offset; });
  return std::prev(after)->address + uint64_t{offset - std::prev(after)->offset} * kBlockUnit;
}

void EnvelopeIndex::Finish() {
  std::reverse(pairs_.begin(), pairs_.end());
  std::stable_sort(pairs_.begin(), pairs_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, entry] : pairs_) {
    if (keys_.empty() || keys_.back() != key) {
      keys_.push_back(key);
      begins_.push_back(static_cast<uint32_t>(entries_.size()));
    }
    entries_.push_back(entry);
  }
  begins_.push_back(static_cast<uint32_t>(entries_.size()));
  pairs_ = {};
}

std::span<const uint32_t> EnvelopeIndex::Find(uint64_t key) const {
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), key);
  if (found == keys_.end() || *found != key) return {};
  const auto at = static_cast<size_t>(found - keys_.begin());
  return std::span(entries_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

uint64_t EnvelopeIndex::HostBytes() const { return BytesOf(keys_) + BytesOf(begins_) + BytesOf(entries_); }

std::shared_ptr<const EnvelopeScript> MakeEnvelopeScript(const Envelope& envelope,
                                                         std::shared_ptr<const EnvelopePlaces> places) {
  auto script = std::make_shared<EnvelopeScript>();
  script->entries = envelope.entries();
  script->order = envelope.order();
  script->positions = envelope.positions();
  script->last_entry = envelope.last_entry();
  script->branch = envelope.branch();
  script->places = std::move(places);
  for (uint32_t e = 0; e < script->entries.size(); ++e) AddStep(envelope.moments().Overlaps(e) != 0, script.get());
  for (uint32_t e = 0; e < script->entries.size(); ++e) AddFork(script.get());
  for (const uint32_t e : script->order) {
    for (const uint64_t context : script->entries[e].contexts) script->by_context.Add(context, e);
    for (const uint32_t units : script->entries[e].sizes) script->by_units.Add(units, e);
  }
  script->by_context.Finish();
  script->by_units.Finish();
  if (script->places != nullptr) AddPast(script.get());
  script->host_bytes = ScriptBytes(*script) + envelope.HostBytes();
  return script;
}

}  // namespace hotpack
