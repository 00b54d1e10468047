// The engine's plans: when to look for one, when to take it up, what an iteration's end means.
#include <algorithm>

#include "profiler/shapes.h"
#include "runtime/engine_impl.h"

namespace hotpack {

// --- looking for a plan ----------------------------------------------------------------------------------------------

// `refines`: the number of the script whose requests the job's profile has; 0: none.
bool Engine::Impl::Post(PlanJob job, uint64_t refines) {
  if (follower_.active() && !follower_.lost()) job.known = current_;
  if (!planner_.Post(std::move(job))) return false;
  job_refines_ = refines;
  divergences_at_post_ = Divergences();
  hurried_ = false;
  return true;
}

// Without marks: looks at the history each time it has grown by a sixteenth, and when that came to nothing, the run has. While a script is followed: only after the
// job has left it, for a period that explains that as well.
void Engine::Impl::MaybeDetect() {
  uint64_t count = history_.Count();
  // A program that marks goes on marking; how long its first iteration is, nobody knows yet.
  constexpr uint64_t kFirst = 1 << 16;
  bool marked = marks_ >= 2 ? count - last_mark_ <= 4 * marked_length_ + 64 : marks_ == 1 && count - last_mark_ <= kFirst;
  if (marked || (count < next_detection_ && (variants_.size() == 0 || count < next_shapes_))) return;
  if (planner_.Busy()) {
    // A script is being improved that the job leaves meanwhile: what it repeats instead is worth more.
    if (job_refines_ != 0 && !hurried_ && (Divergences() != divergences_at_post_ || Outlived())) {
      hurried_ = true;
      planner_.Hurry();
    }
    return;
  }
  // A plan that waits may still get its turn; an iteration of several others only once they are known.
  if (pending_ && count - pending_since_ <= 2 * uint64_t{variants_.size() > 1 ? period_ : pending_->size()}) return;
  if (count >= next_detection_) {
    next_detection_ = count + DetectionInterval(count);
    bool followed = follower_.active() && !follower_.lost();
    bool outlived = followed && Outlived();
    if (!followed || outlived || Divergences() != divergences_at_detection_) {
      divergences_at_detection_ = Divergences();
      outlived_at_detection_ = outlived_;
      PlanJob job;
      job.end = count;
      job.replace = !followed || outlived;
      job.shapes = true;
      Post(std::move(job));
      return;
    }
  }
  if (variants_.size() > 0 && count >= next_shapes_) LookForShapes();
}

uint64_t Engine::Impl::PartOfHistory() const {
  return std::max<uint64_t>(kLeastNews, std::min(history_.Count(), history_.Window()) / 16);
}

// Where a script is known, and something else comes up, the history is looked at sooner, but ever later while no other shape
// is found. The requests since the script was left are looked at by themselves as well.
void Engine::Impl::LookForShapes() {
  if (follower_.active() && !follower_.lost() && Divergences() == divergences_at_look_) return;
  uint64_t count = history_.Count(), part = PartOfHistory();
  bool anew = shapes_found_ || count - looked_at_ > part;
  shapes_interval_ = anew ? kLeastNews : std::min(2 * shapes_interval_, part);
  shapes_found_ = false;
  looked_at_ = count;
  next_shapes_ = count + shapes_interval_;
  divergences_at_look_ = Divergences();
  PlanJob job;
  job.end = count;
  job.shapes = job.shapes_only = true;
  if (boundary_ < count) job.stretch = count - boundary_;
  Post(std::move(job));
}

// Marked iterations: one is enough to plan (Sekiyama 2018, §4.1). Planned again when the last one left the script, and when
// blocks outlive the cycle, which one iteration does not show: ever more seldom.
void Engine::Impl::Mark() {
  if (abandoned()) return;
  Lock lock(mutex_);
  Record(EventKind::kMark, 0, 0, 0);
  ++marks_;
  uint64_t count = history_.Count();
  const bool followed = follower_.active() && !follower_.lost() && Divergences() == divergences_at_mark_;
  const bool outlived = followed && marks_ >= next_outlived_ && Outlived();
  if (marks_ >= 2 && count > last_mark_ && (!followed || outlived) && !planner_.Busy()) {
    if (outlived) {
      outlived_at_detection_ = outlived_;
      next_outlived_ = 2 * marks_;
    }
    PlanJob job;
    job.end = count;
    job.period = count - last_mark_;
    job.replace = true;
    Post(std::move(job));
  }
  marked_length_ = count - last_mark_;
  last_mark_ = count;
  divergences_at_mark_ = Divergences();
  if (!follower_.active()) {
    iterations_ = marks_ - 1;
    iterations_from_ = count;
  }
}

// A block has been released after `age` requests.
void Engine::Impl::NoteLife(uint32_t age) {
  if (!follower_.active() || follower_.lost()) return;
  if (variants_.size() > 1 && history_.Count() - age < activated_at_) return;  // of another script's time
  if (age > current_->size() && age <= kMaxUnroll * uint64_t{current_->profile.period}) ++outlived_;
}

// Blocks outlive the cycle again and again: their lives repeat only after several periods.
bool Engine::Impl::Outlived() const {
  return outlived_ >= 2 + outlived_at_detection_;
}

namespace {

// The one of `scripts` that has most in common with the profile; null: none has anything.
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

}  // namespace

// The scripts that the job changes to and from, but for the one with that number.
std::vector<std::shared_ptr<const Script>> Engine::Impl::ScriptsBeside(uint64_t number) {
  Lock lock(mutex_);
  std::vector<std::shared_ptr<const Script>> scripts;
  if (switches_ == 0) return scripts;  // what was followed before is not to hold the plan of the one there is back
  for (const Variant& v : variants_.all()) {
    if (v.number != number) scripts.push_back(v.script);
  }
  return scripts;
}

// On the planner's thread.
void Engine::Impl::Plan(const PlanJob& job, const std::atomic<bool>* cancel) {
  if (job.save) return Save(options_.plan_time_limit_ns);
  std::optional<Profile> profile;
  if (!job.shapes_only) profile = FindProfile(history_, job);
  bool periodic = profile.has_value();
  if (periodic) PlanIteration(job, std::move(*profile), cancel);
  if (job.shapes) PlanShapes(job, periodic, cancel);
}

// The hot iteration, or what was learned about it.
void Engine::Impl::PlanIteration(const PlanJob& job, Profile profile, const std::atomic<bool>* cancel) {
  uint64_t most_units = 0;
  std::vector<AddressRange> spare = SpareMemory(profile.period, &most_units);
  // Lives that repeat only after more periods than have been seen: the longest of each block's are too much together.
  if (!job.profile && profile.unroll > 1 && PeakUnits(profile) > most_units + most_units / 2) return;
  if (job.profile && job.known && !KeepNearLoad(&profile, job.known->profile, NearlyNoMore(most_units, arena_.chunk())) &&
      !job.replace) {
    return;
  }
  Kin kin;
  if (job.profile && spare.empty()) kin.old = job.known.get();
  kin.walls = job.walls;
  const std::vector<std::shared_ptr<const Script>> others = ScriptsBeside(job_refines_);
  kin.beside = MostAlike(others, profile);
  WorkClock clock;
  std::shared_ptr<const Script> script = MakeScript(std::move(profile), most_units, spare, arena_.chunk(), options_.plan_time_limit_ns,
                                                    cancel, kin, options_.logical_time ? &clock : nullptr);
  if (!script || !PlanFits(*script)) return;
  Lock lock(mutex_);
  if (!job.walls.empty() && script->height_bytes > zone_used_) return;  // dearer than what is displaced
  ++plans_;
  if (plans_ > 1) ++reoptimizations_;
  if (job_refines_ != 0 && job_refines_ != script_number_) {  // the job follows another script now
    if (variants_.Replace(job_refines_, script) != nullptr) return;
  }
  pending_ = std::move(script);
  pending_since_ = history_.Count();
  pending_refines_ = job_refines_;
  UpdateFast();
}

namespace {

// Requests of pieces that came `times` times or more.
uint64_t Explained(const std::vector<Shape>& shapes, size_t times) {
  uint64_t explained = 0;
  for (const Shape& shape : shapes) {
    if (shape.begins.size() >= times) explained += shape.length * shape.begins.size();
  }
  return explained;
}

}  // namespace

// Iterations of other shapes than the scripts known have: a script for each.
void Engine::Impl::PlanShapes(const PlanJob& job, bool periodic, const std::atomic<bool>* cancel) {
  constexpr uint64_t kTail = 1 << 18;  // requests looked at
  HistoryTail tail = CopyTail(history_, job.end, kTail);
  std::vector<Shape> shapes = FindShapes(tail);
  {
    Lock lock(mutex_);
    // Of a job that has a period, pieces of the first iteration may look alike.
    if (variants_.size() == 0 && (periodic || 3 * Explained(shapes, 3) < 2 * tail.units.size())) return;
  }
  size_t made = PlanEach(tail, shapes, cancel);
  // What is small beside an iteration of training is seen only by itself.
  if (job.stretch >= kLeastNews && job.stretch < tail.units.size() && made == 0) {
    tail = CopyTail(history_, job.end, job.stretch);
    shapes = FindShapes(tail);
    if (2 * Explained(shapes, 2) >= tail.units.size()) made = PlanEach(tail, shapes, cancel);
  }
  Lock lock(mutex_);
  shapes_found_ = made > 0;
}

// A script for each of the shapes that is not known. Returns how many.
size_t Engine::Impl::PlanEach(const HistoryTail& tail, const std::vector<Shape>& shapes, const std::atomic<bool>* cancel) {
  constexpr size_t kScripts = 16;  // in one go
  size_t made = 0;
  for (const Shape& shape : shapes) {
    if (made == kScripts || cancel->load(std::memory_order_relaxed)) break;
    Profile profile = BuildShapeProfile(tail, shape);
    if (std::none_of(profile.blocks.begin(), profile.blocks.end(), [](const ProfileBlock& b) { return b.planned; })) continue;
    std::vector<std::shared_ptr<const Script>> known;
    std::vector<AddressRange> spare;
    {
      Lock lock(mutex_);
      for (const Variant& v : variants_.all()) known.push_back(v.script);
      if (pending_) known.push_back(pending_);
      spare = holes_;  // what the script that is followed has beside the zone: others may have it by turns with that
    }
    uint64_t longest = shape.length;
    Kin kin;
    bool is_known = false;
    for (const auto& script : known) {
      is_known |= script->profile.unroll == 1 && AlikeCycles(script->profile, profile);
      longest = std::max<uint64_t>(longest, script->size());
    }
    if (is_known) continue;
    kin.beside = MostAlike(known, profile);
    uint64_t most_units = 0;
    SpareMemory(longest, &most_units);
    WorkClock clock;
    std::shared_ptr<const Script> script = MakeScript(std::move(profile), most_units, spare, arena_.chunk(), options_.plan_time_limit_ns,
                                                      cancel, kin, options_.logical_time ? &clock : nullptr);
    if (!script || !PlanFits(*script)) continue;
    Lock lock(mutex_);
    variants_.Add(std::move(script), history_.Count(), script_number_);
    ++plans_;
    ++made;
  }
  return made;
}

// Weights and optimizer state came in between other blocks; the chunks they lie in are held as long as they live. What
// is left over of these chunks is offered to the plan, if it is more than a two-hundredth of all.
// *most_units: the rest of the largest load so far.
std::vector<AddressRange> Engine::Impl::SpareMemory(uint64_t period, uint64_t* most_units) {
  Lock lock(mutex_);
  std::vector<AddressRange> kept;
  uint64_t count = history_.Count(), kept_units = 0;
  for (const auto& [address, block] : dynamic_) {
    bool stays = block.ordinal == kUnmonitored || count - block.ordinal > period;
    if (!stays) continue;
    kept_units += block.units;
    if (InReservation(address)) kept.push_back({address, block.bytes});
  }
  *most_units = live_peak_units_ - std::min(kept_units, live_peak_units_);
  std::vector<AddressRange> spare = arena_.Fragments(kept);
  uint64_t sum = 0;
  for (const AddressRange& range : spare) sum += range.bytes;
  if (sum < 2 * arena_.chunk() || sum < live_peak_units_ * kUnitBytes / 200) spare.clear();
  return spare;
}

// Whether the device has room for the plan and for the blocks that stay outside it, as far as is known: a device that has
// refused memory has no more than it gave.
bool Engine::Impl::PlanFits(const Script& script) {
  Lock lock(mutex_);
  if (device_gave_ == 0) return true;
  const uint64_t chunk = arena_.chunk(), count = history_.Count();
  uint64_t kept = 0;
  DeviceAddress counted_to = 0;  // chunks below are counted
  for (const auto& [address, block] : dynamic_) {
    const bool stays = block.ordinal == kUnmonitored || count - block.ordinal > script.profile.period;
    if (!stays || !InReservation(address)) continue;
    const DeviceAddress from = std::max(counted_to, address & ~(chunk - 1));
    const DeviceAddress to = (address + block.bytes + chunk - 1) & ~(chunk - 1);
    if (to > from) kept += to - from;
    counted_to = std::max(counted_to, to);
  }
  const uint64_t height = (script.height_bytes + chunk - 1) & ~(chunk - 1);
  return spill_.AdmitsPlan(lock, height, kept, std::max(device_gave_, arena_.held()));  // it may have more by now
}

// --- iterations ------------------------------------------------------------------------------------------------------

void Engine::Impl::EndIteration(Lock& lock) {
  if (on_trial_) EndTrial();
  if (!current_) return;  // it did not pass
  iterations_ += uint64_t{follower_.TakeEnded()} * current_->profile.unroll;
  iterations_from_ = history_.Count();
  NoteBoundary();
  retained_ = dynamic_.size();
  const bool displaced = displaced_ != displaced_at_end_;
  Variant* variant = variants_.Find(script_number_);
  if (variant != nullptr) variant->NotePass(!displaced);
  const bool may_refine = !pending_ && !planner_.Busy() && (variant == nullptr || variant->MayRefine());
  bool posted = false;
  // A block that stays lies where the script wants to serve: the same plan, but elsewhere. (Where chunks are few, one more
  // is dearer than that.)
  if (displaced && may_refine && arena_.reserved() >= 16 * arena_.chunk() && !fresh_zone_ && SomethingOverstays()) {
    PlanJob job;
    job.profile = follower_.LearnedProfile();
    job.replace = true;
    posted = fresh_zone_ = Post(std::move(job), script_number_);
  }
  // Displaced although nobody left the script: perhaps we are a period off.
  if (displaced && follower_.active() && !follower_.lost() && follower_.cursor() == 0) {
    if (uint32_t phase = BestPhase(*current_); phase != 0) follower_.SkipTo(phase);
  }
  displaced_at_end_ = displaced_;
  // The next iteration has another plan: a better one, or what a marked iteration came to.
  bool improving = (pending_ && pending_refines_ == script_number_) || (marks_ > 0 && (pending_ || planner_.Busy()));
  // Reoptimisation (Sekiyama 2018, §4.3), in the background: larger sizes, longer lives.
  if (follower_.learned() && may_refine && !posted && !Outlived()) {
    PlanJob job;
    job.profile = follower_.LearnedProfile();
    job.walls = current_->walls;
    posted = improving = Post(std::move(job), script_number_);
  }
  // Displaced by what other scripts have left in the zone: planned around that.
  if (displaced && may_refine && !posted && variants_.size() > 1) {
    PlanJob job;
    job.walls = FindWalls();
    if (!job.walls.empty() && job.walls != current_->walls) {
      job.profile = follower_.LearnedProfile();
      job.replace = true;
      posted = improving = Post(std::move(job), script_number_);
    }
  }
  if (posted && variant != nullptr) variant->NoteRefine();
  if (Divergences() != divergences_at_end_) diverged_until_ = history_.Count();
  divergences_at_end_ = Divergences();
  // With nothing left to be given back; where there are several scripts, once a change of them is over.
  const bool may_begin = !steady_ && !improving && (!displaced || switches_ == 0);
  if (!settled_ || (grew_ && !grew_now_) || may_begin) Housekeep(lock);
  grew_now_ = false;
  arena_.NewEpoch();
  if (settled_ && may_begin) BeginSteady();
  if (steady_ && follower_.active()) spill_.EndUse(lock, arena_.held());
  if (options_.sink != nullptr) MaybeSave();
  FollowPredicted();
  FlushStats();
}

// The requests from here on are another iteration's.
void Engine::Impl::NoteBoundary() {
  boundary_before_ = boundary_;
  boundary_ = history_.Count() - std::min<uint64_t>(history_.Count(), follower_.cursor());
  if (variants_.size() < 2) return;
  variants_.NoteIteration(script_number_, phase_);
  ended_at_ = boundary_;
  phase_ = 0;
}

// The blocks of other scripts that have been in the zone for all of the iteration that ended.
std::vector<ZonePlace> Engine::Impl::FindWalls() const {
  std::vector<ZonePlace> walls;
  const uint32_t zone = OffsetOf(zone_.begin);
  for (const Follower::Range& range : follower_.LiveRanges()) {
    if (range.entry != kNone || !InZone({AddressOf(range.begin), 0})) continue;
    auto it = dynamic_.find(AddressOf(range.begin));
    if (it == dynamic_.end() || it->second.ordinal == kUnmonitored || it->second.ordinal >= boundary_before_) continue;
    const uint32_t begin = range.begin - zone, units = range.end - range.begin;
    if (!walls.empty() && walls.back().offset + walls.back().units == begin) {
      walls.back().units += units;
    } else {
      walls.push_back({begin, units});
    }
  }
  return walls;
}

// Whether a block that is not the script's has been at one of its places for longer than the whole cycle.
bool Engine::Impl::SomethingOverstays() const {
  uint64_t count = history_.Count(), longest = std::max(current_->size(), variants_.LongestRequests());
  return std::any_of(dynamic_.begin(), dynamic_.end(), [&](const auto& entry) {
    const DynamicBlock& block = entry.second;
    return block.foreign && (block.ordinal == kUnmonitored || count - block.ordinal > longest);
  });
}

void Engine::Impl::BeginSteady() {
  steady_ = true;
  steady_iteration_ = static_cast<int64_t>(iterations_);
  requests_before_ = Requests();
  planned_before_ = planned_;
  calls_before_ = arena_.driver_calls();
  passed_before_ = passed_through_;
  steady_began_now_ = true;
  reserved_steady_ = arena_.held();
}

}  // namespace hotpack
