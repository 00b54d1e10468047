// libhotpack.so's replacement of the hooks: it sees only the calls of hotpack.h.
#include "preload/process/driver_access.h"

extern "C" {
__attribute__((visibility("hidden"))) int hotpack_per_thread_stream_used = 0;
}

namespace hotpack {
const bool kHooksPresent = false;
}  // namespace hotpack
