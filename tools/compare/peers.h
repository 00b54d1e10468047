// What other allocators would hold on the same events: their policies, simulated. Each file of this folder is one
// policy (or a family of them) and says where its rules come from; docs/compare.md has them side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

// What came of a recording under one policy. Bytes.
struct PeerResult {
  std::string name;   // a short word for a table: "pytorch", "pytorch-expandable", "best-fit", ...
  std::string title;  // a phrase for a reader
  uint64_t reserved_peak =
      0;  // the most memory taken from the driver at once, in the whole run: what comparisons are by
  uint64_t reserved_steady =
      0;  // the most while the iteration with the highest live load runs; reserved_peak where there is none
  uint64_t device_calls = 0;  // calls to the driver that take or give back memory
  bool offline = false;       // the policy knows all requests beforehand
  // The capacity did not suffice: figures up to the request that failed, the others are 0. Never without a capacity.
  bool out_of_memory = false;
  uint64_t failed_request = 0;  // its ordinal in the recording, from 0
  uint64_t failed_bytes = 0;    // what it asked for; 0 of an offline policy, where all requests fail together
};

struct PeerOptions {
  uint64_t capacity = 0;  // bytes that the driver has to give; 0: no limit
};

// The policies that can be simulated, in the order of a table.
std::vector<std::string> PeerNames();

// One policy on a recording (every release has its allocation before it); `name` is one of PeerNames(), otherwise the
// result is empty but for the name. O(events · log(blocks)); offline policies: times the blocks that one block meets.
// Thread-safe.
PeerResult SimulatePeer(const std::string& name, const Trace& trace, const PeerOptions& options = {});

}  // namespace hotpack
