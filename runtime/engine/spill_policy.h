// When blocks may lie in managed memory (managed_spill.h), and when that ends: while no plan is in force, what the
// device has no room for lies there; a plan that fits the device ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "runtime/base/adaptive_mutex.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/managed_spill.h"

namespace hotpack {

// The engine's lock, held. A function that takes one may let go of it meanwhile, and holds it again on return.
using EngineLock = std::unique_lock<AdaptiveMutex>;

// All functions but Owns need the engine's lock. The ones that take it make driver calls without it.
class SpillPolicy {
 public:
  using Log = void (*)(const char* line);  // for the user, a line without its end; called without the lock; null: none

  // `limit`: bytes of managed memory at most; 0: none is ever used. `memory` outlives this.
  SpillPolicy(DeviceMemory* memory, uint64_t limit, Log log) : memory_(memory), log_(log), spill_(limit) {}

  bool enabled() const { return spill_.limit() != 0; }
  bool Owns(DeviceAddress address) const { return spill_.Owns(address); }  // lock-free
  uint64_t peak_bytes() const { return spill_.peak(); }                    // of blocks in managed memory

  // A place for `bytes` (a multiple of 512) while `may` holds, which is asked again whenever the lock was let go of.
  // False: there is none.
  bool Allocate(EngineLock& lock, uint64_t bytes, const std::function<bool()>& may, DeviceAddress* address);
  void Free(DeviceAddress address, uint64_t bytes) { spill_.Free(address, bytes); }

  // The plan is in force, in `held` bytes of device memory: segments without blocks are given back. The first time the
  // user hears of it.
  void EndUse(EngineLock& lock, uint64_t held);

  // The device gives `gives` bytes, and the plan needs `height` in addition to `kept` bytes of blocks that stay. True:
  // it is to be taken up, because it fits, or because without managed memory it is followed as far as there are pages.
  // Says how much is missing, whenever that is another amount.
  bool AdmitsPlan(EngineLock& lock, uint64_t height, uint64_t kept, uint64_t gives);

 private:
  bool GiveBack(EngineLock& lock);
  void LogUnlocked(EngineLock& lock, const char* line) const;
  void LogFirstUse(MemoryStatus status) const;

  DeviceMemory* const memory_;
  const Log log_;
  ManagedSpill spill_;
  uint64_t shortfall_logged_ = 0;
  enum class State : uint8_t { kUnused, kActive, kOver } state_ = State::kUnused;
};

}  // namespace hotpack
