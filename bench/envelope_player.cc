#include "bench/envelope_player.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <unordered_map>

#include "packer/block_unit.h"
#include "packer/pack.h"
#include "runtime/script/envelope_follower.h"

namespace hotpack {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where an entry's blocks go: in units. Two places for an entry that overlaps itself.
struct Places {
  uint64_t room = 0;  // units; 0: no place
  std::vector<uint64_t> offsets;
};

struct PlayedBlock {
  uint64_t released = UINT64_MAX;
  uint32_t units = 0, entry = kNone;
  uint64_t offset = UINT64_MAX;  // in the zone; UINT64_MAX: served elsewhere
};

class Player {
 public:
  explicit Player(const EnvelopePlayOptions& options) : options_(options), envelope_(options.limits) {}

  void Request(uint64_t id, uint64_t bytes);
  void Release(uint64_t id);
  void Mark();
  EnvelopePlay Finish() {
    play_.entries = envelope_.entries().size();
    AddFollowed();
    return std::move(play_);
  }

 private:
  bool Free(uint64_t begin, uint64_t end) const;
  bool TryPlace(uint32_t entry, PlayedBlock* block);
  bool Place(PlayedBlock* block, EnvelopeIterationFigures* figures);
  bool PlanIsDue(const EnvelopeIterationFigures& figures) const;
  void Plan();
  void RestartFollower();
  void AddFollowed();

  const EnvelopePlayOptions options_;
  Envelope envelope_;
  EnvelopeFollower follower_{&envelope_};
  ReleaseContext context_;
  std::vector<PlayedBlock> blocks_;  // by ordinal
  std::vector<EnvelopeRequest> iteration_;
  std::unordered_map<uint64_t, uint64_t> live_;  // id → ordinal
  std::map<uint64_t, uint64_t> zone_;            // live ranges: begin → end
  std::vector<Places> places_;                   // by entry
  uint64_t first_ = 0;                           // ordinal of the iteration's first request
  uint64_t live_units_ = 0, iterations_ = 0;
  EnvelopeIterationFigures now_;
  EnvelopePlay play_;
};

bool Player::Free(uint64_t begin, uint64_t end) const {
  auto it = zone_.upper_bound(begin);
  if (it != zone_.begin() && std::prev(it)->second > begin) return false;
  return it == zone_.end() || it->first >= end;
}

// Looks for a place among those of the entry. A larger block may use what is free above its place.
bool Player::TryPlace(uint32_t entry, PlayedBlock* block) {
  if (entry >= places_.size()) return false;
  for (const uint64_t offset : places_[entry].offsets) {
    if (!Free(offset, offset + block->units)) continue;
    block->offset = offset;
    block->entry = entry;
    zone_[offset] = offset + block->units;
    return true;
  }
  return false;
}

bool Player::Place(PlayedBlock* block, EnvelopeIterationFigures* figures) {
  if (TryPlace(block->entry, block)) return true;
  for (const uint32_t other : follower_.Alternatives()) {
    if (other >= places_.size() || places_[other].room < block->units || !TryPlace(other, block)) continue;
    ++figures->alternative;
    return true;
  }
  if (block->entry == kNone) {
    ++figures->unknown;
    return false;
  }
  if (block->entry >= places_.size() || places_[block->entry].room == 0) {
    ++figures->unplaced;
    return false;
  }
  ++(block->units > places_[block->entry].room ? figures->too_large : figures->displaced);
  return false;
}

void Player::Request(uint64_t id, uint64_t bytes) {
  PlayedBlock block;
  block.units = UnitsOf(bytes);
  const RequestSign sign = context_.Sign(block.units);
  context_.Clear();
  if (!places_.empty()) {
    const int64_t begin = Now();
    block.entry = follower_.Next(sign);
    play_.follow_ns += Now() - begin;
  }
  ++now_.requests;
  live_units_ += block.units;
  now_.live_units = std::max(now_.live_units, live_units_);
  if (!places_.empty() && Place(&block, &now_)) {
    ++now_.planned;
    follower_.Placed(block.entry);
  }
  live_[id] = blocks_.size();
  iteration_.push_back({sign, UINT64_MAX, block.offset != UINT64_MAX ? block.entry : kNone});
  blocks_.push_back(block);
}

void Player::Release(uint64_t id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  PlayedBlock& block = blocks_[found->second];
  block.released = blocks_.size();
  context_.Add(blocks_.size() - found->second);
  live_units_ -= block.units;
  if (block.offset != UINT64_MAX) {
    zone_.erase(block.offset);
    follower_.Released(block.entry);
  }
  live_.erase(found);
}

void Player::RestartFollower() {
  std::vector<uint32_t> live;
  for (const auto& [id, ordinal] : live_) {
    if (blocks_[ordinal].offset != UINT64_MAX) live.push_back(blocks_[ordinal].entry);
  }
  AddFollowed();
  follower_.Restart(live);
}

void Player::AddFollowed() {
  play_.expected = follower_.figures().expected;
  play_.beam = follower_.figures().beam;
  play_.searches = follower_.figures().searches;
}

// The number of plans grows with the logarithm of the iterations.
bool Player::PlanIsDue(const EnvelopeIterationFigures& figures) const {
  constexpr double kWorthIt = 0.005;  // of an iteration's requests
  if (iterations_ < 2) return false;
  if (play_.plans.empty()) return true;
  const double plans = static_cast<double>(play_.plans.size());
  if (plans + 1 > 1 + std::log2(static_cast<double>(iterations_ + 1))) return false;
  return envelope_.changed() &&
         static_cast<double>(figures.requests - figures.planned) > kWorthIt * static_cast<double>(figures.requests);
}

void Player::Plan() {
  EnvelopePlan plan;
  std::vector<uint32_t> index;
  PackResult best;
  for (const bool with_mistakes : {false, true}) {
    if (with_mistakes && !envelope_.Mistaken()) break;
    std::vector<uint32_t> each;
    const Instance instance = envelope_.ToInstance(with_mistakes, &each);
    PackOptions options;
    options.time_limit_ns = options_.pack_ns;
    const PackResult result = Pack(instance, options);
    plan.pack_ns += result.nanoseconds;
    if (result.status != PackStatus::kOk) continue;
    const auto most = static_cast<Bytes>(static_cast<double>(best.placement.height) * options_.mistake_cost);
    if (with_mistakes && result.placement.height > most) continue;
    best = result;
    index = each;
    plan.blocks = instance.blocks.size();
  }
  places_.assign(envelope_.entries().size(), {});
  for (size_t i = 0; i < index.size(); ++i) {
    Places& places = places_[index[i]];
    places.room = envelope_.RoomUnits(index[i]);
    places.offsets.push_back(static_cast<uint64_t>(best.placement.offsets[i]) / kBlockUnit);
  }
  plan.iteration = iterations_;
  plan.height_units = static_cast<uint64_t>(best.placement.height) / kBlockUnit;
  plan.load_units = static_cast<uint64_t>(best.lower_bound) / kBlockUnit;
  plan.moments = envelope_.moments().moments().size();
  play_.plans.push_back(plan);
  envelope_.ClearChanged();
}

void Player::Mark() {
  if (iteration_.empty()) return;
  if (iterations_ > 0) {  // the first one also has what a program does once
    for (size_t i = 0; i < iteration_.size(); ++i) iteration_[i].released = blocks_[first_ + i].released;
    const int64_t begin = Now();
    const std::vector<uint32_t> entries =
        envelope_.Merge(first_, iteration_, [this](uint64_t ordinal) { return blocks_[ordinal].released; });
    play_.merge_ns += Now() - begin;
    for (size_t i = 0; i < entries.size(); ++i)
      now_.mistaken += iteration_[i].taken != kNone && iteration_[i].taken != entries[i];
    ++iterations_;
    if (PlanIsDue(now_)) Plan();
    RestartFollower();
  } else {
    ++iterations_;
  }
  play_.iterations.push_back(now_);
  now_ = {};
  iteration_.clear();
  first_ = blocks_.size();
}

}  // namespace

EnvelopeIterationFigures& EnvelopeIterationFigures::operator+=(const EnvelopeIterationFigures& other) {
  requests += other.requests;
  planned += other.planned;
  alternative += other.alternative;
  unknown += other.unknown;
  unplaced += other.unplaced;
  too_large += other.too_large;
  displaced += other.displaced;
  mistaken += other.mistaken;
  live_units = std::max(live_units, other.live_units);
  return *this;
}

EnvelopePlay PlayEnvelope(const Trace& trace, const EnvelopePlayOptions& options) {
  Player player(options);
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAllocate) player.Request(event.id, event.bytes);
    if (event.kind == EventKind::kRelease) player.Release(event.id);
    if (event.kind == EventKind::kMark) player.Mark();
  }
  return player.Finish();
}

}  // namespace hotpack
