#include "bench/envelope_player.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

#include "packer/block_unit.h"
#include "runtime/script/envelope_follower.h"

namespace hotpack {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct PlayedBlock {
  uint64_t released = UINT64_MAX;
  uint32_t units = 0, entry = kNone;
  uint64_t offset = UINT64_MAX;  // in the zone; UINT64_MAX: served elsewhere
};

class Player {
 public:
  explicit Player(const EnvelopeSettings& settings) : learner_(settings) {}

  void Request(uint64_t id, uint64_t bytes);
  void Release(uint64_t id);
  void Mark();
  EnvelopePlay Finish() {
    play_.entries = learner_.envelope().entries().size();
    AddFollowed();
    return std::move(play_);
  }

 private:
  bool Planned() const { return learner_.places() != nullptr; }
  bool Free(uint64_t begin, uint64_t end) const;
  bool TryPlace(uint32_t entry, PlayedBlock* block);
  bool Place(PlayedBlock* block, EnvelopeIterationFigures* figures);
  bool PlanIsDue(const EnvelopeIterationFigures& figures) const;
  void Plan();
  void RestartFollower();
  void AddFollowed();

  EnvelopeLearner learner_;
  EnvelopeFollower follower_;
  ReleaseContext context_;
  std::vector<PlayedBlock> blocks_;  // by ordinal
  std::vector<EnvelopeRequest> iteration_;
  std::unordered_map<uint64_t, uint64_t> live_;  // id → ordinal
  std::map<uint64_t, uint64_t> zone_;            // live ranges: begin → end
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
  const EnvelopePlace* place = learner_.places()->Find(entry);
  if (place == nullptr) return false;
  for (const uint32_t offset : place->offsets) {
    if (offset == kNone || !Free(offset, uint64_t{offset} + block->units)) continue;
    block->offset = offset;
    block->entry = entry;
    zone_[offset] = uint64_t{offset} + block->units;
    return true;
  }
  return false;
}

bool Player::Place(PlayedBlock* block, EnvelopeIterationFigures* figures) {
  if (TryPlace(block->entry, block)) return true;
  for (const uint32_t other : follower_.Alternatives()) {
    const EnvelopePlace* place = learner_.places()->Find(other);
    if (place == nullptr || place->room < block->units || !TryPlace(other, block)) continue;
    ++figures->alternative;
    return true;
  }
  const EnvelopePlace* place = learner_.places()->Find(block->entry);
  ++(block->entry == kNone        ? figures->unknown
     : place == nullptr           ? figures->unplaced
     : block->units > place->room ? figures->too_large
                                  : figures->displaced);
  return false;
}

void Player::Request(uint64_t id, uint64_t bytes) {
  PlayedBlock block;
  block.units = UnitsOf(bytes);
  const RequestSign sign = context_.Sign(block.units);
  context_.Clear();
  if (Planned()) {
    const int64_t begin = Now();
    block.entry = follower_.Next(sign);
    play_.follow_ns += Now() - begin;
  }
  ++now_.requests;
  live_units_ += block.units;
  now_.live_units = std::max(now_.live_units, live_units_);
  if (Planned() && Place(&block, &now_)) {
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
  follower_.Start(learner_.Script(), live);
}

void Player::AddFollowed() {
  play_.expected = follower_.figures().expected;
  play_.beam = follower_.figures().beam;
  play_.searches = follower_.figures().searches;
}

bool Player::PlanIsDue(const EnvelopeIterationFigures& figures) const {
  constexpr double kWorthIt = 0.005;  // of an iteration's requests
  if (iterations_ < 2) return false;
  if (play_.plans.empty()) return true;
  return WithinPlanCredit(play_.plans.size(), iterations_) && learner_.changed() &&
         static_cast<double>(figures.requests - figures.planned) > kWorthIt * static_cast<double>(figures.requests);
}

void Player::Plan() {
  EnvelopePlan plan;
  plan.pack_ns = learner_.Place();
  plan.iteration = iterations_;
  plan.height_units = learner_.places()->zone_units;
  plan.load_units = learner_.places()->load_units;
  plan.moments = learner_.envelope().moments().moments().size();
  play_.plans.push_back(plan);
}

void Player::Mark() {
  if (iteration_.empty()) return;
  if (iterations_ > 0) {  // the first one also has what a program does once
    for (size_t i = 0; i < iteration_.size(); ++i) iteration_[i].released = blocks_[first_ + i].released;
    const int64_t begin = Now();
    const std::vector<uint32_t> entries =
        learner_.Merge(first_, iteration_, [this](uint64_t ordinal) { return blocks_[ordinal].released; });
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

EnvelopePlay PlayEnvelope(const Trace& trace, const EnvelopeSettings& settings) {
  Player player(settings);
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAllocate) player.Request(event.id, event.bytes);
    if (event.kind == EventKind::kRelease) player.Release(event.id);
    if (event.kind == EventKind::kMark) player.Mark();
  }
  return player.Finish();
}

}  // namespace hotpack
