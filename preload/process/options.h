// Options of this process from the environment. Read once, at the first use. preload/process/option_table.h has the
// names.
#pragma once

#include <atomic>
#include <cstdint>

#include "packer/stream_edge_rule.h"
#include "runtime/memory/device_memory.h"
#include "runtime/memory/guards.h"

namespace hotpack {

enum class ArenaKind : uint8_t { kAutomatic, kVirtual, kPlain };

struct Options {
  bool enabled = true;            // HOTPACK, HOTPACK_ONLY, HOTPACK_EXCEPT, tools; false: every hook passes through
  bool record = false;            // HOTPACK=record: the driver serves the requests, hotpack records them
  bool release_events = true;     // HOTPACK_RELEASE_EVENTS: events at releases that no plan covers
  bool free_sync_always = false;  // HOTPACK_FREE_SYNC=always: cuMemFree waits for the device even with one stream
  uint64_t alignment = 512;       // HOTPACK_ALIGNMENT: of blocks of at least 1 MiB, in bytes
  ArenaKind arena = ArenaKind::kAutomatic;  // HOTPACK_ARENA=plain: one cuMemAlloc, no virtual memory management
  uint64_t plain_arena_bytes = 0;           // HOTPACK_ARENA=plain:<MiB>, in bytes; 0: most of the free memory
  ExtentLimits extents;                     // HOTPACK_HANDLE=<MiB>:<part>
  bool envelopes = true;                    // HOTPACK_ENVELOPE: iterations that differ are served by plan
  bool peer_copies = true;                  // HOTPACK_PEER_COPIES=0: copies between devices pass through unchanged
  uint64_t page_wait_us = 1'000'000;        // HOTPACK_PAGE_WAIT, in microseconds; UINT64_MAX: no limit
  const char* only = nullptr;               // HOTPACK_ONLY: patterns of the executables to serve; null: all
  const char* except = nullptr;             // HOTPACK_EXCEPT: patterns of the executables to leave alone
  const char* stats_dir = nullptr;          // HOTPACK_STATS_DIR: directory of stats.<pid>
  const char* trace = nullptr;              // HOTPACK_TRACE: path of the trace
  uint64_t trace_limit = 8ull << 30;        // HOTPACK_TRACE_LIMIT_MB, in bytes
  GuardOptions guard;                       // HOTPACK_DEBUG
  bool overcommit = false;                  // HOTPACK_OVERCOMMIT=managed
  uint64_t overcommit_bytes = 0;            // HOTPACK_OVERCOMMIT=managed:<MiB>, in bytes; 0: ManagedLimit() decides
  const char* ipc_sizes = nullptr;          // HOTPACK_IPC: sizes left to the driver (preload/serve/ipc_exclusions.h)
  const char* driver_callers = nullptr;     // HOTPACK_DRIVER_CALLERS (preload/serve/caller_exclusions.h)
  bool cupti = false;                       // HOTPACK_CUPTI: record kernel times, if there is a trace
  uint64_t cupti_iterations = 0;            // ... of this many iterations with the plan in force; 0: to the end
  bool launches = false;                    // HOTPACK_LAUNCHES=1: note launches in the trace
  uint64_t limit = UINT64_MAX;              // HOTPACK_LIMIT: of each device, in bytes; UINT64_MAX: none
  const char* iteration_range = nullptr;    // HOTPACK_ITERATION_RANGE: patterns of ranges that begin an iteration
  const char* interrupt_range = nullptr;    // HOTPACK_INTERRUPT_RANGE: patterns of ranges that interrupt the monitoring
  StreamEdgeRule stream_edges;              // HOTPACK_STREAM_EDGES: of plans that make few waits between streams
  bool wait_plan = false;                   // HOTPACK_WAIT_PLAN: plans come in logical time
  const char* plan = nullptr;  // HOTPACK_PLAN: file of the plan from run to run (preload/serve/plan_store.h)
};

// Thread-safe, no heap, no driver call. The strings are copies that are never freed.
const Options& GetOptions();

// Returns GetOptions().enabled without reading the other options.
extern constinit std::atomic<int8_t> known_enabled;  // -1: not read yet
inline bool Enabled() {
  const int8_t known = known_enabled.load(std::memory_order_acquire);
  return known >= 0 ? known != 0 : GetOptions().enabled;
}

// Writes one line to stderr for each malformed or unknown variable, once per process. Call when the process first needs
// hotpack, so that shells and loaders that inherit the environment stay silent. Reads the environment; no heap.
void WarnOfOptions();

}  // namespace hotpack
