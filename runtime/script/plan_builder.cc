#include "runtime/script/plan_builder.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "packer/pack.h"
#include "packer/stream_edges.h"
#include "profiler/recorded_streams.h"

namespace hotpack {
namespace {

// The load may grow by a tenth so that releases may permute without displacing a block.
constexpr uint64_t kJitter = 10;

// Returns a marked iteration's period, with the length of its repetition.
Period MarkedPeriod(const HistoryTail& tail, uint64_t length) {
  uint64_t n = tail.units.size(), run = 0;
  while (run + length < n && tail.units[n - 1 - run] == tail.units[n - 1 - run - length]) ++run;
  return {length, run};
}

// Returns whether the last iteration, of the period of `known`, has the same requests as that script.
bool IsKnown(const HistoryTail& tail, const Script& known) {
  uint64_t period = known.profile.period;
  std::vector<uint32_t> twice;
  for (uint64_t i = 0; i < 2 * period; ++i) twice.push_back(known.entries[i % period].units);
  auto last = tail.units.end() - static_cast<ptrdiff_t>(period);
  return std::search(twice.begin(), twice.end(), std::boyer_moore_searcher(last, tail.units.end())) != twice.end();
}

// Returns whether `period` is a reason to leave a script that is being followed, if not always closely. Reasons: it is
// longer; it has the same length but other requests; or it has repeated for longer than the script's own iteration
// would allow.
bool IsNewPeriod(const HistoryTail& tail, const Period& period, const Script& known) {
  uint64_t length = known.profile.period;
  if (period.length > length) return true;
  if (period.length == length) return !IsKnown(tail, known);
  return period.run >= 2 * length;
}

uint64_t PlannedBlocks(const Profile& profile) {
  return static_cast<uint64_t>(std::count_if(profile.blocks.begin(), profile.blocks.end(),
                                             [](const ProfileBlock& block) { return block.planned; }));
}

}  // namespace

std::optional<Profile> FindProfile(const History& history, const PlanJob& job) {
  if (job.profile) return job.profile;
  HistoryTail tail = CopyTail(history, job.end, history.Window());
  Period period;
  bool known = false;
  if (job.period != 0) {
    if (job.period > tail.units.size()) return std::nullopt;
    period = MarkedPeriod(tail, job.period);
  } else {
    period = FindPeriod(tail);
    if (period.length == 0) return std::nullopt;
    known = job.known != nullptr && !IsNewPeriod(tail, period, *job.known);
    if (known && !job.replace) return std::nullopt;
  }
  Profile profile = BuildProfile(tail, period);
  const uint64_t planned = PlannedBlocks(profile);
  if (planned == 0) return std::nullopt;
  const bool only_more = job.only_more && job.known != nullptr && (known || job.period != 0);
  if (only_more && planned * job.known->size() <= PlannedBlocks(job.known->profile) * profile.blocks.size())
    return std::nullopt;
  return profile;
}

bool ClampToKnownLoad(Profile* learned, const Profile& known, uint64_t max_units) {
  const std::vector<ProfileBlock>& old = known.blocks;
  if (old.size() != learned->blocks.size()) return true;
  if (PeakUnits(*learned) <= std::max(PeakUnits(known), max_units)) return true;
  bool larger = false;
  for (size_t i = 0; i < old.size(); ++i) {
    const uint32_t units = learned->blocks[i].units;
    larger |= units > old[i].units;
    learned->blocks[i] = old[i];
    learned->blocks[i].units = units;
  }
  return larger;
}

namespace {

// Returns how long a solve of so many blocks may take before it is not worth the wait: small iterations are short.
int64_t Patience(size_t blocks, int64_t ns_per_block, int64_t at_least) {
  return std::max(static_cast<int64_t>(blocks) * ns_per_block, at_least);
}

// Tries to reach the bound itself for a short time. After that, any height that needs no more chunks than the bound is
// good enough.
PackResult PackForPages(const Instance& instance, uint64_t chunk_bytes, int64_t time_limit_ns, PackOptions options) {
  time_limit_ns = std::min(time_limit_ns, Patience(instance.blocks.size(), 1'000'000, 50'000'000));
  const int64_t moment = std::min<int64_t>(100'000'000, Patience(instance.blocks.size(), 100'000, 10'000'000));
  options.time_limit_ns = std::min(time_limit_ns, moment);
  PackResult first = Pack(instance, options);
  auto chunks = static_cast<Bytes>(chunk_bytes);
  Bytes enough = (first.lower_bound + chunks - 1) / chunks * chunks;
  if (first.status != PackStatus::kOk || first.placement.height <= enough) return first;
  if (std::string_view(first.algorithm) == "stacked") {  // not even the published best-fit finished
    options.algorithm = Algorithm::kBestFit;
    options.time_limit_ns = std::max(time_limit_ns, Patience(instance.blocks.size(), 20'000, 0));
    return Pack(instance, options);
  }
  if (time_limit_ns <= moment) return first;
  options.time_limit_ns = time_limit_ns - moment;
  options.target_height = enough;
  options.start = &first.placement;
  PackResult second = Pack(instance, options);
  return second.status == PackStatus::kOk ? second : first;
}

}  // namespace

std::vector<Fragment> LayOut(const std::vector<AddressRange>& fragments, uint64_t alignment, Clock length,
                             Instance* instance, uint32_t* zone_offset) {
  std::vector<Fragment> laid_out;
  uint32_t at = 0, wall_begin = 0;
  const auto wall_to = [&](DeviceAddress congruent, uint32_t least) {
    const auto units = static_cast<uint32_t>(alignment / kBlockUnit);
    const auto rest = static_cast<uint32_t>(congruent / kBlockUnit % units);
    at = wall_begin + least;
    at += (rest + units - at % units) % units;
    if (at == wall_begin) return;
    Block wall;
    wall.size = static_cast<Bytes>((at - wall_begin) * kBlockUnit);
    wall.pinned = static_cast<Offset>(wall_begin * kBlockUnit);
    wall.residency.push_back({0, length});
    instance->blocks.push_back(wall);
  };
  for (const AddressRange& range : fragments) {
    auto units = static_cast<uint32_t>(range.bytes / kBlockUnit);
    if (units == 0) continue;
    wall_to(range.begin, laid_out.empty() ? 0 : 1);
    laid_out.push_back({at, units, range.begin});
    wall_begin = at + units;
  }
  wall_to(0, laid_out.empty() ? 0 : 1);
  *zone_offset = at;
  return laid_out;
}

namespace {

// Returns the zone offsets of the script for the instance's blocks, as far as it has them; other blocks go above all.
std::optional<Placement> StartFrom(const Script& old, const std::vector<ZoneRange>& reserved_ranges,
                                   const Profile& profile, const std::vector<uint32_t>& index) {
  if (old.size() != profile.blocks.size() || !old.fragments.empty()) return std::nullopt;
  Placement start;
  start.height = static_cast<Bytes>(old.height_bytes);
  for (uint32_t i : index) {
    uint32_t offset = old.entries[i].offset;
    start.offsets.push_back(offset == kNone ? start.height
                                            : static_cast<Offset>((offset - old.zone_offset) * kBlockUnit));
  }
  for (const ZoneRange& wall : reserved_ranges) start.offsets.push_back(static_cast<Offset>(wall.offset * kBlockUnit));
  return start;
}

// Pins the blocks that both scripts have live where they part, or carry over their end, to their places in `other`. The
// zone of `other` begins at `zone_offset` of the instance's space. Returns false if there are none.
bool PinCommon(const Script& other, const Profile& profile, const std::vector<uint32_t>& index, uint32_t zone_offset,
               Instance* instance) {
  const uint32_t n = static_cast<uint32_t>(profile.blocks.size()), m = other.size();
  const CommonStretch head = CommonOpening(other.profile, profile);
  const uint32_t parted = head.b + head.length, other_parted = head.a + head.length;
  const uint32_t tail = std::min({CommonTail(other.profile, profile), n - parted, m - other_parted});
  bool any = false;
  for (size_t k = 0; k < index.size(); ++k) {
    uint32_t i = index[k];
    // The request in the other script, and the point at which both blocks must still be live.
    const bool in_head = i >= head.b && i < parted;
    if (!in_head && n - i > tail) continue;
    const uint32_t j = in_head ? i + head.a - head.b : i + m - n;
    const ScriptEntry& entry = other.entries[j];
    if (entry.offset == kNone || entry.offset < other.zone_offset) continue;
    if (j + entry.age <= (in_head ? other_parted : m) || i + profile.blocks[i].age <= (in_head ? parted : n)) continue;
    instance->blocks[k].pinned = static_cast<Offset>((entry.offset - other.zone_offset + zone_offset) * kBlockUnit);
    any = true;
  }
  return any;
}

// Pins the blocks that both carry over the cycle's boundary, where the change between the two is made. Returns false if
// there are none.
bool PinCarried(const Script& old, const Profile& profile, const std::vector<uint32_t>& index, Instance* instance) {
  const uint32_t n = old.size();
  if (n != profile.blocks.size()) return false;
  bool any = false;
  for (size_t k = 0; k < index.size(); ++k) {
    const uint32_t i = index[k];
    const ScriptEntry& entry = old.entries[i];
    if (entry.offset == kNone || entry.offset < old.zone_offset || entry.units != profile.blocks[i].units) continue;
    if (i + entry.age <= n || i + profile.blocks[i].age <= n) continue;
    instance->blocks[k].pinned = static_cast<Offset>((entry.offset - old.zone_offset) * kBlockUnit);
    any = true;
  }
  return any;
}

// The plain solve. Blocks common with another script are placed as in that one, if that costs next to nothing. They are
// then pinned in *instance.
PackResult PackPlain(const Profile& profile, const std::vector<uint32_t>& index, const RelatedScripts& related,
                     uint64_t chunk_bytes, int64_t time_limit_ns, PackOptions options, Instance* instance) {
  std::optional<Placement> start;
  if (related.previous != nullptr) start = StartFrom(*related.previous, related.reserved_ranges, profile, index);
  if (start) options.start = &*start;
  Instance pinned = *instance;
  const Script* like = related.previous != nullptr ? related.previous : related.sibling;
  if (like != nullptr && (like == related.previous ? PinCarried(*like, profile, index, &pinned)
                                                   : PinCommon(*like, profile, index, 0, &pinned))) {
    PackResult result = PackForPages(pinned, chunk_bytes, time_limit_ns, options);
    auto most = std::max(static_cast<Bytes>(like->height_bytes), result.lower_bound + result.lower_bound / 128);
    if (result.status == PackStatus::kOk && result.placement.height <= most) {
      *instance = std::move(pinned);
      return result;
    }
  }
  return PackForPages(*instance, chunk_bytes, time_limit_ns, options);
}

// The solve with fragments in front. Blocks common with another script are placed as in that one, if the zone becomes
// hardly higher than that one's. They are then pinned in *instance.
PackResult PackWithFragments(const Profile& profile, const std::vector<uint32_t>& index, const RelatedScripts& related,
                             uint32_t zone_offset, const PackOptions& options, Instance* instance) {
  Instance pinned = *instance;
  if (related.sibling != nullptr && PinCommon(*related.sibling, profile, index, zone_offset, &pinned)) {
    PackResult result = Pack(pinned, options);
    auto most = static_cast<Bytes>(related.sibling->height_bytes + zone_offset * kBlockUnit);
    most = std::max(most, result.lower_bound + result.lower_bound / 128);
    if (result.status == PackStatus::kOk && result.placement.height <= most) {
      *instance = std::move(pinned);
      return result;
    }
  }
  return Pack(*instance, options);
}

// Changes a placement so that fewer blocks wait for other streams. Takes no more chunks above `zone_offset`, or at most
// the rule's slack for half of the edges. Takes no longer than two solves. `instance` has further blocks behind those
// of the profile: walls, which no stream uses.
StreamEdges AvoidWaits(const Profile& profile, const std::vector<uint32_t>& index, const Instance& instance,
                       uint32_t zone_offset, uint64_t chunk_bytes, const StreamEdgeRule& rule,
                       const PackOptions& options, Placement* placement) {
  BlockStreams streams = ToBlockStreams(profile, index);
  if (!HasSeveralStreams(streams)) return {};
  streams.resize(instance.blocks.size(), kAnyStream);
  StreamEdges edges;
  edges.before = edges.after = CountStreamEdges(instance, *placement, streams);
  if (!rule.avoid) return edges;
  const auto zone = static_cast<Bytes>(zone_offset * kBlockUnit), chunk = static_cast<Bytes>(chunk_bytes);
  const Bytes lowest = RoundUp(std::max<Bytes>(placement->height - zone, 0), chunk);
  const Bytes slack = std::max(chunk, RoundUp(lowest * rule.slack_percent / 100, chunk));
  for (const Bytes more : {Bytes{0}, slack}) {
    if (edges.after == 0 || (more > 0 && rule.slack_percent == 0)) break;
    Placement other = AvoidStreamEdges(instance, *placement, streams, zone + lowest + more, options.time_limit_ns,
                                       options.cancel, options.clock);
    const int64_t count = CountStreamEdges(instance, other, streams);
    if (count >= edges.after || (more > 0 && count > edges.after / 2)) continue;
    edges.after = count;
    *placement = std::move(other);
  }
  return edges;
}

void SetEdges(const StreamEdges& edges, Script* script) {
  script->stream_edges = static_cast<uint64_t>(edges.after);
  script->avoided_stream_edges = static_cast<uint64_t>(edges.before - edges.after);
}

}  // namespace

void AlignLarge(uint64_t large_alignment, Instance* instance) {
  for (Block& block : instance->blocks) {
    if (block.size >= static_cast<Bytes>(kLargeBlock)) block.alignment = static_cast<Bytes>(large_alignment);
  }
}

std::shared_ptr<const Script> MakeScript(Profile profile, uint64_t max_units,
                                         const std::vector<AddressRange>& fragments, uint64_t chunk_bytes,
                                         int64_t time_limit_ns, const std::atomic<bool>* cancel,
                                         const RelatedScripts& related, WorkClock* clock, uint64_t large_alignment,
                                         const StreamEdgeRule& stream_edges) {
  uint64_t peak = PeakUnits(profile);
  WidenForJitter(&profile,
                 std::max(peak + peak / 50, std::min(peak + peak / kJitter, LoadLimit(max_units, chunk_bytes))));
  std::vector<uint32_t> index;
  Instance instance = ToInstance(profile, &index);
  AlignLarge(large_alignment, &instance);
  for (const ZoneRange& place : related.reserved_ranges) {
    Block wall;
    wall.size = static_cast<Bytes>(place.units * kBlockUnit);
    wall.pinned = static_cast<Offset>(place.offset * kBlockUnit);
    wall.residency.push_back({0, static_cast<Clock>(profile.blocks.size())});
    instance.blocks.push_back(wall);
  }
  PackOptions options;
  options.cancel = cancel;
  options.clock = clock;
  Instance packed = instance;
  PackResult plain = PackPlain(profile, index, related, chunk_bytes, time_limit_ns, options, &packed);
  if (plain.status != PackStatus::kOk) return nullptr;
  // For so large a job, a placement so far from the bound is no better than best fit.
  if (related.reserved_ranges.empty() &&
      plain.placement.height > plain.lower_bound + plain.lower_bound / 4 + static_cast<Bytes>(chunk_bytes))
    return nullptr;
  if (static_cast<uint64_t>(plain.placement.height) >= kMaxArenaBytes) return nullptr;
  if (!fragments.empty() && related.reserved_ranges.empty()) {
    uint32_t zone_offset = 0;
    std::vector<Fragment> laid_out =
        LayOut(fragments, large_alignment, static_cast<Clock>(profile.blocks.size()), &instance, &zone_offset);
    // The load is not a reachable bound here: a few times the plain solve's time is enough.
    const int64_t patience = std::min<int64_t>(100'000'000, Patience(instance.blocks.size(), 100'000, 10'000'000));
    options.time_limit_ns = std::min(time_limit_ns, std::max(patience, 4 * plain.nanoseconds));
    PackResult filled = PackWithFragments(profile, index, related, zone_offset, options, &instance);
    Bytes zone_bytes = filled.placement.height - static_cast<Bytes>(zone_offset * kBlockUnit);
    if (filled.status == PackStatus::kOk && zone_bytes + static_cast<Bytes>(chunk_bytes) <= plain.placement.height) {
      const StreamEdges edges =
          AvoidWaits(profile, index, instance, zone_offset, chunk_bytes, stream_edges, options, &filled.placement);
      Script script = CompileScript(profile, index, filled.placement.offsets, laid_out, zone_offset, plain.lower_bound);
      SetEdges(edges, &script);
      return std::make_shared<const Script>(std::move(script));
    }
  }
  options.time_limit_ns = std::min(time_limit_ns, Patience(packed.blocks.size(), 300'000, 30'000'000));
  const StreamEdges edges = AvoidWaits(profile, index, packed, 0, chunk_bytes, stream_edges, options, &plain.placement);
  Script script = CompileScript(profile, index, plain.placement.offsets, {}, 0, plain.lower_bound);
  SetEdges(edges, &script);
  script.reserved_ranges = related.reserved_ranges;
  return std::make_shared<const Script>(std::move(script));
}

namespace {

// Returns the script that has most in common with the profile; null if none has anything in common.
const Script* MostAlike(const std::vector<std::shared_ptr<const Script>>& scripts, const Profile& profile) {
  const Script* alike = nullptr;
  uint32_t most = 0;
  for (const auto& script : scripts) {
    const uint32_t common = CommonOpening(script->profile, profile).length + CommonTail(script->profile, profile);
    if (common <= most) continue;
    most = common;
    alike = script.get();
  }
  return alike;
}

std::shared_ptr<const Script> Make(Profile profile, const PlanSnapshot& snapshot,
                                   const std::vector<AddressRange>& fragments, const PlanSettings& settings,
                                   const RelatedScripts& related, const std::atomic<bool>* cancel) {
  WorkClock clock;
  return MakeScript(std::move(profile), snapshot.max_units, fragments, settings.chunk_bytes, settings.time_limit_ns,
                    cancel, related, settings.logical_time ? &clock : nullptr, settings.large_alignment,
                    settings.stream_edges);
}

}  // namespace

std::shared_ptr<const Script> BuildScript(Profile profile, const PlanJob& job, const PlanSnapshot& snapshot,
                                          const PlanSettings& settings, const std::atomic<bool>* cancel) {
  const uint64_t most = snapshot.max_units;
  // Lives repeat only after more periods than have been seen: the longest lives of all blocks together are too much.
  if (!job.profile && profile.unroll > 1 && PeakUnits(profile) > most + most / 2) return nullptr;
  if (job.profile && job.known &&
      !ClampToKnownLoad(&profile, job.known->profile, LoadLimit(most, settings.chunk_bytes)) && !job.replace) {
    return nullptr;
  }
  RelatedScripts related;
  if (job.profile && snapshot.fragments.empty()) related.previous = job.known.get();
  related.reserved_ranges = job.reserved_ranges;
  related.sibling = MostAlike(snapshot.scripts, profile);
  return Make(std::move(profile), snapshot, snapshot.fragments, settings, related, cancel);
}

std::shared_ptr<const Script> BuildShapeScript(Profile profile, const PlanSnapshot& snapshot,
                                               const PlanSettings& settings, const std::atomic<bool>* cancel) {
  RelatedScripts related;
  related.sibling = MostAlike(snapshot.scripts, profile);
  return Make(std::move(profile), snapshot, snapshot.fragments, settings, related, cancel);
}

}  // namespace hotpack
