// What several threads do with one device's arena: each replaces blocks of its own, over and over.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>

#include "bench/unbacked_device_memory.h"
#include "runtime/engine/engine.h"

namespace hotpack::bench {

class ThreadJob {
 public:
  // script: every request is for the same size, so whichever thread is next, its request is the one expected. Else
  // sizes are drawn, so nothing repeats and all is best fit. held: blocks that a thread has at a time.
  ThreadJob(bool script, size_t held) : script_(script), held_(held) {}

  // Lets the engine see a steady step: as many blocks live as all threads together hold, each released in order.
  void WarmUp(size_t threads);

  // Releases the block there, if any, and asks for another. Thread-safe.
  void Replace(DeviceAddress* address, std::mt19937_64* random) {
    if (*address != 0 && engine_.Release(*address, 0) != EngineStatus::kOk) failed_ = true;
    if (engine_.Allocate(Bytes(random), 0, address) != EngineStatus::kOk) failed_ = true;
  }

  Engine& engine() { return engine_; }
  size_t held() const { return held_; }
  bool failed() const { return failed_; }  // a call, at some time

 private:
  uint64_t Bytes(std::mt19937_64* random) const { return script_ ? 100'000 : 512 + (*random)() % 1'000'000; }

  const bool script_;
  const size_t held_;
  UnbackedDeviceMemory memory_;
  Engine engine_{&memory_, {}};
  std::atomic<bool> failed_{false};
};

}  // namespace hotpack::bench
