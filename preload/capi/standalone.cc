// What libhotpack.so has instead of the hooks: nothing is seen but the calls of hotpack.h.
#include "preload/process/driver_access.h"

extern "C" {
__attribute__((visibility("hidden"))) int hotpack_per_thread_stream_used = 0;
}

namespace hotpack {
const bool kHooksPresent = false;
}  // namespace hotpack
