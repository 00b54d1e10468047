// The work of several threads on one device's arena: each replaces its own blocks repeatedly.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>

#include "bench/unbacked_device_memory.h"
#include "runtime/engine/engine.h"

namespace hotpack::bench {

class ThreadJob {
 public:
  // `script`: all requests have the same size, so any thread's request is the expected one. Otherwise sizes are random,
  // so nothing repeats and best fit serves all. `held`: blocks that a thread holds at a time.
  ThreadJob(bool script, size_t held) : script_(script), held_(held) {}

  // Plays a steady step: as many live blocks as all threads together hold, released in order.
  void WarmUp(size_t threads);

  // Releases the block at `*address`, if any, and allocates another. Thread-safe.
  void Replace(DeviceAddress* address, std::mt19937_64* random) {
    if (*address != 0 && engine_.Release(*address, 0) != EngineStatus::kOk) failed_ = true;
    if (engine_.Allocate(Bytes(random), 0, address) != EngineStatus::kOk) failed_ = true;
  }

  Engine& engine() { return engine_; }
  size_t held() const { return held_; }
  bool failed() const { return failed_; }  // whether any call failed

 private:
  uint64_t Bytes(std::mt19937_64* random) const { return script_ ? 100'000 : 512 + (*random)() % 1'000'000; }

  const bool script_;
  const size_t held_;
  UnbackedDeviceMemory memory_;
  Engine engine_{&memory_, {}};
  std::atomic<bool> failed_{false};
};

}  // namespace hotpack::bench
