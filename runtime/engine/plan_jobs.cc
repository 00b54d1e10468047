// The planner's jobs, on the worker's thread, without the engine's lock (PlanScheduler).
#include <algorithm>
#include <ctime>
#include <mutex>
#include <utility>

#include "runtime/engine/plan_scheduler.h"

namespace hotpack {
namespace {

// Returns the processor time of the calling thread: nanoseconds.
uint64_t ThreadTime() {
  timespec time = {};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Returns the number of requests in pieces that occurred at least `times` times.
uint64_t Explained(const std::vector<Shape>& shapes, size_t times) {
  uint64_t explained = 0;
  for (const Shape& shape : shapes) {
    if (shape.begins.size() >= times) explained += shape.length * shape.begins.size();
  }
  return explained;
}

}  // namespace

void PlanScheduler::Run(const PlanJob& job, const std::atomic<bool>* cancel) {
  const uint64_t start = ThreadTime();
  uint64_t plans_before = 0;
  {
    EngineLock lock(*parts_.mutex);
    plans_before = parts_.stats->plans();
  }
  if (job.kind == PlanJob::Kind::kSave) {
    save_();
  } else if (job.kind == PlanJob::Kind::kEnvelope) {
    LearnEnvelope(job, cancel);
  } else {
    std::optional<Profile> profile;
    if (job.kind == PlanJob::Kind::kIteration) profile = FindProfile(*parts_.history, job);
    const bool periodic = profile.has_value();
    if (periodic) PlanIteration(job, std::move(*profile), cancel);
    if (job.shapes || job.kind == PlanJob::Kind::kShapes) PlanShapes(job, periodic, cancel);
  }
  EngineLock lock(*parts_.mutex);
  planning_ns_ += ThreadTime() - start;
  planning_ = false;
  const bool searched = job.kind != PlanJob::Kind::kSave && !job.profile && job.period == 0;
  if (searched) ++detections_;
  if (parts_.stats->plans() != plans_before) {
    failed_searches_ = 0;
  } else if (searched) {
    ++failed_searches_;
  }
}

PlanSettings PlanScheduler::Settings() const {
  const Arena& arena = parts_.pages->arena();
  return {arena.chunk(), time_limit_ns_, on_demand_, arena.large_alignment(), stream_edges_};
}

// Plans the hot iteration, or an improved profile of it.
void PlanScheduler::PlanIteration(const PlanJob& job, Profile profile, const std::atomic<bool>* cancel) {
  PlanSnapshot snapshot;
  {
    EngineLock lock(*parts_.mutex);
    planning_ = true;
    snapshot = Snapshot(profile.blocks.size());  // what lives longer than the cycle is not its own
    snapshot.scripts = parts_.scripts->OtherScripts(job_replans_);
  }
  std::shared_ptr<const Script> script = BuildScript(std::move(profile), job, snapshot, Settings(), cancel);
  if (!script || !FitsDevice(*script)) return;
  EngineLock lock(*parts_.mutex);
  if (!job.reserved_ranges.empty() && script->height_bytes > parts_.pages->zone_used())
    return;  // costs more than the displaced requests
  parts_.stats->NotePlan();
  if (parts_.stats->plans() > 1) parts_.stats->NoteReoptimization();
  if (job_replans_ != 0 && job_replans_ != parts_.scripts->number()) {  // the job follows another script now
    if (parts_.scripts->variants().Replace(job_replans_, script) != nullptr) return;
  }
  parts_.scripts->SetPending(std::move(script), job_replans_);
}

// Plans iterations whose shapes the known scripts do not have: one script each.
void PlanScheduler::PlanShapes(const PlanJob& job, bool periodic, const std::atomic<bool>* cancel) {
  constexpr uint64_t kTail = 1 << 18;  // requests searched
  HistoryTail tail = CopyTail(*parts_.history, job.end, kTail);
  std::vector<Shape> shapes = FindShapes(tail);
  {
    EngineLock lock(*parts_.mutex);
    // If the job has a period, pieces of the first iteration may look alike.
    const bool explains = !periodic && 3 * Explained(shapes, 3) >= 2 * tail.units.size();
    if (parts_.scripts->variants().size() == 0 && !explains) return;
  }
  size_t made = PlanEach(tail, shapes, cancel);
  // Pieces that are small next to a training iteration are found only separately.
  if (job.stretch >= kMinNewRequests && job.stretch < tail.units.size() && made == 0) {
    tail = CopyTail(*parts_.history, job.end, job.stretch);
    shapes = FindShapes(tail);
    if (2 * Explained(shapes, 2) >= tail.units.size()) made = PlanEach(tail, shapes, cancel);
  }
  EngineLock lock(*parts_.mutex);
  shapes_found_ = made > 0;
}

// Makes a script for each unknown shape. Returns how many.
size_t PlanScheduler::PlanEach(const HistoryTail& tail, const std::vector<Shape>& shapes,
                               const std::atomic<bool>* cancel) {
  constexpr size_t kScripts = 16;  // at a time
  size_t made = 0;
  for (const Shape& shape : shapes) {
    if (made == kScripts || cancel->load(std::memory_order_relaxed)) break;
    Profile profile = BuildShapeProfile(tail, shape);
    if (std::none_of(profile.blocks.begin(), profile.blocks.end(), [](const ProfileBlock& b) { return b.planned; }))
      continue;
    PlanSnapshot snapshot;
    {
      EngineLock lock(*parts_.mutex);
      std::vector<std::shared_ptr<const Script>> known;
      for (const Variant& v : parts_.scripts->variants().all()) known.push_back(v.script);
      if (parts_.scripts->pending()) known.push_back(parts_.scripts->pending());
      uint64_t longest = shape.length;
      bool is_known = false;
      for (const auto& script : known) {
        is_known |= script->profile.unroll == 1 && AlikeCycles(script->profile, profile);
        longest = std::max<uint64_t>(longest, script->size());
      }
      if (is_known) continue;
      planning_ = true;
      snapshot = Snapshot(longest);
      snapshot.fragments = parts_.pages->fragments();  // the followed script's: scripts that take turns may share them
      snapshot.scripts = std::move(known);
    }
    std::shared_ptr<const Script> script = BuildShapeScript(std::move(profile), snapshot, Settings(), cancel);
    if (!script || !FitsDevice(*script)) continue;
    EngineLock lock(*parts_.mutex);
    parts_.scripts->variants().Add(std::move(script), parts_.history->Count(), parts_.scripts->number());
    parts_.stats->NotePlan();
    ++made;
  }
  return made;
}

// An iteration that the history does not hold any more is left out.
void PlanScheduler::LearnEnvelope(const PlanJob& job, const std::atomic<bool>* cancel) {
  constexpr uint64_t kBefore = 4;  // the history is read back this many times their length: for what lived before
  constexpr int64_t kPack = 100'000'000, kLogicalPack = 10'000'000;  // ns: most envelopes are near their bound by then
  const History& history = *parts_.history;
  const uint64_t begin = job.marks.front(), end = job.marks.back();
  if (!learner_) {
    EnvelopeSettings settings;
    settings.pack_ns = std::min(time_limit_ns_, on_demand_ ? kLogicalPack : kPack);
    settings.logical_time = on_demand_;
    settings.large_alignment = parts_.pages->arena().large_alignment();
    settings.chunk_bytes = parts_.pages->arena().chunk();
    learner_.emplace(settings);
  }
  const HistoryTail tail = CopyTail(history, end, kBefore * (end - begin) + 4096);
  const auto released_at = [&](uint64_t ordinal) {
    const uint32_t age = history.Age(ordinal);
    return history.Holds(ordinal) && age != kStillLive ? ordinal + age : UINT64_MAX;
  };
  uint64_t longest = 0;
  for (size_t k = 0; k + 1 < job.marks.size(); ++k) {
    longest = std::max(longest, job.marks[k + 1] - job.marks[k]);
    if (job.marks[k] < tail.first) continue;
    std::vector<EnvelopeRequest> iteration = EnvelopeIteration(tail, job.marks[k], job.marks[k + 1]);
    for (size_t i = 0; i < iteration.size(); ++i) {
      const uint64_t at = job.marks[k] + i - job.taken_first;
      if (job.marks[k] + i >= job.taken_first && at < job.taken.size()) iteration[i].taken = job.taken[at];
      if (!stream_edges_.avoid || stream_edges_.slack_percent == 0) iteration[i].stream = 0;
    }
    learner_->Merge(job.marks[k], iteration, released_at);
    if (learner_->Full()) break;
  }
  for (const auto& [entry, other] : job.met) learner_->Met(entry, other);
  if (learner_->Full()) {
    EngineLock lock(*parts_.mutex);
    parts_.envelope->GiveUp();
    return;
  }
  const bool place = job.new_fragments || (job.may_place && learner_->changed());
  if (place) {
    std::vector<AddressRange> fragments;
    if (job.new_fragments) {
      EngineLock lock(*parts_.mutex);
      fragments = Snapshot(longest).fragments;
    }
    learner_->Place(job.new_fragments ? &fragments : nullptr, cancel);
  }
  std::shared_ptr<const EnvelopeScript> script = learner_->Script();
  EngineLock lock(*parts_.mutex);
  if (place) {
    ++placements_;
    parts_.stats->NotePlan();
  }
  if (place && parts_.stats->plans() > 1) parts_.stats->NoteReoptimization();
  if (script->places->zone_units > 0) parts_.envelope->SetPending(std::move(script));
}

// Weights and optimizer state were allocated between other blocks. Their chunks are held as long as they live. The rest
// of these chunks is offered to the plan, if it exceeds a two-hundredth of all.
PlanSnapshot PlanScheduler::Snapshot(uint64_t cycle) const {
  const Arena& arena = parts_.pages->arena();
  std::vector<AddressRange> kept;
  const uint64_t count = parts_.history->Count(), peak = parts_.blocks->live_peak_units();
  uint64_t kept_units = 0;
  parts_.blocks->ForEach([&](DeviceAddress address, const DynamicBlock& block) {
    if (!block.LivesLongerThan(cycle, count)) return;
    kept_units += block.units;
    if (parts_.pages->InReservation(address)) kept.push_back({address, block.bytes});
  });
  PlanSnapshot snapshot;
  snapshot.max_units = peak - std::min(kept_units, peak);
  snapshot.fragments = arena.Fragments(kept);
  uint64_t sum = 0;
  for (const AddressRange& range : snapshot.fragments) sum += range.bytes;
  if (sum < 2 * arena.chunk() || sum < peak * kBlockUnit / 200) snapshot.fragments.clear();
  return snapshot;
}

// Returns whether the device can hold the plan and the blocks that stay outside it, as far as known. A device that
// refused memory has no more than it provided.
bool PlanScheduler::FitsDevice(const Script& script) {
  EngineLock lock(*parts_.mutex);
  const PageManager& pages = *parts_.pages;
  too_large_ = false;
  if (pages.capacity_seen() == 0) return true;
  const uint64_t chunk = pages.arena().chunk(), count = parts_.history->Count();
  const uint64_t kept = parts_.blocks->ChunkBytes(chunk, [&](DeviceAddress address, const DynamicBlock& block) {
    return block.LivesLongerThan(script.size(), count) && pages.InReservation(address);
  });
  const uint64_t height = (script.height_bytes + chunk - 1) & ~(chunk - 1);
  too_large_ = !parts_.spill->AdmitsPlan(lock, height, kept, std::max(pages.capacity_seen(), pages.arena().held()));
  return !too_large_;
}

hotpack_no_plan_reason PlanScheduler::WhyNoPlan() const {
  constexpr uint64_t kSeveral = 3;  // plans in a row that none of the next iterations was like
  const ScriptSwitcher& scripts = *parts_.scripts;
  const uint64_t plans = parts_.stats->plans();
  if (scripts.pending() && scripts.waits_for_capture()) return HOTPACK_NO_PLAN_CAPTURE;
  if (scripts.pending() && plans < kSeveral) {
    const uint64_t waited = parts_.history->Count() - scripts.pending_since();
    return waited <= 2 * uint64_t{scripts.pending()->size()} ? HOTPACK_NO_PLAN_NOT_BEGUN : HOTPACK_NO_PLAN_DIFFERENT;
  }
  if (too_large_) return HOTPACK_NO_PLAN_TOO_LARGE;
  if (plans >= kSeveral || (plans > 0 && !planning_)) return HOTPACK_NO_PLAN_DIFFERENT;
  if (planning_ || (parts_.stats->marks() >= 2 && worker_.Busy())) return HOTPACK_NO_PLAN_NOT_READY;
  return detections_ > 0 ? HOTPACK_NO_PLAN_NO_REPETITION : HOTPACK_NO_PLAN_TOO_SHORT;
}

void PlanScheduler::AddTo(hotpack_stats* stats) const {
  stats->detections = detections_;
  stats->planning_ns = planning_ns_;
}

}  // namespace hotpack
