// An engine that has seen a training step often enough to serve it by script, and the step to go on with.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/training_sequence.h"
#include "bench/unbacked_device_memory.h"
#include "runtime/engine.h"

namespace hotpack::bench {

class ServingJob {
 public:
  explicit ServingJob(int layers) : sequence_(MakeTrainingSequence(layers)), addresses_(sequence_.slots) {}

  // Plays steps until the engine serves by script. False if it does not within a generous number of steps.
  bool WarmUp();
  // Plays one step; the calls are all that it does. False at the first call that fails.
  bool PlayStep();
  int64_t PairsPerStep() const { return sequence_.slots; }
  // True if every request since the first steady iteration was served by script.
  bool AllPlanned();

 private:
  Sequence sequence_;
  std::vector<DeviceAddress> addresses_;
  UnbackedDeviceMemory memory_;
  Engine engine_{&memory_, {}};
};

}  // namespace hotpack::bench
