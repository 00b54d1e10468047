#include "runtime/script/envelope_learner.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "runtime/script/plan_builder.h"

namespace hotpack {

bool WithinPlanCredit(uint64_t plans, uint64_t iterations) {
  return plans < 1 || plans <= static_cast<uint64_t>(std::bit_width(iterations + 1) - 1);
}

bool MayPlaceAgain(uint64_t placements, uint64_t scripts, uint64_t iterations) {
  constexpr uint64_t kMostCounted = 4;
  return WithinPlanCredit(placements + std::min(scripts, kMostCounted), iterations);
}

std::vector<EnvelopeRequest> EnvelopeIteration(const HistoryTail& tail, uint64_t begin, uint64_t end) {
  std::vector<ReleaseContext> before(end - begin);
  for (uint64_t i = 0; i < tail.units.size() && tail.first + i < end; ++i) {
    if (tail.ages[i] == kStillLive) continue;
    const uint64_t released = tail.first + i + tail.ages[i];
    if (released >= begin && released < end) before[released - begin].Add(tail.ages[i]);
  }
  std::vector<EnvelopeRequest> iteration;
  iteration.reserve(before.size());
  for (uint64_t ordinal = begin; ordinal < end; ++ordinal) {
    const uint64_t i = ordinal - tail.first;
    EnvelopeRequest request;
    request.sign = before[ordinal - begin].Sign(tail.units[i]);
    if (tail.ages[i] != kStillLive) request.released = ordinal + tail.ages[i];
    request.stream = tail.StreamOf(i);
    iteration.push_back(request);
  }
  return iteration;
}

bool EnvelopeLearner::Full() const {
  if (envelope_.full()) return true;
  uint64_t members = 0;
  for (const auto& moment : envelope_.moments().moments()) members += moment.size();
  return members > settings_.most_moment_entries;
}

EnvelopeLearner::Packed EnvelopeLearner::PackEntries(const std::vector<AddressRange>& fragments,
                                                     const std::atomic<bool>* cancel) const {
  Packed packed;
  packed.instance = envelope_.ToInstance(&packed.index);
  AlignLarge(settings_.large_alignment, &packed.instance);
  if (!fragments.empty()) {
    Clock length = 0;
    for (const Block& block : packed.instance.blocks) length = std::max(length, block.residency.back().end);
    packed.fragments = LayOut(fragments, settings_.large_alignment, length, &packed.instance, &packed.zone_offset);
    // The zone begins at a chunk, in the space as on the device.
    const auto chunk_units = static_cast<uint32_t>(settings_.chunk_bytes / kBlockUnit);
    const uint32_t rest = packed.zone_offset % chunk_units;
    if (rest != 0) {
      Block wall;
      wall.size = Bytes{chunk_units - rest} * Bytes{kBlockUnit};
      wall.pinned = Offset{packed.zone_offset} * Offset{kBlockUnit};
      wall.residency.push_back({0, length});
      packed.instance.blocks.push_back(wall);
      packed.zone_offset += chunk_units - rest;
    }
  }
  WorkClock clock;
  PackOptions options;
  // A small envelope is near its bound at once, and its iterations are short.
  options.time_limit_ns = std::min(settings_.pack_ns, static_cast<int64_t>(packed.instance.blocks.size()) * 50'000);
  options.cancel = cancel;
  if (settings_.logical_time) options.clock = &clock;
  packed.result = Pack(packed.instance, options);
  if (packed.result.status == PackStatus::kOk) Improve(cancel, &packed);
  return packed;
}

// Returns the chunks of the zone that are in use, summed over all moments. O(members of the moments).
uint64_t EnvelopeLearner::UsedChunks(const Packed& packed, const Placement& placement) const {
  const auto chunk = static_cast<Bytes>(settings_.chunk_bytes);
  const Offset zone = Offset{packed.zone_offset} * Offset{kBlockUnit};
  std::vector<std::vector<std::pair<size_t, size_t>>> chunks_of(envelope_.entries().size());  // first, last
  for (size_t i = 0; i < packed.index.size(); ++i) {
    const Offset begin = placement.offsets[i] - zone;
    if (begin < 0) continue;  // fragments are held anyway
    chunks_of[packed.index[i]].emplace_back(begin / chunk, (begin + packed.instance.blocks[i].size - 1) / chunk);
  }
  std::vector<size_t> used_at(static_cast<size_t>(placement.height / chunk) + 1, SIZE_MAX);  // the last moment
  uint64_t used = 0;
  const auto& moments = envelope_.moments().moments();
  for (size_t t = 0; t < moments.size(); ++t) {
    for (const uint32_t entry : moments[t]) {
      for (const auto& [first, last] : chunks_of[entry]) {
        for (size_t c = first; c <= last; ++c) used += std::exchange(used_at[c], t) != t ? 1 : 0;
      }
    }
  }
  return used;
}

// Returns for each block how large the loads are at which it is live: that of the largest one, in sixteenths of the
// envelope's load; walls: 0. O(members of the moments).
std::vector<Bytes> EnvelopeLearner::LoadsMet(const Packed& packed) const {
  constexpr Bytes kParts = 16;
  std::vector<std::vector<size_t>> blocks_of(envelope_.entries().size());
  for (size_t i = 0; i < packed.index.size(); ++i) blocks_of[packed.index[i]].push_back(i);
  std::vector<Bytes> met(packed.instance.blocks.size(), 0);
  Bytes largest = 1;
  for (const auto& moment : envelope_.moments().moments()) {
    Bytes load = 0;
    for (const uint32_t entry : moment) {
      for (const size_t i : blocks_of[entry]) load += packed.instance.blocks[i].size;
    }
    largest = std::max(largest, load);
    for (const uint32_t entry : moment) {
      for (const size_t i : blocks_of[entry]) met[i] = std::max(met[i], load);
    }
  }
  for (Bytes& each : met) each = each * kParts / largest;
  return met;
}

// Returns placements with small blocks together, with large ones that begin at chunks, with both and with neither. What
// is live at the largest loads is placed first, so that no gaps lie between it then; of equal loads, what comes first
// in the sequence. So a block lies above those that are requested before it, and can lie on them where they are smaller
// than their places. With several streams, large blocks come first in further ones: more wishes can be fulfilled then.
std::vector<Placement> EnvelopeLearner::Candidates(const Packed& packed, const ConflictRows& conflicts,
                                                   const std::vector<ConflictRows>& wishes,
                                                   const std::atomic<bool>* cancel) const {
  const bool few = IsFew(packed);
  const auto chunk = static_cast<Bytes>(settings_.chunk_bytes);
  Instance aligned = packed.instance;
  for (Block& block : aligned.blocks) {
    if (block.pinned < 0 && block.size % chunk == 0) block.alignment = std::max(block.alignment, chunk);
  }
  const std::vector<Bytes> by_load = LoadsMet(packed);
  std::vector<Bytes> in_sequence;  // the blocks of the instance are
  const auto count = static_cast<Bytes>(by_load.size());
  for (const Bytes load : by_load) in_sequence.push_back((load + 1) * count - static_cast<Bytes>(in_sequence.size()));
  std::vector<const std::vector<Bytes>*> orders = {&in_sequence};
  if (few && envelope_.HasSeveralStreams()) orders.push_back(&by_load);
  ConflictPlacementOptions options;
  options.enough = packed.result.lower_bound + chunk;
  options.work = settings_.compared_pairs / 4;
  options.cancel = cancel;
  options.wishes = &wishes;
  options.wish_cost = settings_.height_cost;
  std::vector<Placement> candidates;
  for (const bool at_chunks : {false, true}) {
    for (const Bytes small : {Bytes{0}, chunk}) {
      if (!few && !(at_chunks && small == chunk)) continue;
      options.small = small;
      for (const std::vector<Bytes>* keys : orders) {
        options.keys = keys;
        std::vector<Placement> more = PlaceByConflicts(at_chunks ? aligned : packed.instance, conflicts, options);
        candidates.insert(candidates.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
      }
    }
  }
  return candidates;
}

// Replaces the packer's placement, whose blocks lie in any order, by one that is hardly higher. Such a placement must
// have few chunks in use at its moments: where neighbours are not live together, chunks are used in part. Of those, the
// one is taken that keeps apart most of different streams, of what met by mistake, or may meet. Many moments take the
// packer long. If its time was too short for any solver, its blocks are stacked, far higher.
void EnvelopeLearner::Improve(const std::atomic<bool>* cancel, Packed* packed) const {
  const ConflictRows conflicts = envelope_.Conflicts(packed->index);
  std::vector<ConflictRows> wishes;
  if (IsFew(*packed)) wishes = envelope_.Wishes(conflicts, packed->index);
  std::vector<Placement> candidates = Candidates(*packed, conflicts, wishes, cancel);
  Bytes lowest = packed->result.placement.height;
  for (const Placement& each : candidates) lowest = std::min(lowest, each.height);
  const auto highest = static_cast<Bytes>(static_cast<double>(lowest) * settings_.height_cost) +
                       static_cast<Bytes>(settings_.chunk_bytes);
  std::erase_if(candidates, [&](const Placement& each) { return each.height > highest; });
  if (candidates.empty()) candidates.push_back(packed->result.placement);
  std::vector<uint64_t> used;
  for (const Placement& each : candidates) used.push_back(UsedChunks(*packed, each));
  const auto fewest = static_cast<double>(*std::min_element(used.begin(), used.end()));
  std::vector<ConflictRows> apart;  // nothing to count with one stream
  if (envelope_.HasSeveralStreams()) apart.push_back(envelope_.WithStreamsApart(conflicts, packed->index));
  const auto edges = [&] {
    if (apart.empty()) return int64_t{0};
    return static_cast<int64_t>(CountViolations(packed->instance, packed->result.placement, apart));
  };
  packed->edges.before = edges();
  uint64_t least = UINT64_MAX;
  for (size_t i = candidates.size(); i-- > 0;) {  // the last ones leave the largest gaps to what has no place
    if (static_cast<double>(used[i]) > fewest * settings_.chunks_cost) continue;
    const uint64_t violations = CountViolations(packed->instance, candidates[i], wishes);
    if (violations >= least) continue;
    least = violations;
    packed->result.placement = candidates[i];
    packed->used_chunks = used[i];
  }
  packed->edges.after = edges();
}

std::shared_ptr<const EnvelopeScript> EnvelopeLearner::Script() {
  std::erase_if(made_, [](const auto& script) { return script.use_count() == 1; });
  made_.push_back(MakeEnvelopeScript(envelope_, places_));
  return made_.back();
}

int64_t EnvelopeLearner::Place(const std::vector<AddressRange>* fragments, const std::atomic<bool>* cancel) {
  // A later placement keeps to the memory of the one before: so what lives stays in place.
  const bool keeps = fragments == nullptr && places_ != nullptr;
  if (fragments != nullptr) fragments_ = *fragments;
  if (keeps && places_->fragments.empty()) fragments_.clear();
  Packed best = PackEntries(keeps ? fragments_ : std::vector<AddressRange>(), cancel);
  int64_t spent = best.result.nanoseconds;
  if (!keeps && !fragments_.empty()) {
    Packed other = PackEntries(fragments_, cancel);
    spent += other.result.nanoseconds;
    const double used = static_cast<double>(other.used_chunks) * settings_.chunks_cost;
    if (other.result.status == PackStatus::kOk && used < static_cast<double>(best.used_chunks)) best = std::move(other);
  }
  auto places = std::make_shared<EnvelopePlaces>();
  places->by_entry.resize(envelope_.entries().size());
  for (size_t i = 0; i < best.index.size(); ++i) {
    EnvelopePlace& place = places->by_entry[best.index[i]];
    const auto offset = static_cast<uint32_t>(static_cast<uint64_t>(best.result.placement.offsets[i]) / kBlockUnit);
    place.offsets[place.room == 0 ? 0 : 1] = offset;
    place.room = envelope_.RoomUnits(best.index[i]);
  }
  places->fragments = std::move(best.fragments);
  places->zone_offset = best.zone_offset;
  places->zone_units = static_cast<uint64_t>(best.ZoneBytes()) / kBlockUnit;
  places->load_units = envelope_.RoomLoadUnits();
  places->stream_edges = static_cast<uint64_t>(best.edges.after);
  places->avoided_stream_edges = static_cast<uint64_t>(std::max<int64_t>(0, best.edges.before - best.edges.after));
  if (IsFew(best)) {
    places->FindSupports(best.index, envelope_.WithStreamsApart(envelope_.Conflicts(best.index), best.index));
  }
  places_ = std::move(places);
  envelope_.ClearChanged();
  return spent;
}

}  // namespace hotpack
