/* hotpack: C interface.
 *
 * A program needs none of this: preload libhotpack_preload.so and it is served. These calls say what hotpack would
 * otherwise have to find out, read its figures, or ask it for memory directly. They are exported by libhotpack.so and
 * by libhotpack_preload.so (which, being loaded first, wins). All are thread-safe and act on the current context's
 * device unless they say otherwise. None throws, exits or prints.
 */
#ifndef HOTPACK_H_
#define HOTPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTPACK_VERSION 100 /* major * 10000 + minor * 100 + patch */

#if defined(__GNUC__)
#define HOTPACK_API __attribute__((visibility("default")))
#else
#define HOTPACK_API
#endif

/* The version of the library that is loaded, as HOTPACK_VERSION. */
HOTPACK_API int hotpack_version(void);

/* An iteration begins here. Optional: with marks one iteration is enough to plan, without them two. Acts on every
 * arena of the process. */
HOTPACK_API void hotpack_step(void);

/* Stop and go on with the monitoring (Sekiyama 2018, section 4.3): between the two, requests are served dynamically,
 * the clock and lambda stand still, and releases, of monitored and of unmonitored blocks, are right on either side.
 * Nested pairs count. Acts on every arena of the process. */
HOTPACK_API void hotpack_interrupt(void);
HOTPACK_API void hotpack_resume(void);

/* Waits until no planning is under way: at most `timeout_ms` milliseconds, negative for no limit.
 * Returns 1 when idle, 0 after a time-out. */
HOTPACK_API int hotpack_wait_plan(int timeout_ms);

/* Figures of the process, summed over its arenas unless stated otherwise. docs/statistics.md explains each. */
typedef struct hotpack_stats {
  uint64_t requests;               /* allocation requests that hotpack answered */
  uint64_t planned;                /* ... at the offset of the script */
  uint64_t dynamic;                /* ... by best fit */
  uint64_t displaced;              /* ... expected, but the planned addresses were still in use */
  uint64_t passed_through;         /* allocation requests left to the driver */
  uint64_t iterations;             /* iterations seen, in units of the period in force */
  int64_t steady_iteration;        /* first iteration served by script as a whole, -1: none */
  uint64_t requests_steady;        /* requests from there on */
  uint64_t planned_steady;         /* planned ones from there on */
  uint64_t carried;                /* blocks of the script that live across the iteration boundary */
  uint64_t retained;               /* blocks live since before the steady iteration, not packed */
  uint64_t plan_height;            /* bytes: height of the placement in force */
  uint64_t plan_lower_bound;       /* bytes: its lower bound */
  uint64_t live_peak;              /* bytes: largest sum of live sizes, each rounded up to 512 */
  uint64_t reserved_peak;          /* bytes: most physical memory held, whole run */
  uint64_t reserved_steady;        /* bytes: most physical memory held since the steady iteration */
  uint64_t divergences;            /* times the job left the script */
  uint64_t reoptimizations;        /* plans made after the first */
  uint64_t driver_memory_calls_steady; /* driver allocation calls per steady iteration, rounded up */
  uint64_t heap_allocations_steady;    /* host heap allocations by job threads since the steady iteration */
  uint64_t ns_per_request;         /* nanoseconds: median of the sampled requests served on script, 0: no sample */
  uint64_t plans;                  /* scripts made: first ones, of further shapes, reoptimizations */
  uint64_t plan_ns;                /* nanoseconds spent on looking for them and packing, beside the program */
  uint64_t variants;               /* scripts known now */
  uint64_t switches;               /* changes from one known script to another */
} hotpack_stats;

/* Fills in the first `size` bytes of a hotpack_stats (pass sizeof). Returns 0, or -1 if there is no arena yet. */
HOTPACK_API int hotpack_get_stats(hotpack_stats* stats, size_t size);

/* Asks for `bytes` (> 0) of device memory for work on `stream` (a CUstream / cudaStream_t, 0: the default stream) in
 * the current context. Returns a CUresult: 0, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, ... */
HOTPACK_API int hotpack_malloc(void** pointer, size_t bytes, void* stream);

/* Gives a block back; work submitted to `stream` before may still be using it. Null is fine. */
HOTPACK_API int hotpack_free(void* pointer, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOTPACK_H_ */
