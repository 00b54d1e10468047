// Whether a plan avoids edges between streams (packer/stream_edges.h).
#pragma once

#include <cstdint>

namespace hotpack {

// What a plan may cost so that it makes few stream edges.
struct StreamEdgeRule {
  bool avoid = true;  // false: the placement stays as it was packed
  uint32_t slack_percent =
      2;  // 0 to 50: how much higher it may be, at least one chunk, if that leaves half of the edges
};

}  // namespace hotpack
