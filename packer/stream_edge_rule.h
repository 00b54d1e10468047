// Whether a plan avoids edges between streams (packer/stream_edges.h).
#pragma once

#include <cstdint>

namespace hotpack {

// What a plan may cost so that it makes few stream edges.
struct StreamEdgeRule {
  bool avoid = true;  // false: the placement stays as it was packed
  // 0 to 50. A placement that is higher by at most so much, or by one chunk, is taken if it has at most half of the
  // edges. 0: none is.
  uint32_t slack_percent = 2;
};

}  // namespace hotpack
