// What the environment says about this process. Read once, at the first use; preload/process/option_table.h has the
// names.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/guards.h"

namespace hotpack {

enum class ArenaKind : uint8_t { kVirtual, kPlain };

struct Options {
  bool enabled = true;  // HOTPACK, HOTPACK_ONLY, HOTPACK_EXCEPT, tools: false: every hook hands on what it gets
  bool record = false;  // HOTPACK=record: nothing is served, requests are the driver's and are written down
  bool free_sync_always = false;  // HOTPACK_FREE_SYNC=always: cuMemFree waits for the device even with one stream
  ArenaKind arena = ArenaKind::kVirtual;  // HOTPACK_ARENA=plain: one cuMemAlloc instead of virtual memory management
  uint64_t plain_arena_bytes = 0;         // HOTPACK_ARENA=plain:<MiB>, in bytes here; 0: most of what is free
  const char* only = nullptr;             // HOTPACK_ONLY: patterns of the executables that are served; null: all
  const char* except = nullptr;           // HOTPACK_EXCEPT: patterns of those that are not
  const char* stats_dir = nullptr;        // HOTPACK_STATS_DIR: where stats.<pid> is made
  const char* trace = nullptr;            // HOTPACK_TRACE: where the trace goes
  uint64_t trace_limit = 8ull << 30;      // HOTPACK_TRACE_LIMIT_MB, in bytes here
  GuardOptions guard;                     // HOTPACK_DEBUG
  bool overcommit = false;                // HOTPACK_OVERCOMMIT=managed
  uint64_t overcommit_bytes = 0;          // HOTPACK_OVERCOMMIT=managed:<MiB>, in bytes here; 0: ManagedLimit() decides
  const char* ipc_sizes = nullptr;  // HOTPACK_IPC: sizes that are left to the driver (preload/serve/ipc_exclusions.h)
  bool cupti = false;               // HOTPACK_CUPTI: kernel times are recorded, where there is a trace
  uint64_t cupti_iterations = 0;    // ... of so many iterations with the plan in force; 0: to the end
  bool launches = false;            // HOTPACK_LAUNCHES=1: launches are noted in the trace
  const char* iteration_range = nullptr;  // HOTPACK_ITERATION_RANGE: patterns of ranges that begin an iteration
  const char* interrupt_range = nullptr;  // HOTPACK_INTERRUPT_RANGE: patterns of ranges that interrupt the monitoring
  bool wait_plan = false;                 // HOTPACK_WAIT_PLAN: plans come in logical time
  const char* plan = nullptr;  // HOTPACK_PLAN: where the plan is kept from run to run (preload/serve/plan_store.h)
};

// Thread-safe, no heap, no driver call. The strings are copies that live for ever.
const Options& GetOptions();

// GetOptions().enabled, without the rest.
extern constinit std::atomic<int8_t> known_enabled;  // -1: not read yet
inline bool Enabled() {
  const int8_t known = known_enabled.load(std::memory_order_acquire);
  return known >= 0 ? known != 0 : GetOptions().enabled;
}

// One line on stderr for each variable that is malformed or unknown, once a process. For the moment at which the
// process first needs hotpack: the shells and loaders that inherit the environment stay silent. Reads the environment;
// no heap.
void WarnOfOptions();

}  // namespace hotpack
