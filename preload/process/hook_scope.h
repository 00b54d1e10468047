// The recursion guard. Every hook that does something holds one while it runs: a hooked function that is called from
// within (by the driver, by another preload, by ourselves) is handed on to the driver at once.
#pragma once

#include "preload/process/options.h"

namespace hotpack {

// Hooks of this library entered and not left on this thread. Initial-exec: no allocation at the first access.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local int hook_depth;

class HookScope {
 public:
  HookScope() { ++hook_depth; }
  ~HookScope() { --hook_depth; }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  // True in the outermost hook when hotpack is on: only then does a hook do anything but hand on.
  bool Active() const { return hook_depth == 1 && Enabled(); }
  static bool Nested() { return hook_depth > 1; }
};

}  // namespace hotpack
