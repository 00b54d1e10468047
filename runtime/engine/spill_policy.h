// Decides when blocks may lie in managed memory (managed_spill.h). While no plan is in force, blocks that do not fit
// the device may lie there. A plan that fits the device ends that.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "runtime/base/adaptive_mutex.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/managed_spill.h"

namespace hotpack {

// The engine's lock, held. A function that takes one may release it meanwhile, and holds it again on return.
using EngineLock = std::unique_lock<AdaptiveMutex>;

// All functions except Owns need the engine's lock. Those that take an EngineLock make driver calls without it.
class SpillPolicy {
 public:
  // For the user, one line without its end; called without the lock; null: no lines.
  using Log = void (*)(const char* line);

  // `limit`: maximum bytes of managed memory; 0: none is ever used. `memory` must outlive this object.
  SpillPolicy(DeviceMemory* memory, uint64_t limit, Log log) : memory_(memory), log_(log), spill_(limit) {}

  bool enabled() const { return spill_.limit() != 0; }
  bool Owns(DeviceAddress address) const { return spill_.Owns(address); }  // lock-free
  uint64_t peak_bytes() const { return spill_.peak(); }                    // of blocks in managed memory

  // Finds a place for `bytes` (a multiple of 512) while `may` holds. Calls `may` again each time the lock was released.
  // Waits for other threads that add or give back managed memory. Returns false if there is no place.
  bool Allocate(EngineLock& lock, uint64_t bytes, const std::function<bool()>& may, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes) { spill_.Free(address, bytes); }

  // The plan is in force, in `held` bytes of device memory: gives back segments without blocks, unless another thread
  // changes segments now. Logs that the first time.
  void EndUse(EngineLock& lock, uint64_t held);

  // Returns whether the plan should be followed. It needs `height` in addition to `kept` bytes of blocks that stay, and
  // the device provides `gives` bytes. True if it fits. True also without managed memory: then it is followed as far as
  // there are pages. Logs the missing amount whenever that has changed.
  bool AdmitsPlan(EngineLock& lock, uint64_t height, uint64_t kept, uint64_t gives);

 private:
  bool GiveBack(EngineLock& lock);
  void LogUnlocked(EngineLock& lock, const char* line) const;
  void LogFirstUse(MemoryStatus status) const;

  DeviceMemory* const memory_;
  const Log log_;
  ManagedSpill spill_;
  // Held while segments are added or given back, through the driver calls, too. Taken without the engine's lock.
  std::mutex changes_;
  uint64_t shortfall_logged_ = 0;
  enum class State : uint8_t { kUnused, kActive, kOver } state_ = State::kUnused;
};

}  // namespace hotpack
