#include "runtime/engine/plan_scheduler.h"

#include <algorithm>
#include <utility>

namespace hotpack {
PlanScheduler::PlanScheduler(const Parts& parts, int64_t time_limit_ns, bool on_demand, StreamEdgeRule stream_edges,
                             std::function<void()> save)
    : parts_(parts),
      time_limit_ns_(time_limit_ns),
      on_demand_(on_demand),
      stream_edges_(stream_edges),
      save_(std::move(save)),
      worker_([this](const PlanJob& job, const std::atomic<bool>* cancel) { Run(job, cancel); }, on_demand) {}

// --- when to search --------------------------------------------------------------------------------------------------

// `replans`: the number of the script whose requests the job's profile has; 0: none.
bool PlanScheduler::Post(PlanJob job, uint64_t replans) {
  if (parts_.scripts->Follows()) job.known = parts_.scripts->current();
  if (!worker_.Post(std::move(job))) return false;
  job_replans_ = replans;
  divergences_at_post_ = parts_.scripts->Divergences();
  finish_requested_ = false;
  return true;
}

bool PlanScheduler::PostSave() {
  PlanJob job;
  job.kind = PlanJob::Kind::kSave;
  return worker_.Post(std::move(job));
}

// Programs that mark iterations keep marking them. The first one's length is unknown until the second mark.
bool PlanScheduler::Marked(uint64_t count) const {
  constexpr uint64_t kFirst = 1 << 16;
  const uint64_t marks = parts_.stats->marks();
  if (marks >= 2) return count - last_mark_ <= 4 * marked_length_ + 64;
  return (marks == 1 || marks_expected_) && count - last_mark_ <= kFirst;
}

void PlanScheduler::ExpectMarks() {
  if (marks_expected_ || parts_.stats->marks() > 0) return;
  marks_expected_ = true;
  last_mark_ = parts_.history->Count();
}

// Returns whether the script is that of a loop within a marked iteration, which has or will have a plan of its own.
bool PlanScheduler::LoopOfIteration(const Script* script) const {
  if (script == nullptr || !Marked(parts_.history->Count())) return false;
  return parts_.stats->marks() < 2 || 2 * script->size() < longest_marked_;
}

void PlanScheduler::MaybeDetect() {
  const uint64_t count = parts_.history->Count();
  if (Marked(count) || parts_.envelope->change_due()) return;
  if (parts_.envelope->active()) {  // what repeats now may not be marked
    if (count > EnvelopePatience()) parts_.envelope->Pause();
    return;
  }
  ScriptSwitcher& scripts = *parts_.scripts;
  const size_t known = scripts.variants().size();
  if (count < next_detection_ && (known == 0 || count < next_shape_scan_)) return;
  if (worker_.Busy()) {
    // The job is leaving the script that is being improved: a plan of what repeats now is worth more.
    if (job_replans_ != 0 && !finish_requested_ &&
        (scripts.Divergences() != divergences_at_post_ || LivesExceedCycle())) {
      finish_requested_ = true;
      worker_.FinishEarly();
    }
    return;
  }
  // A pending plan may still start. It gets the time of two of its iterations or, if several scripts are known, of two
  // periods of the current one.
  if (scripts.pending()) {
    const uint64_t turn =
        known > 1 ? scripts.current() ? scripts.current()->profile.period : 0 : scripts.pending()->size();
    if (count - scripts.pending_since() <= 2 * turn) return;
  }
  if (count >= next_detection_) {
    next_detection_ = count + DetectionInterval(count);
    const bool followed = scripts.Follows();
    const bool overlong = followed && LivesExceedCycle();
    const bool partly = std::exchange(partly_served_long_, false) && followed;
    if (!followed || overlong || partly || scripts.Divergences() != divergences_at_detection_) {
      divergences_at_detection_ = scripts.Divergences();
      overlong_at_detection_ = scripts.overlong_lives();
      PlanJob job;
      job.end = count;
      job.replace = !followed || overlong || partly;
      job.only_more = partly && !overlong;
      job.shapes = true;
      Post(std::move(job));
      return;
    }
  }
  if (known > 0 && count >= next_shape_scan_) ScanForShapes();
}

// Returns the number of requests until the next search of the history. A search costs as much as the history is long.
// So once the history is full, the interval must grow with the run. All searches together then cost the window's length
// times the logarithm of the run's.
uint64_t PlanScheduler::DetectionInterval(uint64_t count) const {
  const uint64_t usual = std::max(kMinNewRequests, std::min(count, parts_.history->Window()) / 16);
  return failed_searches_ < 2 ? usual : std::max(usual, count / 16);
}

void PlanScheduler::DetectSoon() {
  failed_searches_ = 0;
  const uint64_t count = parts_.history->Count();
  next_detection_ = std::min(next_detection_, count + DetectionInterval(count));
}

uint64_t PlanScheduler::PartOfHistory() const {
  return std::max(kMinNewRequests, std::min(parts_.history->Count(), parts_.history->Window()) / 16);
}

// If a known script does not explain the requests, searches the history sooner. The interval doubles while no other
// shape is found. Searches the requests since the script was left separately, too.
void PlanScheduler::ScanForShapes() {
  const ScriptSwitcher& scripts = *parts_.scripts;
  if (scripts.Follows() && scripts.Divergences() == divergences_at_scan_) return;
  const uint64_t count = parts_.history->Count(), part = PartOfHistory();
  const bool reset = shapes_found_ || count - last_shape_scan_ > part;
  shape_scan_interval_ = reset ? kMinNewRequests : std::min(2 * shape_scan_interval_, part);
  shapes_found_ = false;
  last_shape_scan_ = count;
  next_shape_scan_ = count + shape_scan_interval_;
  divergences_at_scan_ = scripts.Divergences();
  PlanJob job;
  job.kind = PlanJob::Kind::kShapes;
  job.end = count;
  if (scripts.iteration_begin() < count) job.stretch = count - scripts.iteration_begin();
  Post(std::move(job));
}

// Plans again when the last iteration left the script. Plans again, at growing intervals, when blocks outlive the
// cycle, which one iteration does not show.
void PlanScheduler::Mark() {
  ScriptSwitcher& scripts = *parts_.scripts;
  EngineStats& stats = *parts_.stats;
  stats.NoteMark();
  const uint64_t count = parts_.history->Count(), marks = stats.marks();
  if (parts_.envelope->NoteMark(count, worker_.Busy())) PostEnvelope();
  const bool rests = NoteRest(count);
  const bool followed = scripts.Follows() && scripts.Divergences() == divergences_at_mark_;
  const bool overlong = followed && marks >= next_overlong_ && LivesExceedCycle();
  const bool scripts_serve = !rests && !parts_.envelope->learning() && !parts_.envelope->Doubts();
  const bool partly = followed && partly_served_long_;
  if (marks >= 2 && count > last_mark_ && (!followed || overlong || partly) && scripts_serve && !worker_.Busy()) {
    if (overlong) {
      overlong_at_detection_ = scripts.overlong_lives();
      next_overlong_ = 2 * marks;
    }
    partly_served_long_ = false;
    PlanJob job;
    job.end = count;
    job.period = count - last_mark_;
    job.replace = true;
    job.only_more = partly && !overlong;
    Post(std::move(job));
  }
  marked_length_ = count - last_mark_;
  longest_marked_ = std::max(marked_length_, longest_marked_ - longest_marked_ / 16);
  last_mark_ = count;
  divergences_at_mark_ = scripts.Divergences();
  if (!scripts.follower().active()) stats.SetIterations(marks - 1, count);
}

// A marked iteration ends after `count` requests. The envelope serves until a script of what repeats is there. If
// iterations differ again, it comes back. Returns whether the script takes over.
bool PlanScheduler::NoteRest(uint64_t count) {
  EnvelopeServer& envelope = *parts_.envelope;
  ScriptSwitcher& scripts = *parts_.scripts;
  const Arena& arena = parts_.pages->arena();
  const uint64_t length = count - last_mark_;
  const bool same = envelope.active() && !envelope.change_due() && length > 0 && length == marked_length_ &&
                    SameRequests(*parts_.history, last_mark_ - length, length);
  rest_.NoteIteration(same, arena.driver_calls());
  if (worker_.Busy()) return false;
  switch (rest_.Next(scripts.pending() != nullptr)) {
    case RestWatch::Advice::kNone:
      return false;
    case RestWatch::Advice::kPlan: {
      scripts.DropPending();  // of an earlier rest
      PlanJob job;
      job.end = count;
      job.period = length;
      job.replace = true;
      if (Post(std::move(job))) rest_.NotePosted();
      return false;
    }
    case RestWatch::Advice::kTakeOver: {
      // Live blocks stay where they are at first.
      const uint64_t live =
          parts_.blocks->ChunkBytes(arena.chunk(), [](DeviceAddress, const DynamicBlock&) { return true; });
      if (rest_.MayTakeOver(scripts.pending()->height_bytes + live, arena.reserved())) {
        envelope.Rest();
        return true;
      }
      scripts.DropPending();
      return false;
    }
  }
  return false;
}

// If the worker is busy, the iterations wait for the next mark.
void PlanScheduler::PostEnvelope() {
  if (worker_.Busy()) return;
  PlanJob job;
  parts_.envelope->TakeWork(&job);
  const EngineStats& stats = *parts_.stats;
  job.new_fragments = !parts_.envelope->active();
  job.may_place = job.new_fragments || MayPlaceAgain(placements_, stats.plans() - placements_, stats.marks());
  Post(std::move(job));
}

// Returns whether blocks repeatedly outlive the cycle: their lives repeat only after several periods.
bool PlanScheduler::LivesExceedCycle() const {
  const uint64_t before = std::max(overlong_at_detection_, parts_.scripts->overlong_at_start());
  return parts_.scripts->overlong_lives() >= 2 + before;
}

void PlanScheduler::TryActivate(uint32_t units) {
  ScriptSwitcher& scripts = *parts_.scripts;
  if (scripts.TryActivate(units) != ScriptSwitcher::Activation::kReplanNeeded) return;
  PlanJob job;
  job.profile = scripts.pending()->profile;
  if (Post(std::move(job), scripts.pending_replans())) scripts.DropPending();
}

// An iteration has ended, which was served in whole or not. Where the lives keep changing, what the history shows does
// not help for long: the patience grows fourfold each time, until as many iterations in a row are served in whole.
void PlanScheduler::NoteServed(bool whole) {
  partly_served_ = whole ? 0 : partly_served_ + 1;
  served_in_whole_ = whole ? served_in_whole_ + 1 : 0;
  if (served_in_whole_ >= patience_) patience_ = kPatience;
  if (partly_served_ < patience_) return;
  partly_served_long_ = true;
  patience_ *= 4;
}

bool PlanScheduler::Improve(bool displaced) {
  const bool unplanned = std::exchange(unplanned_, false);
  NoteServed(!displaced && !unplanned);
  ScriptSwitcher& scripts = *parts_.scripts;
  const Arena& arena = parts_.pages->arena();
  const uint64_t number = scripts.number();
  Variant* variant = scripts.variants().Find(number);
  const bool may_replan = !scripts.pending() && !worker_.Busy() && !parts_.envelope->learning() &&
                          (variant == nullptr || variant->MayReplan()) && !LoopOfIteration(scripts.current().get());
  bool posted = false;
  // A permanent block lies where the script wants to serve: use the same plan at other addresses. (If there are few
  // chunks, one more costs more than that.)
  if (displaced && may_replan && arena.reserved() >= 16 * arena.chunk() && !scripts.leaves_zone() &&
      scripts.SomethingOverstays()) {
    PlanJob job;
    job.profile = scripts.follower().LearnedProfile();
    job.replace = true;
    posted = Post(std::move(job), number);
    if (posted) scripts.LeaveZone();
  }
  if (displaced) scripts.Realign();
  // The next iteration has another plan: a better one, or one made from a marked iteration.
  bool improving = (scripts.pending() && scripts.pending_replans() == number) ||
                   (parts_.stats->marks() > 0 && (scripts.pending() || worker_.Busy()));
  // Replan in the background (Sekiyama 2018, §4.3): larger sizes, longer lives.
  if (scripts.follower().learned() && may_replan && !posted && !LivesExceedCycle()) {
    PlanJob job;
    job.profile = scripts.follower().LearnedProfile();
    job.reserved_ranges = scripts.current()->reserved_ranges;
    posted = improving = Post(std::move(job), number);
  }
  // Displaced by blocks that other scripts left in the zone: plan around these.
  if (displaced && may_replan && !posted && scripts.variants().size() > 1) {
    PlanJob job;
    job.reserved_ranges = scripts.FindReservedRanges();
    if (!job.reserved_ranges.empty() && job.reserved_ranges != scripts.current()->reserved_ranges) {
      job.profile = scripts.follower().LearnedProfile();
      job.replace = true;
      posted = improving = Post(std::move(job), number);
    }
  }
  if (posted && variant != nullptr) variant->NoteReplan();
  return improving;
}

}  // namespace hotpack
