// The engine's use of managed memory (managed_spill.h): while there is no plan in force, what the device has no room for
// lies there; a plan that fits the device ends it.
#include <algorithm>
#include <cstdio>

#include "runtime/engine_impl.h"

namespace hotpack {
namespace {

unsigned long long Mebibytes(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

bool Engine::Impl::MaySpill() const { return spill_.limit() != 0 && !(follower_.active() && steady_); }

// The arena has no memory for a block of `bytes`: a place in managed memory.
EngineStatus Engine::Impl::Spill(Lock& lock, uint64_t bytes, DeviceAddress* address) {
  while (MaySpill()) {
    if (spill_.TryAllocate(bytes, address)) return EngineStatus::kOk;
    DeviceAddress base = 0;
    const uint64_t segment = spill_.BeginGrowth(bytes);
    if (segment == 0) {
      if (!GiveBackSpill(lock)) break;
      continue;
    }
    const bool first = !spill_said_;
    spill_said_ = true;
    lock.unlock();
    const MemoryStatus status = memory_->AllocateManaged(segment, &base);
    if (first) SaySpill(status);
    lock.lock();
    if (status != MemoryStatus::kOk) base = 0;
    if (!spill_.FinishGrowth(segment, base)) {
      lock.unlock();
      memory_->FreeManaged(base);
      lock.lock();
      break;
    }
    if (base == 0) break;
  }
  return EngineStatus::kOutOfMemory;
}

// Gives a segment without blocks back. False: there is none, or the device cannot be waited for now.
bool Engine::Impl::GiveBackSpill(Lock& lock) {
  DeviceAddress base = 0;
  uint64_t segment = 0;
  if (!spill_.TakeEmpty(&base, &segment)) return false;
  lock.unlock();
  const bool idle = memory_->Synchronize();  // work that used its last blocks may be running
  if (idle) memory_->FreeManaged(base);
  lock.lock();
  if (!idle) spill_.PutBack(base, segment);
  return idle;
}

// An iteration has ended. Once a plan is in force the segments go as their last blocks do.
void Engine::Impl::TrimSpill(Lock& lock) {
  if (!steady_ || !follower_.active() || spill_.peak() == 0) return;
  if (!spill_over_said_) {
    spill_over_said_ = true;
    char line[256];
    snprintf(line, sizeof(line),
             "the plan is in force, in device memory: %llu MiB held; managed memory is not used any more (%llu MiB of "
             "blocks that stay are there until they are released)",
             Mebibytes(arena_.held()), Mebibytes(spill_.used()));
    SayUnlocked(lock, line);
  }
  while (GiveBackSpill(lock)) {
  }
}

// Whether there is room on the device for the plan and for what stays beside it, as far as is known: a device that has
// refused memory has no more than it gave. If not, it says so. True: it is to be taken up.
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
  const uint64_t gives = std::max(device_gave_, arena_.held());  // it may have more by now than when it refused
  if (height + kept <= gives) return true;
  const uint64_t missing = height + kept - gives;
  const bool managed = spill_.limit() != 0;  // without, the plan is followed as far as there are pages
  if (missing == missing_said_) return !managed;
  missing_said_ = missing;
  char line[320];
  snprintf(line, sizeof(line),
           "the plan does not fit: %llu MiB for it and %llu MiB for blocks that stay, but the device gave %llu MiB (of "
           "%llu): %llu MiB too few; what there is no room for %s",
           Mebibytes(height), Mebibytes(kept), Mebibytes(gives), Mebibytes(memory_->TotalBytes()),
           Mebibytes(missing), managed ? "stays in managed memory" : "is out of memory");
  SayUnlocked(lock, line);
  return !managed;
}

// The first time that managed memory was asked for. Without the lock.
void Engine::Impl::SaySpill(MemoryStatus status) const {
  char line[256];
  if (status == MemoryStatus::kOk) {
    snprintf(line, sizeof(line),
             "the device is full: until a plan is in force, blocks that it has no room for lie in managed memory (at most "
             "%llu MiB), which is slower",
             Mebibytes(spill_.limit()));
  } else {
    snprintf(line, sizeof(line), "the device is full, and managed memory is not to be had: %s",
             status == MemoryStatus::kNotSupported ? "the device cannot fault pages in" : "the driver refused it");
  }
  if (options_.say != nullptr) options_.say(line);
}

void Engine::Impl::SayUnlocked(Lock& lock, const char* line) {
  if (options_.say == nullptr) return;
  lock.unlock();
  options_.say(line);
  lock.lock();
}

}  // namespace hotpack
