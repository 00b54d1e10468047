// What collectors (libhotpack_cupti.so, libhotpack_nvtx.so) may ask of the library they serve: a table of C functions,
// so that they need no symbol of it and no C++ across the boundary. docs/collectors.md says what becomes of it all.
//
//   libhotpack_preload.so / libhotpack.so                      a collector
//     hotpack_get_collector_host() ──── table of functions ────► notes: launches, their times, ranges, memory
//     on_end ◄──── "the recordings are about to close" ────────  hands over what it still has
//
// All functions are thread-safe, may be called from within a driver callback and inside a hook, call nothing of the
// driver but cuCtxGetCurrent and (launch(), while any stream is being captured) cuStreamIsCapturing, never throw. Those
// that write notes do nothing, and cost a load and a branch, while nothing is recorded. Notes go to the recording of
// the arena whose blocks they concern, else to that of the calling thread's current context, else to the first one.
//
// Times are nanoseconds of CLOCK_MONOTONIC; 0: not known. The recording stores them since its own start. A collector
// with another clock (cuptiGetTimestamp) reads both and converts.
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

// Device memory as the driver gave it or took it back, whoever asked (as DriverMemory in profiler/notes.h).
typedef struct hotpack_note_memory {
  uint64_t time_ns;
  uint64_t address;
  uint64_t bytes;
  uint64_t correlation;  // of the call that asked; 0: not known
  const char* name;      // of who asked: a symbol, a pool; null: not known. Copied
  uint32_t released;     // 0: given, 1: taken back
  uint32_t kind;         // CUpti_ActivityMemoryKind or 0
} hotpack_note_memory;

typedef struct hotpack_collector_host {
  uint32_t version;  // HOTPACK_COLLECTOR_HOST_VERSION
  uint32_t size;     // bytes of this struct: fields are only ever added

  // 1: some recording is open, so notes go somewhere.
  int (*recording)(void);
  // 1: the launch collector is on: launches are noted by the hooks, with the blocks that they name.
  int (*notes_launches)(void);
  // Nanoseconds of CLOCK_MONOTONIC now.
  uint64_t (*now_ns)(void);
  // Events recorded so far, and iterations seen so far (-1: none yet), in the first recording (0, -1: there is none).
  uint64_t (*position)(void);
  int64_t (*iterations)(void);

  // At the entry of a driver call that submits work, on the submitting thread: it has this correlation id (not 0,
  // unique among the work whose times are still to come). `name`: of the kernel, may be null; copied. `stream`: the
  // CUstream named in the call, null for the default stream; `per_thread`: null is the thread's own default stream
  // there. If the launch collector has noted the same call (it does so before the driver is called), the id is given to
  // that note and nothing is written; else a launch is noted, without blocks. Once for each id. 1: its times are
  // awaited; 0: it is not noted, or no more can be awaited. What is captured into a graph is not noted: it does not run
  // now.
  int (*launch)(uint64_t correlation, const char* name, void* stream, int per_thread);
  // The same work's times on the device, in any order, from any thread, later. `name`: of the kernel if launch() did
  // not have it; may be null. An id that is not known (from before the recording, dropped) is ignored. Forgets the id.
  // 1: it was known.
  int (*work)(uint64_t correlation, const char* name, uint64_t start_ns, uint64_t end_ns);
  void (*memory)(const hotpack_note_memory* memory);

  // An edge of a range, or a mark: noted, and compared with HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE.
  // `name`: of PUSH, START and MARK; copied. `id`: of START and END, unique in the process; of PUSH and POP the domain,
  // each of which has a stack of its own in each thread, 0: the default one. Answers the level of PUSH and POP, from 0;
  // -1: nothing to pop.
  int (*range)(enum hotpack_note_range kind, uint64_t id, const char* name);

  // hotpack_step, hotpack_interrupt, hotpack_resume.
  void (*step)(void);
  void (*interrupt)(void);
  void (*resume)(void);

  // One line on stderr, "hotpack: " before it.
  void (*say)(const char* line);

  // `function` is called once, before the recordings close: at the end of the process, from the library's destructor
  // (so the driver may be on its way out; the thread is whichever ends the process). 0, or -1: no room for more (there
  // is for 8).
  int (*on_end)(void (*function)(void));

  // As on_end, but before each recording closes, also where that is because its context ends (the driver still works
  // then).
  int (*on_close)(void (*function)(void));
  // Iterations that have been served by the plan in the first recording; -1: there is no plan yet.
  int64_t (*planned_iterations)(void);
  // HOTPACK_CUPTI: how many of these are to be profiled; 0: all to the end.
  uint64_t (*cupti_iterations)(void);
  // The calling thread is the collector's own: its driver calls are never the program's, now and for ever.
  void (*enter_hook)(void);
} hotpack_collector_host;

// Exported by both libraries. Null: no such version.
__attribute__((visibility("default"))) const hotpack_collector_host* hotpack_get_collector_host(uint32_t version);

// What a collector that is loaded by the preload exports. 0: it is on; else it said why and may be left alone. The host
// lives for ever. Called on the thread that makes the first request, with the recording open and a context current,
// inside a hook: driver calls that come from here are handed on.
typedef int (*hotpack_collector_start)(const hotpack_collector_host* host);
#define HOTPACK_COLLECTOR_START "hotpack_collector_start"

#ifdef __cplusplus
}  // extern "C"
#endif
