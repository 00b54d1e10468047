// Simulated policies of other allocators: the memory that they would hold on the same events. Each file of this folder
// is one policy (or a family) and cites the source of its rules. docs/compare.md compares them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"
#include "tools/compare/recording.h"
#include "tools/compare/smallest_device.h"

namespace hotpack {

// The result of a recording under one policy. Bytes.
struct PeerResult {
  std::string name;   // a short word for a table: "pytorch", "pytorch-expandable", "best-fit", ...
  std::string title;  // a phrase for a reader
  // The most memory taken from the driver at once, in the whole run: the measure of comparisons.
  uint64_t reserved_peak = 0;
  // The most while the iteration with the highest live load runs; reserved_peak if there is none.
  uint64_t reserved_steady = 0;
  uint64_t device_calls = 0;  // calls to the driver that take or give back memory
  bool offline = false;       // the policy knows all requests in advance
  // The capacity did not suffice: figures up to the failed request, the others are 0. Needs a capacity.
  bool out_of_memory = false;
  uint64_t failed_request = 0;    // its ordinal in the recording, from 0
  uint64_t failed_bytes = 0;      // its size; 0 for an offline policy, where all requests fail together
  uint64_t synchronizations = 0;  // times that the host waits for the device, to give memory back
  SmallestDevice smallest;        // unknown unless it was searched (SmallestDeviceOf)
};

struct PeerOptions {
  uint64_t capacity = 0;  // bytes of the driver; 0: no limit
};

// Returns the policies that can be simulated, in the order of a table.
std::vector<std::string> PeerNames();

// Simulates one policy on a recording (every release has an earlier allocation). `name` is one of PeerNames();
// otherwise the result has only the name. O(events · log(blocks)); offline policies: times the blocks that one block
// meets. Thread-safe.
PeerResult SimulatePeer(const std::string& name, const Trace& trace, const PeerOptions& options = {});

// The same, where `recording` is known: TakeRecording(trace).
PeerResult SimulatePeer(const std::string& name, const Trace& trace, const PeerRecording& recording,
                        const PeerOptions& options);

// Returns the smallest device on which `result`'s policy serves the recording. `result`: of that policy, with any
// capacity. live_peak: bytes, of CountFacts. O(log(cached bytes)) simulations; none for an offline policy. Thread-safe.
SmallestDevice SmallestDeviceOf(const PeerResult& result, const Trace& trace, const PeerRecording& recording,
                                uint64_t live_peak);

}  // namespace hotpack
