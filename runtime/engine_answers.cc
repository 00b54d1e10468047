// What the engine knows about its blocks and its memory, for those who ask.
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

bool Engine::Impl::Reservation(DeviceAddress* base, uint64_t* bytes) const {
  *base = owned_base_.load(std::memory_order_acquire);
  *bytes = owned_bytes_.load(std::memory_order_relaxed);
  return *base != 0;
}

// A block's number is its request's ordinal, or beyond these for requests that are not monitored.
bool Engine::Impl::FindBlock(DeviceAddress address, DeviceAddress* base, uint64_t* bytes, uint64_t* id) {
  if (!Owns(address) || abandoned()) return false;
  if (guards_) {
    if (id != nullptr) *id = 0;
    return guards_->Find(address, base, bytes);
  }
  Lock lock(mutex_);
  if (abandoned()) return false;
  const bool in_arena = InReservation(address);
  auto planned = [&](uint32_t entry) {
    *base = AddressOf(follower_.Offset(entry));
    *bytes = follower_.Units(entry) * kUnitBytes;
    if (id != nullptr) *id = follower_.Ordinal(entry);
    return true;
  };
  if (follower_.active() && in_arena && address % kUnitBytes == 0) {
    if (uint32_t entry = follower_.LiveAt(OffsetOf(address)); entry != kNone) return planned(entry);
  }
  auto it = dynamic_.upper_bound(address);
  if (it != dynamic_.begin() && address < std::prev(it)->first + std::prev(it)->second.bytes) {
    --it;
    *base = it->first;
    *bytes = it->second.units * kUnitBytes;
    if (id != nullptr) *id = it->second.trace_id;
    return true;
  }
  if (!follower_.active() || !in_arena) return false;
  const uint32_t offset = OffsetOf(address);
  for (const Follower::Range& range : follower_.LiveRanges()) {
    if (range.entry != kNone && offset >= range.begin && offset < range.end) return planned(range.entry);
  }
  return false;
}

EngineUsage Engine::Impl::Usage() {
  EngineUsage usage;
  if (abandoned()) return usage;
  Lock lock(mutex_);
  usage.passed_through = passed_through_;
  if (base_ == 0) return usage;
  usage.held = arena_.held();
  usage.held_peak = std::max(held_peak_, usage.held);
  // A request is counted live before it has its pages.
  usage.live = std::min(live_units_ * kUnitBytes, usage.held);
  for (const auto& [address, block] : dynamic_) usage.outside_plan += block.units * kUnitBytes;
  usage.outside_plan = std::min(usage.outside_plan, usage.live);
  usage.plan = plan_height_;
  usage.followed = follower_.active();
  usage.may_shrink = !memory_->Fixed();
  usage.lost = follower_.active() && follower_.lost();
  usage.divergences = Divergences();
  return usage;
}

void Engine::Impl::ResetPeak() {
  if (abandoned()) return;
  Lock lock(mutex_);
  held_peak_ = base_ != 0 ? arena_.held() : 0;
}

void Engine::Impl::List(std::vector<Extent>* blocks, std::vector<Extent>* mapped) {
  if (abandoned()) return;
  Lock lock(mutex_);
  if (base_ == 0) return;
  for (const auto& [address, block] : dynamic_) blocks->push_back({address, block.units * kUnitBytes, false});
  if (follower_.active()) {
    for (const Follower::Range& range : follower_.LiveRanges()) {
      if (range.entry == kNone) continue;  // a displaced or foreign block: listed above
      blocks->push_back({AddressOf(follower_.Offset(range.entry)), follower_.Units(range.entry) * kUnitBytes, true});
    }
  }
  std::sort(blocks->begin(), blocks->end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  arena_.ForEachMapped([&](const AddressRange& run) { mapped->push_back({run.begin, run.bytes, false}); });
}

}  // namespace hotpack
