// An engine that has observed a training step until it serves the step by script, and that step.
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

  // Plays steps until the engine serves by script. Returns false if it does not within a generous number of steps.
  bool WarmUp();
  // Plays one step, and only its calls. Returns false at the first call that fails.
  bool PlayStep();
  // Plays one step with several streams. Blocks are allocated and released on the streams in turn, and each release
  // leaves its point. Adds to *waits the number of points of other streams that a request had to wait for.
  bool PlayStepOnStreams(uint32_t streams, uint64_t* waits);
  // Plays one step with additional requests: before every `every`-th one a block of a random size is allocated and
  // released.
  bool PlayStepWithOthers(uint64_t every);
  int64_t PairsPerStep() const { return sequence_.slots; }
  // Returns whether every request since the first steady iteration was served by script.
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
