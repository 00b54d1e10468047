// What the environment says about this process. Read once, at the first use.
#pragma once

#include <cstdint>

namespace hotpack {

enum class ArenaKind : uint8_t { kVirtual, kPlain };

struct Options {
  bool enabled = true;              // HOTPACK=0: every hook hands on what it gets
  bool free_sync_always = false;    // HOTPACK_FREE_SYNC=always: cuMemFree waits for the device even with one stream
  ArenaKind arena = ArenaKind::kVirtual;  // HOTPACK_ARENA=plain: one cuMemAlloc instead of virtual memory management
  uint64_t plain_arena_bytes = 0;         // HOTPACK_ARENA=plain:<MiB>, in bytes here; 0: most of what is free
  const char* stats_dir = nullptr;  // HOTPACK_STATS_DIR: where stats.<pid> is made
  const char* trace = nullptr;      // HOTPACK_TRACE: where the trace goes
  const char* plan = nullptr;       // HOTPACK_PLAN: where the plan is kept from run to run (preload/plan_store.h)
  uint64_t trace_limit = 8ull << 30;  // HOTPACK_TRACE_LIMIT_MB, in bytes here
};

// Thread-safe, no heap, no driver call. The strings are copies that live for ever.
const Options& GetOptions();

// GetOptions().enabled, without the rest.
inline bool Enabled() { return GetOptions().enabled; }

}  // namespace hotpack
