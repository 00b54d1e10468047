#include "runtime/script/envelope_learner.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/script/plan_builder.h"

namespace hotpack {

bool WithinPlanCredit(uint64_t plans, uint64_t iterations) {
  return plans < 1 || plans <= static_cast<uint64_t>(std::bit_width(iterations + 1) - 1);
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
    iteration.push_back(request);
  }
  return iteration;
}

bool EnvelopeLearner::Full() const {
  if (envelope_.entries().size() > settings_.most_entries) return true;
  uint64_t members = 0;
  for (const auto& moment : envelope_.moments().moments()) members += moment.size();
  return members > settings_.most_moment_entries;
}

EnvelopeLearner::Packed EnvelopeLearner::PackEntries(bool with_mistakes, const std::vector<AddressRange>& fragments,
                                                     const std::atomic<bool>* cancel) const {
  Packed packed;
  packed.instance = envelope_.ToInstance(with_mistakes, &packed.index);
  AlignLarge(settings_.large_alignment, &packed.instance);
  if (!fragments.empty()) {
    Clock length = 0;
    for (const Block& block : packed.instance.blocks) length = std::max(length, block.residency.back().end);
    packed.fragments = LayOut(fragments, settings_.large_alignment, length, &packed.instance, &packed.zone_offset);
  }
  WorkClock clock;
  PackOptions options;
  options.time_limit_ns = settings_.pack_ns;
  options.cancel = cancel;
  if (settings_.logical_time) options.clock = &clock;
  packed.result = Pack(packed.instance, options);
  return packed;
}

int64_t EnvelopeLearner::Place(const std::vector<AddressRange>* fragments, const std::atomic<bool>* cancel) {
  // A later placement keeps to the memory of the one before: so what lives stays in place.
  const bool keeps = fragments == nullptr && places_ != nullptr;
  if (fragments != nullptr) fragments_ = *fragments;
  if (keeps && places_->fragments.empty()) fragments_.clear();
  Packed best = PackEntries(/*with_mistakes=*/false, keeps ? fragments_ : std::vector<AddressRange>(), cancel);
  int64_t spent = best.result.nanoseconds;
  const auto try_other = [&](bool with_mistakes, bool in_fragments, Bytes most) {
    Packed other = PackEntries(with_mistakes, in_fragments ? fragments_ : std::vector<AddressRange>(), cancel);
    spent += other.result.nanoseconds;
    if (other.result.status == PackStatus::kOk && other.ZoneBytes() <= most) best = std::move(other);
  };
  if (!keeps && !fragments_.empty())
    try_other(false, true, best.ZoneBytes() - static_cast<Bytes>(settings_.chunk_bytes));
  if (envelope_.Mistaken()) {
    const auto most = static_cast<Bytes>(static_cast<double>(best.ZoneBytes()) * settings_.mistake_cost);
    try_other(true, !best.fragments.empty(), most);
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
  places_ = std::move(places);
  envelope_.ClearChanged();
  return spent;
}

}  // namespace hotpack
