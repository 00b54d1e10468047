// The recursion guard. Every hook that acts holds one while it runs. A hooked function that is called from within (by
// the driver, another preload or hotpack itself) passes through to the driver at once.
#pragma once

#include "preload/process/options.h"

namespace hotpack {

// Hooks of this library that this thread is inside of. Initial-exec: the first access allocates nothing.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local int hook_depth;

class HookScope {
 public:
  HookScope() { ++hook_depth; }
  ~HookScope() { --hook_depth; }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  // Returns true in the outermost hook when hotpack is on. In all other cases hooks only pass through.
  bool Active() const { return hook_depth == 1 && Enabled(); }
  static bool Nested() { return hook_depth > 1; }
};

}  // namespace hotpack
