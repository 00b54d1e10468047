// The functions that a collector (libhotpack_cupti.so, libhotpack_nvtx.so) may call in the library that it serves: a
// table of C functions, so that a collector needs no symbol of the library and no C++ crosses the boundary.
// docs/collectors.md describes the results.
//
//   libhotpack_preload.so / libhotpack.so                      a collector
//     hotpack_get_collector_host() ──── table of functions ────► notes: launches, their times, ranges, memory
//     on_end ◄──── "the recordings are about to close" ────────  hands over what it still has
//
// 1. All functions are thread-safe and never throw. They may be called from a driver callback and inside a hook.
// 2. They call only cuCtxGetCurrent of the driver. launch() also calls cuStreamIsCapturing while any stream is
//    captured.
// 3. Functions that write notes do nothing, and cost a load and a branch, while nothing is recorded.
// 4. Notes go to the recording of the arena whose blocks they concern. Else they go to that of the calling thread's
//    current context, else to the first one.
// 5. Times are nanoseconds of CLOCK_MONOTONIC; 0: unknown. The recording stores them since its own start. A collector
//    with another clock (cuptiGetTimestamp) reads both and converts.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTPACK_COLLECTOR_HOST_VERSION 1

enum hotpack_note_range {  // as RangeKind in profiler/notes.h
  HOTPACK_RANGE_PUSH = 1,
  HOTPACK_RANGE_POP = 2,
  HOTPACK_RANGE_START = 3,
  HOTPACK_RANGE_END = 4,
  HOTPACK_RANGE_MARK = 5,
};

// Device memory that the driver gave or took back, for any caller (as DriverMemory in profiler/notes.h).
typedef struct hotpack_note_memory {
  uint64_t time_ns;
  uint64_t address;
  uint64_t bytes;
  uint64_t correlation;  // of the call that asked; 0: unknown
  const char* name;      // of the caller: a symbol, a pool; null: unknown. Copied
  uint32_t released;     // 0: given, 1: taken back
  uint32_t kind;         // CUpti_ActivityMemoryKind or 0
} hotpack_note_memory;

typedef struct hotpack_collector_host {
  uint32_t version;  // HOTPACK_COLLECTOR_HOST_VERSION
  uint32_t size;     // bytes of this struct; fields are only ever added

  // Returns 1 if a recording is open, so that notes are kept.
  int (*recording)(void);
  // Returns 1 if the launch collector is on: hooks note launches, with the blocks that they name.
  int (*notes_launches)(void);
  // Returns nanoseconds of CLOCK_MONOTONIC now.
  uint64_t (*now_ns)(void);
  // Return the events and the iterations of the first recording so far. iterations: -1 before the first. Without a
  // recording: 0 and -1.
  uint64_t (*position)(void);
  int64_t (*iterations)(void);

  // Notes a launch. Call at the entry of a driver call that submits work, on the submitting thread, once for each id.
  //  - correlation: not 0, unique among the work whose times are still to come.
  //  - name: of the kernel, may be null; copied.
  //  - stream: the CUstream named in the call, null for the default stream. per_thread: null is the thread's own one.
  // If the launch collector has noted the same call (it does so before the driver call), that note gets the id and
  // nothing is written. Else a launch without blocks is noted. Returns 1 if its times are awaited. Returns 0 if it is
  // not noted, or if no more can be awaited. Work captured into a graph is not noted, because it does not run now.
  int (*launch)(uint64_t correlation, const char* name, void* stream, int per_thread);
  // Notes the same work's times on the device: in any order, from any thread, later. `name`: of the kernel if launch()
  // did not have it; may be null. Ignores an unknown id (from before the recording, dropped). Forgets the id. Returns 1
  // if the id was known.
  int (*work)(uint64_t correlation, const char* name, uint64_t start_ns, uint64_t end_ns);
  void (*memory)(const hotpack_note_memory* memory);

  // Notes an edge of a range, or a mark. Compares it with HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE.
  //  - name: of PUSH, START and MARK; copied.
  //  - id: of START and END, unique in the process. Of PUSH and POP the domain, 0: the default one. Each domain has its
  //    own stack in each thread.
  // Returns the level of PUSH and POP, from 0; -1: nothing to pop.
  int (*range)(enum hotpack_note_range kind, uint64_t id, const char* name);

  // hotpack_step, hotpack_interrupt, hotpack_resume.
  void (*step)(void);
  void (*interrupt)(void);
  void (*resume)(void);

  // Writes one line to stderr, after "hotpack: ".
  void (*say)(const char* line);

  // Registers `function` for one call before the recordings close: at the end of the process, from the library's
  // destructor, on the thread that ends the process. The driver may be shutting down then. Returns 0; -1 if 8 are
  // registered already.
  int (*on_end)(void (*function)(void));

  // As on_end, but before each recording closes, also when its context ends (the driver still works then).
  int (*on_close)(void (*function)(void));
  // Returns the iterations served by the plan in the first recording; -1: no plan yet.
  int64_t (*planned_iterations)(void);
  // Returns how many of these to profile (HOTPACK_CUPTI); 0: all to the end.
  uint64_t (*cupti_iterations)(void);
  // Declares the calling thread the collector's own: from now on its driver calls are never the program's.
  void (*enter_hook)(void);
} hotpack_collector_host;

// Exported by both libraries. Returns null for an unknown version.
__attribute__((visibility("default"))) const hotpack_collector_host* hotpack_get_collector_host(uint32_t version);

// Exported by a collector that the preload loads. Returns 0 if it is on; else it has logged why and may be left alone.
// The host is never freed. Called on the thread that makes the first request, inside a hook, with the recording open
// and a context current. Driver calls from here pass through.
typedef int (*hotpack_collector_start)(const hotpack_collector_host* host);
#define HOTPACK_COLLECTOR_START "hotpack_collector_start"

#ifdef __cplusplus
}  // extern "C"
#endif
