// An engine that has seen a training step often enough to serve it by script, and the step to go on with.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/training_sequence.h"
#include "bench/unbacked_device_memory.h"
#include "runtime/engine/engine.h"

namespace hotpack::bench {

class ServingJob {
 public:
  explicit ServingJob(int layers, const EngineOptions& options = {})
      : sequence_(MakeTrainingSequence(layers)), addresses_(sequence_.slots), engine_(&memory_, options) {}

  // Plays steps until the engine serves by script. False if it does not within a generous number of steps.
  bool WarmUp();
  // Plays one step; the calls are all that it does. False at the first call that fails.
  bool PlayStep();
  // The same with so many streams: each block is asked for and released on one of them, in turn, and each release
  // leaves its point. Adds to *waits what a request had to come after on another stream.
  bool PlayStepOnStreams(uint32_t streams, uint64_t* waits);
  // The same as PlayStep, but before every `every`-th request one more block of a drawn size is asked for and released.
  bool PlayStepWithOthers(uint64_t every);
  int64_t PairsPerStep() const { return sequence_.slots; }
  // True if every request since the first steady iteration was served by script.
  bool AllPlanned();
  hotpack_stats Stats() { return engine_.Stats(); }

 private:
  Sequence sequence_;
  std::vector<DeviceAddress> addresses_;
  uint64_t tick_ = 0;
  uint64_t random_ = 1;
  uint64_t until_other_ = 0;
  UnbackedDeviceMemory memory_;
  Engine engine_;
};

}  // namespace hotpack::bench
