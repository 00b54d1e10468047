#include "runtime/script/envelope_script.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "packer/block_unit.h"

namespace hotpack {

namespace {

uint64_t ScriptBytes(const EnvelopeScript& script) {
  constexpr uint64_t kNode = 4 * sizeof(uint64_t), kBucket = sizeof(void*);  // of a hash table
  uint64_t bytes =
      sizeof(script) + script.steps.capacity() * sizeof(EnvelopeStep) +
      (script.order.capacity() + script.positions.capacity() + script.sizes.capacity()) * sizeof(uint32_t) +
      script.contexts.capacity() * sizeof(uint64_t);
  for (const EnvelopeEntry& entry : script.entries) bytes += entry.HostBytes();
  for (const auto* table : {&script.by_context, &script.by_units})
    bytes += table->size() * kNode + table->bucket_count() * kBucket;
  if (script.places == nullptr) return bytes;
  bytes += script.places->by_entry.capacity() * sizeof(EnvelopePlace);
  for (const EnvelopeSupport& support : script.places->supports)
    bytes += sizeof(support) + support.places.capacity() * sizeof(support.places[0]);
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
  step.sizes = static_cast<uint16_t>(entry.sizes.size());
  step.contexts = static_cast<uint16_t>(entry.contexts.size());
  step.fixed = entry.requests >= kSeen && entry.changes == 0;
  step.overlaps = overlaps;
  script->sizes.insert(script->sizes.end(), entry.sizes.begin(), entry.sizes.end());
  std::sort(script->sizes.begin() + step.first_size, script->sizes.end());
  script->contexts.insert(script->contexts.end(), entry.contexts.begin(), entry.contexts.end());
  script->steps.push_back(step);
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
  for (const uint32_t e : script->order) {
    for (const uint64_t context : script->entries[e].contexts) script->by_context.emplace(context, e);
    for (const uint32_t units : script->entries[e].sizes) script->by_units.emplace(units, e);
  }
  script->host_bytes = ScriptBytes(*script) + envelope.HostBytes();
  return script;
}

}  // namespace hotpack
