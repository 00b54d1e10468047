#include "tools/replay/replay_player.h"

#include <algorithm>
#include <chrono>

#include "packer/block_unit.h"
#include "tools/replay/replay_sizes.h"

namespace hotpack {
namespace {

uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Returns the step in which optimizer state is allocated: the first marked one with requests, else the very first.
size_t FirstStep(const RecordedSteps& recorded) {
  for (size_t i = 1; i < recorded.steps.size(); ++i) {
    if (recorded.requests[i] > 0) return i;
  }
  return 0;
}

}  // namespace

Player::Player(const RecordedSteps& recorded, const PlayOptions& options, const ReplayHooks& hooks,
               ReplayDevice* device)
    : recorded_(recorded), options_(options), hooks_(hooks), device_(device) {}

bool Player::Fail(const std::string& what, const std::string& reason) {
  result_.error = what + ": " + reason;
  return false;
}

bool Player::Allocate(uint64_t bytes, uint32_t stream, ReplayBlock* block) {
  *block = {0, bytes, next_id_++, stream};
  std::string what = "request " + std::to_string(result_.requests) + " of " + std::to_string(bytes) + " bytes";
  std::string error = device_->Allocate(bytes, stream, &block->address);
  if (!error.empty()) return Fail(what, error);
  ++result_.requests;
  live_bytes_ += RoundUpToUnit(bytes);
  result_.live_peak = std::max(result_.live_peak, live_bytes_);
  if (!options_.touch) return true;
  error = device_->Fill(*block);
  return error.empty() || Fail(what + ", its first use", error);
}

bool Player::Release(ReplayBlock* block, uint32_t stream) {
  std::string error;
  if (options_.touch) error = device_->Check(*block);
  if (error.empty()) error = device_->Release(*block, stream);
  if (!error.empty()) return Fail("release of a block of " + std::to_string(block->bytes) + " bytes", error);
  live_bytes_ -= RoundUpToUnit(block->bytes);
  block->address = 0;
  return true;
}

bool Player::IsLive(uint64_t generation, uint32_t request) const {
  auto found = generations_.find(generation);
  return found != generations_.end() && request < found->second.blocks.size() &&
         found->second.blocks[request].address != 0;
}

uint64_t Player::OriginOf(const RecordedBlock& block, uint64_t generation) const {
  if (repetition_ > 0) {
    uint64_t back = *recorded_.steady - block.step;
    // Older blocks are released only once: they are not repeated.
    return back <= recorded_.reach ? generation - back : UINT64_MAX;
  }
  // After the repetitions: a carried block that they replaced is released in its latest form, others as recorded.
  uint64_t origin = base_ + block.step;
  if (shift_ > 0 && (block.step > *recorded_.steady || !IsLive(origin, block.request))) origin += shift_;
  return origin;
}

bool Player::PlayEvent(const PlayedEvent& event, uint64_t generation) {
  switch (event.kind) {
    case EventKind::kAllocate: {
      Generation& own = generations_[generation];
      own.blocks.emplace_back();
      ++own.live;
      return Allocate(event.bytes, event.stream, &own.blocks.back());
    }
    case EventKind::kRelease: {
      uint64_t origin = OriginOf(event.block, generation);
      if (!IsLive(origin, event.block.request)) return true;
      Generation& from = generations_[origin];
      --from.live;
      return Release(&from.blocks[event.block.request], event.stream);
    }
    case EventKind::kInterrupt:
      if (hooks_.interrupt != nullptr) hooks_.interrupt();
      return true;
    case EventKind::kResume:
      if (hooks_.resume != nullptr) hooks_.resume();
      return true;
    case EventKind::kExpect:
      if (hooks_.expect != nullptr) hooks_.expect();
      return true;
    case EventKind::kMark:
      return true;
  }
  return true;
}

bool Player::AllocateTensors(const std::vector<uint64_t>& sizes, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    kept_.emplace_back();
    if (!Allocate(sizes[i], 0, &kept_.back())) return false;
  }
  return true;
}

bool Player::PlayStep(const std::vector<PlayedEvent>& step, uint64_t generation, bool optimizer) {
  std::vector<uint64_t> sizes = optimizer ? TensorSizes(options_.optimizer_state) : std::vector<uint64_t>();
  uint64_t requests = 0;
  for (const PlayedEvent& event : step) requests += event.kind == EventKind::kAllocate;
  uint64_t from = requests * 2 / 3, seen = 0;
  size_t done = 0;
  for (const PlayedEvent& event : step) {
    if (!PlayEvent(event, generation)) return false;
    if (sizes.empty() || event.kind != EventKind::kAllocate || ++seen <= from) continue;
    size_t due = sizes.size() * (seen - from) / (requests - from);
    if (!AllocateTensors(sizes, done, due)) return false;
    done = due;
  }
  ++steps_played_;
  if (options_.progress != nullptr) options_.progress->Reached(steps_played_);
  return true;
}

// Ends an iteration and begins the next.
bool Player::Boundary() {
  std::string error = device_->Synchronize();
  if (!error.empty()) return Fail("the end of a step", error);
  if (in_step_) result_.step_ns.push_back(Now() - step_begin_ns_);
  if (hooks_.step != nullptr) hooks_.step();
  if (hooks_.wait_plan != nullptr) hooks_.wait_plan(-1);
  std::erase_if(generations_, [](const auto& entry) { return entry.second.live == 0; });
  in_step_ = true;
  step_begin_ns_ = Now();
  return true;
}

bool Player::PlayRepetitions() {
  uint64_t steady = *recorded_.steady;
  for (repetition_ = 1; repetition_ <= options_.repeat; ++repetition_) {
    if (!PlayStep(recorded_.steps[steady], base_ + steady + repetition_, false) || !Boundary()) return false;
  }
  repetition_ = 0;
  shift_ = options_.repeat;
  return true;
}

bool Player::PlayPass(uint64_t base) {
  base_ = base;
  shift_ = 0;
  in_step_ = false;
  size_t optimizer_step = FirstStep(recorded_);
  for (size_t i = 0; i < recorded_.steps.size(); ++i) {
    if (i > 0 && !Boundary()) return false;
    if (options_.repeat > 0 && i == *recorded_.steady + 1 && !PlayRepetitions()) return false;
    bool optimizer = base == 0 && i == optimizer_step;
    if (!PlayStep(recorded_.steps[i], base + i + shift_, optimizer)) return false;
  }
  return true;
}

bool Player::ReleaseGenerations() {
  for (auto& [generation, blocks] : generations_) {
    for (ReplayBlock& block : blocks.blocks) {
      if (block.address != 0 && !Release(&block, block.stream)) return false;
    }
  }
  generations_.clear();
  return true;
}

PlayResult Player::Play() {
  std::vector<uint64_t> weights = TensorSizes(options_.weights);
  bool played = AllocateTensors(weights, 0, weights.size());
  for (uint64_t pass = 0; played && pass < options_.passes; ++pass) {
    played = PlayPass(pass * recorded_.steps.size()) && ReleaseGenerations();
  }
  for (ReplayBlock& block : kept_) {
    if (played) played = Release(&block, block.stream);
  }
  if (played) {
    std::string error = device_->Synchronize();
    if (!error.empty()) Fail("the end", error);
    result_.mismatches = device_->Mismatches();
  }
  return result_;
}

}  // namespace hotpack
