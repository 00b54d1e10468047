// Ranges for tools (NVTX). Without a tool they cost almost nothing.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace hotpack::train {

// A range that lasts as long as the object.
class Range {
 public:
#if __has_include(<nvtx3/nvToolsExt.h>)
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
#else
  explicit Range(const char*) {}
  ~Range() {}
#endif
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace hotpack::train
