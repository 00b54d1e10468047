// Giving memory back to the device while the job goes on: on request, when somebody else runs out of it, and when a
// script has waited for long.
#include <algorithm>

#include "runtime/engine_impl.h"
#include "runtime/engine_page_scope.h"

namespace hotpack {

// Two steps, so that what a failing call leaves over is always in the pool or where it was: free chunks' pages go to
// the pool (the device is waited for first), then the pool to the device.
uint64_t Engine::Impl::GiveBack(Lock& lock, uint64_t wanted) {
  PageScope scope(this, lock);
  const uint64_t before = arena_.held();
  const uint64_t more = wanted - std::min(wanted, arena_.pooled());
  uint64_t chunks = more / arena_.chunk() + (more % arena_.chunk() != 0 ? 1 : 0);
  PageWork work;
  if (chunks > 0) arena_.BeginClear(&work, chunks);
  chunks -= Chunks(work.take);
  TakeFromZone(EmptyInZone(chunks), &work);
  if (!work.take.empty() || !work.take_zone.empty()) scope.Run(&work);
  PageWork rest;
  if (arena_.BeginRelease(&rest)) scope.Run(&rest);
  return before - std::min(before, arena_.held());
}

uint64_t Engine::Impl::Trim(uint64_t wanted) {
  if (abandoned() || memory_->Fixed() || wanted == 0) return 0;
  Lock lock(mutex_);
  if (base_ == 0) return 0;
  return GiveBack(lock, wanted);
}

// A parked script's pages serve the requests that come instead, and an interrupted one's wait for its turn. What was
// not touched in so many requests that are not served by script is more use to others: one trim in as many, so never
// more than a small part of what these requests cost anyway.
void Engine::Impl::MaybeTrimIdle(Lock& lock) {
  constexpr uint64_t kLong = 1 << 14;  // requests
  const bool waiting = interrupts_ > 0 || (script_number_ > 0 && !follower_.active());
  if (!waiting) {
    idle_requests_ = 0;
    return;
  }
  if (idle_requests_++ == 0) arena_.NewEpoch();
  const uint64_t patience = std::max<uint64_t>(kLong, current_ ? 4 * uint64_t{current_->size()} : 0);
  if (idle_requests_ < patience || memory_->Fixed()) return;
  idle_requests_ = 0;
  PageScope scope(this, lock);
  PageWork zone;
  TakeFromZone(EmptyInZone(UINT64_MAX), &zone);
  if (!zone.take_zone.empty()) scope.Run(&zone);
  PageWork old;
  if (arena_.BeginTrim(&old)) scope.Run(&old);
}

}  // namespace hotpack
