#include "runtime/engine/envelope_server.h"

#include <algorithm>
#include <utility>

namespace hotpack {
namespace {

constexpr uint64_t kFirstMarks = 3;  // of the run: a job may change meanwhile, for its own reasons
constexpr double kPoor = 0.95;       // of an iteration's requests: a script that serves less is of little use
constexpr int kPoorMarks = 2;        // more than better ones
constexpr uint64_t kJudged = 12;     // iterations whose requests are judged together, at most
constexpr double kWell = 0.995;      // an iteration served as well as that has nothing to teach
constexpr double kHopeless = 0.5;
constexpr int kHopelessMarks = 16;                 // in a row
constexpr int kRefusedZones = 4;                   // each has cost a placement
constexpr size_t kIterationsKept = 8;              // that wait for the planner
constexpr size_t kMostMet = 1 << 16;               // pairs of entries between two looks of the planner
constexpr uint64_t kMostTaken = 1 << 20;           // requests whose entries are remembered for the planner
constexpr uint64_t kTakenAhead = 1 << 10;          // ... and have their memory before they come
constexpr uint64_t kMerges = 24, kMergesPart = 8;  // so many, and one more for so many iterations

}  // namespace

// --- what to learn from ----------------------------------------------------------------------------------------------

bool EnvelopeServer::NoteMark(uint64_t count, bool planning) {
  // Requests of an interruption are not in the history: no plan could serve them.
  const uint64_t asked = count - requests_at_mark_, planned = stats_->planned() - planned_at_mark_;
  requests_at_mark_ = count;
  planned_at_mark_ = stats_->planned();
  const bool had_script = std::exchange(plans_at_mark_, stats_->plans()) > 0;
  if (asked == 0) return false;
  last_share_ = static_cast<double>(planned) / static_cast<double>(asked);
  if (!enabled_) return false;
  marks_.push_back(count);
  if (marks_.size() > kIterationsKept + 1) marks_.erase(marks_.begin());
  if (!active()) {
    if (std::exchange(resting_, false)) return false;
    // While a script is planned, it may be the one that serves well.
    const bool may_judge = stats_->marks() >= kFirstMarks && had_script && !planning;
    learning_ = learning_ || (may_judge && JudgeScripts(asked, planned));
    // An envelope that is ready waits until the job leaves the script.
    return learning_ && (pending_ == nullptr || last_share_ < kWell);
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
    SetShortUntil();
  }
  return false;
}

// Returns whether scripts serve too little of the job: of most iterations, or of one that has many requests. The
// first of those that are judged together is served well: by then scripts have been planned.
bool EnvelopeServer::JudgeScripts(uint64_t asked, uint64_t planned) {
  served_well_ = served_well_ || ServesWell();
  poor_marks_ = std::max(0, poor_marks_ + (ServesWell() ? -1 : 1));
  if (poor_marks_ >= kPoorMarks) return true;
  if (judged_marks_ == 0 && !ServesWell()) return false;
  judged_requests_ += asked;
  judged_planned_ += planned;
  if (++judged_marks_ < kJudged && ServesWell()) return false;
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
  SetShortUntil();
  job->met = std::move(met_);
  met_.clear();
}

// --- following -------------------------------------------------------------------------------------------------------

void EnvelopeServer::Change() {
  if (!active() || leaving_) stats_->EndSteady();
  if (leaving_) return Leave();
  std::shared_ptr<const EnvelopeScript> script = std::exchange(pending_, nullptr);
  SetShortUntil();
  const uint64_t bytes = script->places->zone_units * kBlockUnit;
  const bool same_fragments = active() && follower_.script()->places->fragments == script->places->fragments;
  if (!same_fragments || !pages_->FitsEnvelopeZone(bytes)) {
    Leave();
    if (!pages_->TakeEnvelopeZone(bytes, script->places->fragments)) {
      if (++refused_zones_ >= kRefusedZones) GiveUp();
      return;
    }
  }
  // Mostly the script is a later one with the same placement, in the same zone.
  const bool same_places = !places_.empty() && follower_.script()->places == script->places;
  if (!same_places) MakePlaces(*script);
  places_.resize(2 * script->entries.size());
  past_ = script->past.data();
  std::vector<uint32_t> live;
  blocks_->ForEach([&](DeviceAddress address, const DynamicBlock& block) {
    if (block.envelope_entry == kNone) return;
    live.push_back(block.envelope_entry);
    if (same_places) return;
    ZoneBlock* const found = blocks_->zone().Find(address);
    const uint32_t index = EnvelopePlaces::PlaceIndex(block.envelope_entry, 0);
    if (found != nullptr && index < places_.size()) NoteBlock(places_.data(), index, found);
  });
  follower_.Continue(std::move(script), live);
}

// In addresses, with what does not change while the script is followed.
void EnvelopeServer::MakePlaces(const EnvelopeScript& script) {
  const EnvelopePlaces& places = *script.places;
  const DeviceAddress zone = pages_->zone().begin;
  places_.assign(2 * script.entries.size(), {});
  supports_.clear();
  for (uint32_t index = 0; index < places_.size(); ++index) {
    const uint32_t entry = index / 2;
    const EnvelopePlace* const found = places.Find(entry);
    if (found == nullptr || found->offsets[index % 2] == kNone) continue;
    const uint32_t offset = found->offsets[index % 2];
    Place& place = places_[index];
    place.planned = place.floor = places.AddressOf(offset, zone);
    const PageManager::PlaceArea area = pages_->AreaOf(place.planned);
    place.area_end = area.end;
    place.in_zone = area.in_zone;
    if (index >= places.supports.size()) continue;
    const auto address_of = [&](uint32_t lower) { return place.planned - uint64_t{offset - lower} * kBlockUnit; };
    const EnvelopeSupport& support = places.supports[index];
    place.floor = address_of(support.floor);
    place.supports_begin = static_cast<uint32_t>(supports_.size());
    place.supports = static_cast<uint8_t>(support.places.size());
    for (const EnvelopeSupport::Place& below : support.places) {
      supports_.push_back({address_of(below.top), below.place});
    }
  }
}

// Live blocks become ordinary ones.
void EnvelopeServer::Leave() {
  leaving_ = false;
  SetShortUntil();
  pages_->RetireEnvelopeZone();
  follower_.Stop();
  places_.clear();
  context_.Clear();
}

void EnvelopeServer::Pause() {
  pending_.reset();
  leaving_ = active();
  SetShortUntil();
}

void EnvelopeServer::Rest() {
  Pause();
  learning_ = false;
  resting_ = served_well_ = true;
  poor_marks_ = 0;
  judged_marks_ = judged_requests_ = judged_planned_ = 0;
}

void EnvelopeServer::GiveUp() {
  enabled_ = learning_ = false;
  leaving_ = active();
  pending_.reset();
  taken_ = {};
  marks_ = {};
  SetShortUntil();
}

EnvelopeServer::Placing EnvelopeServer::TryEntry(EngineLock& lock, uint32_t entry, const EngineRequest& request,
                                                 PagesWanted wanted, const GrowthPolicy& policy,
                                                 DeviceAddress* address) {
  if (follower_.script()->places->Find(entry) == nullptr) return Placing::kInUse;
  const uint64_t bytes = request.units * kBlockUnit;
  Placing placing = Placing::kInUse;
  for (uint32_t which = 0; which < 2; ++which) {
    const uint32_t index = EnvelopePlaces::PlaceIndex(entry, which);
    Place& own = places_[index];
    if (own.planned == 0) continue;
    ZoneBlock* const below = Below(places_.data(), own);
    own.below = below->place;
    *address = pages_->LowestAbove(below->end, Lowest(places_.data(), index, below->end), own.planned, bytes);
    if (below->end > *address || below->above->begin < *address + bytes) continue;  // in use
    if (wanted == PagesWanted::kReady && own.in_zone && !IsReady({*address, bytes}, own.area_end)) {
      placing = Placing::kNoPages;
      continue;
    }
    const PageManager::PlaceStatus status = pages_->PlaceInEnvelope(lock, *address, bytes, policy, below);
    if (status == PageManager::PlaceStatus::kNoPages) return Placing::kNoPages;
    if (status != PageManager::PlaceStatus::kPlaced) continue;
    if (ZoneBlock* const claimed = blocks_->zone().Find(*address)) {
      own.below = claimed->below->place;
      NoteBlock(places_.data(), index, claimed);
    }
    return Placing::kPlaced;
  }
  return placing;
}

// The request's place is in use: looks for one of another entry, at first for one that has its pages.
EnvelopeServer::Placing EnvelopeServer::TryAlternatives(EngineLock& lock, const EngineRequest& request,
                                                        const GrowthPolicy& policy, uint32_t* entry,
                                                        DeviceAddress* address) {
  const EnvelopePlaces& places = *follower_.script()->places;
  uint32_t without_pages = kNone;
  Placing placing = Placing::kInUse;
  follower_.ForEachAlternative([&](uint32_t other) {
    const EnvelopePlace* place = places.Find(other);
    if (place == nullptr || place->room < request.units) return false;
    placing = TryEntry(lock, other, request, PagesWanted::kReady, policy, address);
    if (placing == Placing::kNoPages && without_pages == kNone) without_pages = other;
    *entry = other;
    return placing == Placing::kPlaced;
  });
  if (placing == Placing::kPlaced || without_pages == kNone) return placing;
  *entry = without_pages;
  return TryEntry(lock, without_pages, request, PagesWanted::kAny, policy, address);
}

bool EnvelopeServer::IsReady(const AddressRange& range, DeviceAddress area_end) const {
  const DeviceAddress end = range.begin + range.bytes;
  return end <= area_end && !pages_->changing_pages() && pages_->ZoneReady(range.begin, end);
}

void EnvelopeServer::ForgetBlock(uint32_t entry, DeviceAddress address) {
  for (const uint32_t which : {0u, 1u}) {
    const uint32_t index = EnvelopePlaces::PlaceIndex(entry, which);
    if (index >= places_.size() || places_[index].live == nullptr) continue;
    const ZoneBlock& block = *places_[index].live;
    if (block.begin != address && !block.erased()) continue;
    places_[index].end = 0;
    places_[index].live = nullptr;
  }
}

// Near the block of the place `guess`, if it has one, or of the place below that, and so on: a few blocks up or down.
ZoneBlock* EnvelopeServer::FindBelow(uint32_t guess, DeviceAddress planned) const {
  constexpr int kSteps = 6;
  for (int step = 0; step < kSteps && guess != kNone; ++step) {
    ZoneBlock* block = places_[guess].live;
    if (block == nullptr) {
      guess = places_[guess].below;
      continue;
    }
    for (; step < kSteps && !blocks_->zone().IsEnd(block); ++step) {
      if (ZoneBlocks::IsBelow(block, planned)) return block;
      block = block->begin < planned ? block->above : block->below;
    }
    break;
  }
  return blocks_->zone().Below(planned);
}

// The short way where the request has to be compared with several entries.
bool EnvelopeServer::TryServeChoice(uint32_t units, uint64_t ordinal, DeviceAddress* address) noexcept {
  const RequestSign sign = context_.Sign(units);
  EnvelopeFollower::Hypothesis next;
  const bool expected = follower_.Expects(sign, &next);
  const uint32_t entry = expected ? next.entry : follower_.Look(sign);
  if (entry == kNone) return false;
  const ZoneBlock* const claimed = ClaimPlace(entry, sign.units, ordinal);
  if (claimed == nullptr) return false;
  *address = claimed->begin;
  if (expected) {
    follower_.Follow(next, sign);
  } else {
    follower_.Go(sign);
  }
  NoteShort(ordinal, entry);
  return true;
}

uint32_t EnvelopeServer::Serve(EngineLock& lock, const EngineRequest& request, const GrowthPolicy& policy,
                               DeviceAddress* address) {
  const RequestSign sign = context_.Sign(request.units);
  context_.Clear();
  uint32_t entry = follower_.Next(sign);
  // A larger block may use what is free above its place.
  Placing placing = TryEntry(lock, entry, request, PagesWanted::kAny, policy, address);
  if (placing == Placing::kInUse) {
    NoteMet(entry, request);
    placing = TryAlternatives(lock, request, policy, &entry, address);
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
    for (const uint32_t which : {0u, 1u}) places_[EnvelopePlaces::PlaceIndex(other, which)].stays_up = true;
  });
}

void EnvelopeServer::NoteTaken(uint64_t ordinal, uint32_t entry) {
  if (taken_.empty()) taken_first_ = ordinal;
  if (ordinal < taken_first_ || ordinal - taken_first_ >= kMostTaken) return;
  if (ordinal - taken_first_ >= taken_.size()) taken_.resize(ordinal - taken_first_ + kTakenAhead, kNone);
  SetShortUntil();
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
