// One iteration's requests, which request_bench plays repeatedly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/event.h"

namespace hotpack::bench {

// One call: an allocation of `bytes` into `slot`, or (bytes == 0) the release of the block in `slot`.
struct RequestCall {
  uint32_t slot = 0;
  uint64_t bytes = 0;
};

// An iteration that can be repeated without end. A block released in a later iteration than its request needs a slot
// for each iteration that it lives through. So the iteration has several forms, which are played in turn and differ in
// their slots alone. When the first forms are played for the first time, a released slot may be empty.
struct RequestSequence {
  std::vector<std::vector<RequestCall>> forms;
  uint32_t slots = 0;
  uint64_t pairs = 0;  // allocations an iteration; as many releases
  // Blocks among them whose release is not in the recording. They are released at the iteration's end.
  uint64_t held_to_end = 0;
  uint64_t live_peak = 0;  // bytes, each block rounded up to 512
};

// Returns the steady step of a recording (tools/replay/replay_steps.h), or the whole recording if it has none. All
// calls are for one stream. Error: the recording has no request.
absl::StatusOr<RequestSequence> SequenceOf(const Trace& trace);

// Returns a training step of 64 layers, 256 requests (training_sequence.h).
RequestSequence BuiltInSequence();

// Returns an iteration of `blocks` requests (MakeIteration, nested lives).
RequestSequence GeneratedSequence(uint32_t blocks);

}  // namespace hotpack::bench
