// What other allocators would hold on the same events: their policies, simulated. Each file of this folder is one policy and
// says where its rules come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

// What came of a recording under one policy. Bytes.
struct PeerResult {
  std::string name;       // a short word for a table: "pytorch", "pytorch-expandable", "best-fit", ...
  std::string title;      // a phrase for a reader
  uint64_t reserved_peak = 0;   // the most memory taken from the driver at once
  uint64_t reserved_steady = 0; // the most while the last iteration runs; reserved_peak where there is none
  uint64_t device_calls = 0;    // calls to the driver that take or give back memory
};

// The policies that can be simulated, in the order of a table.
std::vector<std::string> PeerNames();

// One policy on a recording; `name` is one of PeerNames(). O(events · log(blocks)).
PeerResult SimulatePeer(const std::string& name, const Trace& trace);

}  // namespace hotpack
