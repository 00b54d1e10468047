// The engine's queries: blocks, memory, figures, and the plan for a later run.
#include <algorithm>

#include "runtime/engine/engine_impl.h"

namespace hotpack {

// A block's number is its request's ordinal. Requests that are not monitored get numbers above all ordinals.
bool Engine::Impl::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id) {
  if (!Owns(address) || abandoned()) return false;
  if (guards_) {
    if (id != nullptr) *id = 0;
    return guards_->Find(address, base, bytes);
  }
  EngineLock lock(mutex_);
  if (abandoned()) return false;
  Follower& follower = scripts_.follower();
  const bool in_zone = follower.active() && pages_.InReservation(address);
  auto planned = [&](uint32_t entry) {
    *base = pages_.AddressOf(follower.Offset(entry));
    *bytes = follower.Units(entry) * kBlockUnit;
    if (id != nullptr) *id = follower.Ordinal(entry);
    return true;
  };
  if (in_zone && address % kBlockUnit == 0) {
    if (uint32_t entry = follower.LiveAt(pages_.OffsetOf(address)); entry != kNone) return planned(entry);
  }
  if (const DynamicBlock* block = blocks_.FindContaining(address, base)) {
    *bytes = block->units * kBlockUnit;
    if (id != nullptr) *id = block->trace_id;
    return true;
  }
  if (!in_zone) return false;
  const uint32_t offset = pages_.OffsetOf(address);
  for (const Follower::Range& range : follower.LiveRanges()) {
    if (range.entry != kNone && offset >= range.begin && offset < range.end) return planned(range.entry);
  }
  return false;
}

void Engine::Impl::ListPieces(DeviceAddress address, uint64_t bytes, std::vector<MappedExtent>* pieces) {
  pieces->clear();
  if (memory_->Fixed() || abandoned()) return;
  EngineLock lock(mutex_);
  if (abandoned() || !pages_.InReservation(address) || !pages_.arena().Mapped(address, bytes)) return;
  for (DeviceAddress at = address; at < address + bytes;) {
    const AddressRange extent = pages_.arena().ExtentAt(at);
    pieces->push_back({extent.begin, {pages_.arena().HandleAt(at), extent.bytes}});
    at = extent.begin + extent.bytes;
  }
}

EngineUsage Engine::Impl::Usage() {
  EngineUsage usage;
  if (abandoned()) return usage;
  EngineLock lock(mutex_);
  usage.passed_through = stats_.passed_through();
  if (pages_.base() == 0) return usage;
  usage.held = pages_.arena().held();
  usage.held_peak = pages_.held_peak();
  // A request counts as live before it has its pages.
  usage.live = std::min(blocks_.live_units() * kBlockUnit, usage.held);
  usage.outside_plan = std::min(blocks_.Units() * kBlockUnit, usage.live);
  usage.plan = envelope_.active() ? envelope_.PlanBytes() : scripts_.PlanBytes();
  usage.followed = scripts_.follower().active() || envelope_.active();
  usage.may_shrink = !memory_->Fixed();
  usage.returnable = usage.may_shrink ? std::min(usage.Idle(), pages_.Returnable()) : usage.Idle();
  usage.lost = usage.followed && scripts_.follower().lost();
  usage.divergences = scripts_.Divergences();
  return usage;
}

void Engine::Impl::ResetPeak() {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  pages_.ResetPeak();
}

void Engine::Impl::List(std::vector<Extent>* blocks, std::vector<Extent>* mapped) {
  if (abandoned()) return;
  EngineLock lock(mutex_);
  if (pages_.base() == 0) return;
  blocks_.ForEach([blocks](DeviceAddress address, const DynamicBlock& block) {
    blocks->push_back({address, block.units * kBlockUnit, block.envelope_entry != kNone});
  });
  const Follower& follower = scripts_.follower();
  if (follower.active()) {
    for (const Follower::Range& range : follower.LiveRanges()) {
      if (range.entry == kNone) continue;  // a displaced or foreign block: listed above
      blocks->push_back(
          {pages_.AddressOf(follower.Offset(range.entry)), follower.Units(range.entry) * kBlockUnit, true});
    }
  }
  std::sort(blocks->begin(), blocks->end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  pages_.arena().ForEachMapped([&](const AddressRange& run) { mapped->push_back({run.begin, run.bytes, false}); });
}

// --- figures ---------------------------------------------------------------------------------------------------------

// Publishes the figures where readers find them, possibly another process after this one has died.
void Engine::Impl::FlushStats() {
  hotpack_stats stats{};
  stats_.AddTo(&stats, pages_.arena().driver_calls());
  pages_.AddTo(&stats, stats_.steady());
  scripts_.AddTo(&stats);
  envelope_.AddTo(&stats);
  scheduler_.AddTo(&stats);
  stats.no_plan_reason = WhyNoPlan();
  // As requested by the program.
  stats.live_peak = guards_ ? guards_->live_peak() : blocks_.live_peak_units() * kBlockUnit;
  stats.managed_peak = spill_.peak_bytes();
  caller_figures_.AddTo(&stats);
  stats_.Publish(stats);
  if (options_.current == nullptr) return;
  const uint64_t held = pages_.arena().held();  // a request counts as live before it has its pages
  *options_.current = {held, std::min(blocks_.live_units() * kBlockUnit, held),
                       pages_.arena().driver_calls() + stats.passed_through};
}

hotpack_no_plan_reason Engine::Impl::WhyNoPlan() const {
  if (stats_.planned() > 0) return HOTPACK_NO_PLAN_NONE;
  if (state_ == EngineState::kDisabled) return HOTPACK_NO_PLAN_GIVEN_UP;
  return comparison_.leaves() ? HOTPACK_NO_PLAN_DRIVER_FASTER : scheduler_.WhyNoPlan();
}

hotpack_stats Engine::Impl::Stats() {
  EngineLock lock(mutex_, std::defer_lock);
  if (!abandoned()) {
    lock.lock();
    FlushStats();
  }
  return stats_.published();
}

// --- the plan for a later run ----------------------------------------------------------------------------------------

// At the end of an iteration: if some scripts are not saved yet and the job is steady, saves all on the worker's
// thread.
void Engine::Impl::MaybeSave() {
  if (options_.sink == nullptr || !stats_.steady() || warm_.on_trial() || scheduler_.Busy()) return;
  if (!saver_.Due(scripts_.variants().newest(), stats_.iterations())) return;
  if (scheduler_.PostSave()) saver_.NotePosted(stats_.iterations());
}

std::shared_ptr<const SavedPlan> Engine::Impl::PlanToSave(int64_t pack_limit_ns) {
  if (abandoned()) return nullptr;
  RunToSave run;
  {
    EngineLock lock(mutex_);
    if (warm_.on_trial()) return nullptr;
    run = {scripts_.ScriptsByUse(), warm_.anchor(),        blocks_.live_peak_units() * kBlockUnit,
           pages_.arena().chunk(),  memory_->TotalBytes(), options_.large_alignment};
  }
  return saver_.Make(std::move(run), history_, pack_limit_ns);
}

// Packing again, where needed, takes at most three times `pack_limit_ns`.
void Engine::Impl::Save(int64_t pack_limit_ns) try {
  if (options_.sink == nullptr) return;
  uint64_t newest = 0;
  {
    EngineLock lock(mutex_);
    newest = scripts_.variants().newest();
    if (scripts_.variants().size() > 0 ? saver_.IsSaved(newest) : !scripts_.pending()) return;
  }
  std::shared_ptr<const SavedPlan> plan = PlanToSave(pack_limit_ns);
  if (!plan) return;
  options_.sink->Save(*plan);
  EngineLock lock(mutex_);
  saver_.SetSaved(std::max(saver_.saved_newest(), newest));
} catch (...) {  // the host is out of memory: the plan saved before stays
}

}  // namespace hotpack
