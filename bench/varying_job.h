// A job whose iterations differ, on an engine that serves it by an envelope.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/training_sequence.h"
#include "bench/unbacked_device_memory.h"
#include "profiler/event.h"
#include "runtime/engine/engine.h"

namespace hotpack::bench {

// Iterations in turn; a slot may stay in use from one to the next.
struct VaryingSequence {
  std::vector<std::vector<Call>> steps;
  uint32_t slots = 0;
};

// Returns `steps` training steps of a network with `layers` layers, as MakeTrainingSequence has them, each with another
// length of its sequences, and every fourth with an evaluation. All are drawn from one seed. O(steps · layers).
VaryingSequence MakeVaryingSteps(int layers, int steps);
// Returns the iterations of a recording: what lies between its marks.
VaryingSequence StepsOf(const Trace& trace);

class VaryingJob {
 public:
  explicit VaryingJob(VaryingSequence sequence);

  // Plays the first `steps` steps, with marks between them. Returns false at the first call that fails, or if no
  // envelope is followed then.
  bool WarmUp(size_t steps);
  // Plays the steps that follow, until there have been `pairs` requests or there are no more steps. Returns their
  // number. A call that fails ends it.
  uint64_t Play(uint64_t pairs);
  // Of the requests since WarmUp, those that got a planned place, of 100.
  double Planned();

 private:
  bool PlayStep(uint64_t most);

  const VaryingSequence sequence_;
  std::vector<DeviceAddress> addresses_;
  size_t next_ = 0;        // step
  uint64_t requests_ = 0;  // since WarmUp
  uint64_t planned_before_ = 0;
  UnbackedDeviceMemory memory_;
  Engine engine_;
};

}  // namespace hotpack::bench
