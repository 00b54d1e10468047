// The engine in debug mode (guards.h). The mode costs nothing when off. When on, the first check of a request
// (`attention_`, never cleared) and of a release (the arena's range, not published) fail, and both come here.
#include "runtime/engine/engine_impl.h"

namespace hotpack {

// Returns where the program's `bytes` begin in the engine's block at `outer`.
DeviceAddress Engine::Impl::GiveGuarded(DeviceAddress outer, uint64_t bytes) {
  return guards_->Given(outer, bytes, NameRequest(outer));
}

EngineStatus Engine::Impl::ReleaseGuarded(DeviceAddress address, uint32_t stream, const ReuseAfter* after) {
  DeviceAddress outer = 0;
  if (!guards_->Returned(address, &outer)) return EngineStatus::kInvalidValue;
  mutex_.lock();
  return ReleaseNext(outer, stream, after);
}

// Identifies the request whose block lies at `outer`.
GuardedRequest Engine::Impl::NameRequest(DeviceAddress outer) {
  GuardedRequest name;
  EngineLock lock(mutex_);
  Follower& follower = scripts_.follower();
  uint32_t entry = follower.active() && pages_.InReservation(outer) ? follower.LiveAt(pages_.OffsetOf(outer)) : kNone;
  if (entry != kNone) {
    name.ordinal = follower.Ordinal(entry);
  } else {
    const DynamicBlock* block = blocks_.Find(outer);
    name.ordinal = block != nullptr ? block->ordinal : kUnmonitored;
    if (block != nullptr && follower.active() && block->follow_epoch == scripts_.epoch()) entry = block->entry;
  }
  name.has_iteration = entry != kNone;
  if (name.has_iteration) name.in_iteration = entry % follower.script().profile.period;
  return name;
}

}  // namespace hotpack
