#include "runtime/engine/envelope_server.h"

#include <algorithm>
#include <utility>

namespace hotpack {
namespace {

constexpr uint64_t kFirstMarks = 3;  // of the run: a job may change meanwhile, for its own reasons
constexpr double kPoor = 0.95;       // of an iteration's requests: a script that serves less is of little use
constexpr int kPoorMarks = 2;        // more than better ones
constexpr uint64_t kJudged = 12;     // iterations whose requests are judged together
constexpr double kWell = 0.995;      // an iteration served as well as that has nothing to teach
constexpr double kHopeless = 0.5;
constexpr int kHopelessMarks = 16;                 // in a row
constexpr int kRefusedZones = 4;                   // each has cost a placement
constexpr size_t kIterationsKept = 8;              // that wait for the planner
constexpr size_t kMostMet = 1 << 16;               // pairs of entries between two looks of the planner
constexpr uint64_t kMostTaken = 1 << 20;           // requests whose entries are remembered for the planner
constexpr uint64_t kMerges = 24, kMergesPart = 8;  // so many, and one more for so many iterations

}  // namespace

// --- what to learn from ----------------------------------------------------------------------------------------------

bool EnvelopeServer::NoteMark(uint64_t count, bool planning) {
  const uint64_t requests = stats_->planned() + stats_->dynamic();
  const uint64_t asked = requests - requests_at_mark_, planned = stats_->planned() - planned_at_mark_;
  requests_at_mark_ = requests;
  planned_at_mark_ = stats_->planned();
  const bool had_script = std::exchange(plans_at_mark_, stats_->plans()) > 0;
  if (asked == 0) return false;
  last_share_ = static_cast<double>(planned) / static_cast<double>(asked);
  if (!enabled_) return false;
  marks_.push_back(count);
  if (marks_.size() > kIterationsKept + 1) marks_.erase(marks_.begin());
  if (!active()) {
    // While a script is planned, it may be the one that serves well.
    const bool may_judge = stats_->marks() >= kFirstMarks && had_script && !planning;
    learning_ = learning_ || (may_judge && JudgeScripts(asked, planned));
    return learning_;
  }
  hopeless_marks_ = last_share_ < kHopeless ? hopeless_marks_ + 1 : 0;
  if (hopeless_marks_ >= kHopelessMarks) {
    GiveUp();
    return false;
  }
  if (last_share_ < kWell && merges_ <= kMerges + stats_->marks() / kMergesPart) return true;
  if (marks_.size() == 2) {  // nothing waits: this iteration is not learnt from
    marks_.erase(marks_.begin());
    taken_.clear();
  }
  return false;
}

// Returns whether scripts serve too little of the job: of most iterations, or of the few that have many requests. The
// first of those that are judged together is served well: by then scripts have been planned.
bool EnvelopeServer::JudgeScripts(uint64_t asked, uint64_t planned) {
  served_well_ = served_well_ || ServesWell();
  poor_marks_ = std::max(0, poor_marks_ + (ServesWell() ? -1 : 1));
  if (poor_marks_ >= kPoorMarks) return true;
  if (judged_marks_ == 0 && !ServesWell()) return false;
  judged_requests_ += asked;
  judged_planned_ += planned;
  if (++judged_marks_ < kJudged) return false;
  judged_marks_ = 0;
  const uint64_t served = std::exchange(judged_planned_, 0), requests = std::exchange(judged_requests_, 0);
  return static_cast<double>(served) < kPoor * static_cast<double>(requests);
}

bool EnvelopeServer::ServesWell() const { return last_share_ >= kPoor; }

void EnvelopeServer::TakeWork(PlanJob* job) {
  job->kind = PlanJob::Kind::kEnvelope;
  job->marks = std::move(marks_);
  marks_ = {job->marks.back()};
  merges_ += job->marks.size() - 1;
  job->taken = std::move(taken_);
  job->taken_first = taken_first_;
  taken_.clear();
  job->met = std::move(met_);
  met_.clear();
}

// --- following -------------------------------------------------------------------------------------------------------

void EnvelopeServer::Change() {
  if (!active() || leaving_) stats_->EndSteady();
  if (leaving_) return Leave();
  std::shared_ptr<const EnvelopeScript> script = std::exchange(pending_, nullptr);
  const uint64_t bytes = script->places->zone_units * kBlockUnit;
  const bool same_fragments = active() && follower_.script()->places->fragments == script->places->fragments;
  if (!same_fragments || !pages_->FitsEnvelopeZone(bytes)) {
    Leave();
    if (!pages_->TakeEnvelopeZone(bytes, script->places->fragments)) {
      if (++refused_zones_ >= kRefusedZones) GiveUp();
      return;
    }
  }
  std::vector<uint32_t> live;
  blocks_at_.assign(2 * script->entries.size(), {});
  blocks_->ForEach([&](DeviceAddress address, const DynamicBlock& block) {
    if (block.envelope_entry == kNone) return;
    live.push_back(block.envelope_entry);
    NoteBlock(block.envelope_entry, 0, address, block.bytes);
  });
  follower_.Continue(std::move(script), live);
}

// Live blocks become ordinary ones.
void EnvelopeServer::Leave() {
  leaving_ = false;
  pages_->RetireEnvelopeZone();
  blocks_->ForgetEnvelopeEntries();
  follower_.Stop();
  blocks_at_.clear();
  context_.Clear();
}

void EnvelopeServer::Pause() {
  pending_.reset();
  leaving_ = active();
}

void EnvelopeServer::GiveUp() {
  enabled_ = learning_ = false;
  leaving_ = active();
  pending_.reset();
  taken_ = {};
  marks_ = {};
}

EnvelopeServer::Placing EnvelopeServer::TryEntry(EngineLock& lock, uint32_t entry, const EngineRequest& request,
                                                 bool only_within, const GrowthPolicy& policy, DeviceAddress* address) {
  const EnvelopePlace* place = follower_.script()->places->Find(entry);
  if (place == nullptr || (only_within && place->room < request.units)) return Placing::kInUse;
  const uint64_t bytes = request.units * kBlockUnit;
  for (uint32_t which = 0; which < 2; ++which) {
    const uint32_t offset = place->offsets[which];
    if (offset == kNone) continue;
    const DeviceAddress planned = follower_.script()->places->AddressOf(offset, pages_->zone().begin);
    const DeviceAddress lowest = Lowest(EnvelopePlaces::PlaceIndex(entry, which), offset, planned);
    *address = pages_->LowestInEnvelope(lowest, planned, bytes);
    const PageManager::PlaceStatus status = pages_->PlaceInEnvelope(lock, *address, bytes, policy);
    if (status == PageManager::PlaceStatus::kNoPages) return Placing::kNoPages;
    if (status != PageManager::PlaceStatus::kPlaced) continue;
    NoteBlock(entry, which, *address, bytes);
    return Placing::kPlaced;
  }
  return Placing::kInUse;
}

// Returns whether `entry` comes before the entry of a place in every iteration, and will not come again while a block
// there lives. A loop may go back: what was in the way once stays up. Of another stream nothing is past: the block
// would wait for its work.
bool EnvelopeServer::IsPast(uint32_t entry, uint32_t place) const {
  const EnvelopeScript& script = *follower_.script();
  const uint32_t own = place / 2;
  return script.positions[entry] < script.positions[own] && !script.entries[own].outlasts &&
         !script.entries[own].OnOtherStream(script.entries[entry]) && (own >= stays_up_.size() || !stays_up_[own]);
}

// Returns the lowest address at which the block of a place may lie without lying where another entry, live at the same
// time, has a place: blocks below may be smaller than their places, or released. Otherwise the pages between small
// blocks would be used in part.
DeviceAddress EnvelopeServer::Lowest(uint32_t place, uint32_t offset, DeviceAddress planned) const {
  const std::vector<EnvelopeSupport>& supports = follower_.script()->places->supports;
  if (place >= supports.size()) return planned;
  const auto address_of = [&](uint32_t lower) { return planned - uint64_t{offset - lower} * kBlockUnit; };
  DeviceAddress lowest = address_of(supports[place].floor);
  for (const EnvelopeSupport::Place& below : supports[place].places) {
    const DeviceAddress top = address_of(below.top);
    if (top <= lowest) break;
    const AddressRange& block = blocks_at_[below.place];
    if (block.bytes == 0 && IsPast(below.place / 2, place)) continue;
    const DeviceAddress end = block.begin + block.bytes;
    lowest = std::max(lowest, block.bytes > 0 && end < top ? end : top);
  }
  return lowest;
}

void EnvelopeServer::NoteBlock(uint32_t entry, uint32_t which, DeviceAddress address, uint64_t bytes) {
  const uint32_t place = EnvelopePlaces::PlaceIndex(entry, which);
  if (place + 1 >= blocks_at_.size()) return;
  blocks_at_[blocks_at_[place].bytes == 0 ? place : place ^ 1] = {address, bytes};
}

void EnvelopeServer::ForgetBlock(uint32_t entry, DeviceAddress address) {
  for (const uint32_t which : {0u, 1u}) {
    const uint32_t place = EnvelopePlaces::PlaceIndex(entry, which);
    if (place < blocks_at_.size() && blocks_at_[place].begin == address) blocks_at_[place] = {};
  }
}

uint32_t EnvelopeServer::Serve(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy,
                               DeviceAddress* address) {
  const RequestSign sign = context_.Sign(request.units);
  context_.Clear();
  uint32_t entry = follower_.Next(sign);
  // A larger block may use what is free above its place.
  Placing placing = TryEntry(lock, entry, request, /*only_within=*/false, policy, address);
  if (placing == Placing::kInUse) {
    NoteMet(entry, request);
    for (const uint32_t other : follower_.Alternatives()) {
      placing = TryEntry(lock, other, request, /*only_within=*/true, policy, address);
      entry = other;
      if (placing != Placing::kInUse) break;
    }
  }
  if (placing != Placing::kPlaced) return kNone;
  follower_.Placed(entry);
  NoteTaken(request.ordinal, entry);
  return entry;
}

// The place of the entry is in use: notes by whom, so that the next placement keeps the two apart. If they are apart, a
// block was lowered too far.
void EnvelopeServer::NoteMet(uint32_t entry, const EngineRequest& request) {
  const EnvelopePlaces& places = *follower_.script()->places;
  const EnvelopePlace* place = places.Find(entry);
  if (place == nullptr || place->room < request.units || met_.size() >= kMostMet) return;
  const DeviceAddress begin = places.AddressOf(place->offsets[0], pages_->zone().begin);
  blocks_->ForEachIn(begin, begin + request.units * kBlockUnit, [&](DeviceAddress, const DynamicBlock& block) {
    const uint32_t other = block.envelope_entry;
    if (other == kNone || other == entry) return;
    met_.emplace_back(entry, other);
    const EnvelopePlace* own = places.Find(other);
    const uint32_t offset = place->offsets[0];
    const bool apart = own == nullptr || std::none_of(own->offsets, own->offsets + 2, [&](uint32_t at) {
                         return at != kNone && at < offset + place->room && offset < at + own->room;
                       });
    if (!apart) return;
    stays_up_.resize(std::max<size_t>(stays_up_.size(), other + 1));
    stays_up_[other] = true;
  });
}

void EnvelopeServer::NoteTaken(uint64_t ordinal, uint32_t entry) {
  if (taken_.empty()) taken_first_ = ordinal;
  if (ordinal < taken_first_ || ordinal - taken_first_ >= kMostTaken) return;
  taken_.resize(std::max<size_t>(taken_.size(), ordinal - taken_first_ + 1), kNone);
  taken_[ordinal - taken_first_] = entry;
}

// --- figures ---------------------------------------------------------------------------------------------------------

uint64_t EnvelopeServer::PlanBytes() const {
  if (!active()) return 0;
  const EnvelopePlaces& places = *follower_.script()->places;
  uint64_t units = places.zone_units;
  for (const Fragment& fragment : places.fragments) units += fragment.units;
  return units * kBlockUnit;
}

void EnvelopeServer::AddTo(hotpack_stats* stats) const {
  stats->envelope_jumps = follower_.figures().beam;
  if (!active()) return;
  stats->envelope_entries = follower_.script()->entries.size();
  stats->envelope_bytes = follower_.script()->host_bytes;
  stats->plan_height = PlanBytes();
  stats->plan_lower_bound = follower_.script()->places->load_units * kBlockUnit;
  stats->plan_stream_edges = follower_.script()->places->stream_edges;
  stats->plan_stream_edges_avoided = follower_.script()->places->avoided_stream_edges;
}

}  // namespace hotpack
