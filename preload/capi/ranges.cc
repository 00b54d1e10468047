// hotpack_range_push, hotpack_range_pop: ranges of programs that do not use NVTX.
#include "preload/collect/range_watch.h"
#include "runtime/include/hotpack.h"

extern "C" {

int hotpack_range_push(const char* name) try {
  return hotpack::WatchRange(hotpack::RangeKind::kPush, 0, name);
} catch (...) {
  return -1;
}

int hotpack_range_pop(void) try { return hotpack::WatchRange(hotpack::RangeKind::kPop, 0, nullptr); } catch (...) {
  return -1;
}

}  // extern "C"
