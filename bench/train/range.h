// Ranges that tools can see (NVTX). Costs next to nothing where no tool is there.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace hotpack::train {

// Lasts as long as the object.
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
