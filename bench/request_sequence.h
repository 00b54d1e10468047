// One iteration's requests as request_bench plays them, over and over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/event.h"

namespace hotpack::bench {

// One call: an allocation of `bytes` into `slot`, or (bytes == 0) the release of what `slot` holds.
struct RequestCall {
  uint32_t slot = 0;
  uint64_t bytes = 0;
};

// An iteration that can be repeated without end. Blocks that are released in a later iteration than the one that asked
// for them need a slot for each iteration that they live through, so the iteration comes in as many forms, to be played
// in turn; they differ in their slots alone. When the first forms are played for the first time, a slot that is
// released may still be empty.
struct RequestSequence {
  std::vector<std::vector<RequestCall>> forms;
  uint32_t slots = 0;
  uint64_t pairs = 0;  // allocations an iteration; as many releases
  uint64_t held_to_end =
      0;  // of these, blocks whose release the recording does not have: released at the iteration's end
  uint64_t live_peak = 0;  // bytes, each block rounded up to 512
};

// The steady step of a recording (see tools/replay/replay_steps.h); without one, the whole recording. Streams are not
// kept: all calls are for one. Error: no request in it.
absl::StatusOr<RequestSequence> SequenceOf(const Trace& trace);

// A training step of 64 layers, 256 requests (training_sequence.h).
RequestSequence BuiltInSequence();

// An iteration of `blocks` requests (MakeIteration, nested lives).
RequestSequence GeneratedSequence(uint32_t blocks);

}  // namespace hotpack::bench
