#include "preload/process/hook_scope.h"

namespace hotpack {
constinit thread_local int hook_depth = 0;
}  // namespace hotpack
