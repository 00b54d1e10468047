// A request and its state while the engine handles it.
#pragma once

#include <cstdint>

#include "packer/types.h"
#include "runtime/memory/reuse.h"
#include "runtime/script/script.h"

namespace hotpack {

inline constexpr uint64_t kUnmonitored = UINT64_MAX;  // a request's ordinal while monitoring is interrupted

struct EngineRequest {
  uint64_t bytes = 0;  // asked for
  uint32_t units = 0;  // the same, rounded up to 512 bytes
  uint32_t stream = 0;
  ReuseAfter* after = nullptr;
  uint64_t ordinal = kUnmonitored;  // in the history
  uint32_t entry = kNone;           // of the followed script; kNone: none
  bool displaced = false;           // the entry's place is still in use
};

}  // namespace hotpack
