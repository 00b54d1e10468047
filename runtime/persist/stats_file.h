// The figures of one process in a file mapped MAP_SHARED, so that they survive any end of the process: _exit, a signal,
// an exception. `hotpack run` reads them afterwards.
//
//   <HOTPACK_STATS_DIR>/stats.<pid>
//   offset 0    StatsFileHeader (256 bytes)
//   offset 256  kStatsSlots times StatsSlot, one per arena, written by its engine as it runs
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/current_figures.h"
#include "runtime/include/hotpack.h"
#include "runtime/script/load_columns.h"

namespace hotpack {

inline constexpr uint64_t kStatsMagic = 0x31545453'4b504f48;  // "HOPKSTT1", little endian
inline constexpr uint32_t kStatsVersion = 4;
inline constexpr uint32_t kStatsSlots = 16;

// The process's last request that found no memory, for the last line of `hotpack run`. Bytes, unless stated otherwise.
struct FailedRequest {
  uint64_t count;       // requests that found no memory so far; 0: none, and the rest means nothing
  uint64_t bytes;       // asked for; UINT64_MAX: only the driver knows
  uint64_t total;       // of the device, or the limit that was set for the process there
  uint64_t free;        // of that, free
  uint64_t held;        // by the process's arenas on the device
  uint64_t live;        // in their live blocks
  uint64_t requests;    // requests that all arenas of the process had answered by then
  uint64_t iterations;  // of the current context's arena by then, as hotpack_stats::iterations
  uint64_t limited;     // 1: `total` is such a limit
};

struct StatsFileHeader {
  uint64_t magic;       // kStatsMagic, written last: its presence means the header is complete
  uint32_t version;     // kStatsVersion
  uint32_t slot_bytes;  // sizeof(StatsSlot) of the writer
  int32_t pid;
  std::atomic<uint32_t> arenas;          // slots in use; may exceed kStatsSlots: the excess is not in the file
  std::atomic<uint64_t> passed_through;  // allocation requests left to the driver because there was no arena
  char program[152];                     // /proc/self/comm, null-terminated
  FailedRequest failed;                  // a reader of a running process may see parts of two
};
static_assert(sizeof(StatsFileHeader) == 256);

struct StatsSlot {
  hotpack_stats stats;
  LoadColumns load;        // of the plan in force: EngineOptions::load
  CurrentFigures current;  // EngineOptions::current
};

// The writer's side. Creates `directory`/stats.<pid> and maps it; it is never unmapped. Returns null if that fails.
StatsFileHeader* CreateStatsFile(const char* directory, const char* suffix = "");
// Returns the next free slot, or null if all are taken. Thread-safe.
StatsSlot* TakeStatsSlot(StatsFileHeader* header);

// The reader's side.
struct ProcessStats {
  int pid = 0;
  std::string program;
  uint32_t arenas = 0;
  hotpack_stats stats = {};  // of all its arenas together (Combine)
  CurrentFigures current;    // likewise, sums
  FailedRequest failed = {};
  // Bytes, kLoadColumns columns of the plan of the arena with most requests; empty: it has no plan.
  std::vector<uint64_t> load;
};
// Reads one process's file. Returns false if it is not a complete stats file of this version.
bool ReadStatsFile(const std::string& path, ProcessStats* process);
// Returns true if it is a complete stats file that another version of hotpack writes: ReadStatsFile rejects it.
bool IsOtherStatsVersion(const std::string& path);
// Reads all stats.* files of a directory. Returns the process with most requests first.
std::vector<ProcessStats> ReadStatsDirectory(const std::string& directory);

// Combines the figures of several arenas. Counts and bytes add up, so every member of hotpack_stats that Combine() does
// not name. steady_iteration, the per-iteration and the per-request figures are those of the arena with most requests.
hotpack_stats Combine(const hotpack_stats* stats, size_t count);

}  // namespace hotpack
