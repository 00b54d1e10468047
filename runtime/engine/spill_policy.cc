#include "runtime/engine/spill_policy.h"

#include <cstdio>

namespace hotpack {
namespace {

unsigned long long Mebibytes(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

bool SpillPolicy::Allocate(EngineLock& lock, uint64_t bytes, const std::function<bool()>& may, DeviceAddress* address) {
  if (!enabled() || !may()) return false;
  if (spill_.TryAllocate(bytes, address)) return true;
  // One thread changes segments at a time. The segment that another one adds now may be enough for both, and what it
  // gives back counts until it is gone.
  lock.unlock();
  std::lock_guard changes(changes_);
  lock.lock();
  while (may()) {
    if (spill_.TryAllocate(bytes, address)) return true;
    DeviceAddress base = 0;
    const uint64_t segment = spill_.BeginGrowth(bytes);
    if (segment == 0) {
      if (!GiveBack(lock)) break;
      continue;
    }
    const bool first = state_ == State::kUnused;
    if (first) state_ = State::kActive;
    lock.unlock();
    const MemoryStatus status = memory_->AllocateManaged(segment, &base);
    if (first) LogFirstUse(status);
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
  return false;
}

// Gives a segment without blocks back. Returns false if there is none, or if the device cannot be waited for now. The
// caller holds changes_.
bool SpillPolicy::GiveBack(EngineLock& lock) {
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

void SpillPolicy::EndUse(EngineLock& lock, uint64_t held) {
  if (spill_.peak() == 0) return;
  if (state_ != State::kOver) {
    state_ = State::kOver;
    char line[256];
    snprintf(line, sizeof(line),
             "the plan is in force, in device memory: %llu MiB held; managed memory is not used any more (%llu MiB of "
             "blocks that stay are there until they are released)",
             Mebibytes(held), Mebibytes(spill_.used()));
    LogUnlocked(lock, line);
  }
  std::unique_lock changes(changes_, std::try_to_lock);
  while (changes.owns_lock() && GiveBack(lock)) {
  }
}

bool SpillPolicy::AdmitsPlan(EngineLock& lock, uint64_t height, uint64_t kept, uint64_t gives) {
  if (height + kept <= gives) return true;
  const uint64_t missing = height + kept - gives;
  if (missing == shortfall_logged_) return !enabled();
  shortfall_logged_ = missing;
  char line[320];
  snprintf(line, sizeof(line),
           "the plan does not fit: %llu MiB for it and %llu MiB for blocks that stay, but the device gave %llu MiB (of "
           "%llu): %llu MiB too few; what there is no room for %s",
           Mebibytes(height), Mebibytes(kept), Mebibytes(gives), Mebibytes(memory_->TotalBytes()), Mebibytes(missing),
           enabled() ? "stays in managed memory" : "is out of memory");
  LogUnlocked(lock, line);
  return !enabled();
}

// Logs the first request for managed memory. Runs without the lock.
void SpillPolicy::LogFirstUse(MemoryStatus status) const {
  char line[256];
  if (status == MemoryStatus::kOk) {
    snprintf(
        line, sizeof(line),
        "the device is full: until a plan is in force, blocks that it has no room for lie in managed memory (at most "
        "%llu MiB), which is slower",
        Mebibytes(spill_.limit()));
  } else {
    snprintf(line, sizeof(line), "the device is full, and managed memory is not available: %s",
             status == MemoryStatus::kNotSupported ? "the device cannot fault pages in" : "the driver refused it");
  }
  if (log_ != nullptr) log_(line);
}

void SpillPolicy::LogUnlocked(EngineLock& lock, const char* line) const {
  if (log_ == nullptr) return;
  lock.unlock();
  log_(line);
  lock.lock();
}

}  // namespace hotpack
