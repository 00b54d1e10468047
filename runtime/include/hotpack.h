/* hotpack: C interface.
 *
 * A program needs none of this: preload libhotpack_preload.so and it is served. These calls say what hotpack would
 * otherwise have to find out, read its figures, or ask it for memory directly. They are exported by libhotpack.so and
 * by libhotpack_preload.so (which, being loaded first, wins). All are thread-safe and act on the current context's
 * device unless they say otherwise. None throws or exits; none prints but hotpack_check.
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

/* A range of the program's, named by a string that is copied: begins, and ends the innermost one of the thread, as
 * nvtxRangePushA and nvtxRangePop do. A trace holds it, and HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE may match it
 * (docs/collectors.md). Returns its level, from 0; -1: there is none to end. */
HOTPACK_API int hotpack_range_push(const char* name);
HOTPACK_API int hotpack_range_pop(void);

/* Waits until no planning is under way: at most `timeout_ms` milliseconds, negative for no limit.
 * Returns 1 when idle, 0 after a time-out. */
HOTPACK_API int hotpack_wait_plan(int timeout_ms);

/* With HOTPACK_DEBUG=guard: looks for writes out of bounds around every block that is live now (otherwise a block is
 * looked at when it is released), waits for the device, and says each bad one in a line on stderr. Returns how many
 * have been found so far, at releases too; 0 without that mode. Acts on every arena of the process. */
HOTPACK_API uint64_t hotpack_check(void);

/* Figures of the process, summed over its arenas unless stated otherwise. docs/statistics.md explains each. */
typedef struct hotpack_stats {
  uint64_t requests;                   /* allocation requests that hotpack answered */
  uint64_t planned;                    /* ... at the offset of the script */
  uint64_t dynamic;                    /* ... by best fit */
  uint64_t displaced;                  /* ... expected, but the planned addresses were still in use */
  uint64_t passed_through;             /* allocation requests left to the driver */
  uint64_t iterations;                 /* iterations seen, in units of the period in force */
  int64_t steady_iteration;            /* first iteration served by script as a whole, -1: none */
  uint64_t requests_steady;            /* requests from there on */
  uint64_t planned_steady;             /* planned ones from there on */
  uint64_t carried;                    /* blocks of the script that live across the iteration boundary */
  uint64_t retained;                   /* blocks live since before the steady iteration, not packed */
  uint64_t plan_height;                /* bytes: height of the placement in force */
  uint64_t plan_lower_bound;           /* bytes: its lower bound */
  uint64_t live_peak;                  /* bytes: largest sum of live sizes, each rounded up to 512 */
  uint64_t reserved_peak;              /* bytes: most physical memory held, whole run */
  uint64_t reserved_steady;            /* bytes: most physical memory held since the steady iteration */
  uint64_t divergences;                /* times the job left the script */
  uint64_t reoptimizations;            /* plans made after the first */
  uint64_t driver_memory_calls_steady; /* driver allocation calls per steady iteration, rounded up */
  uint64_t heap_allocations_steady;    /* host heap allocations by job threads since the steady iteration */
  uint64_t ns_per_request;             /* nanoseconds: median of the sampled requests served on script, 0: no sample */
  uint64_t detections;                 /* times the history was searched for an iteration */
  uint64_t planning_ns;                /* nanoseconds of processor time of the planning threads */
  uint64_t managed_peak;               /* bytes: most that blocks took of managed memory (HOTPACK_OVERCOMMIT) */
  uint64_t plans;                      /* scripts made: first ones, of further shapes, reoptimizations */
  uint64_t variants;                   /* scripts known now */
  uint64_t switches;                   /* changes from one known script to another */
  uint64_t cross_stream;               /* requests whose memory had to come after work of other streams */
  uint64_t cross_stream_waits;         /* ... for which a stream was told to wait for an event */
  uint64_t cross_stream_events;        /* ... events recorded */
  uint64_t cross_stream_host_waits;    /* ... times the host waited for the device */
  uint64_t cross_stream_ns;            /* ... nanoseconds of the host's time */
} hotpack_stats;

/* Fills in the first `size` bytes of a hotpack_stats (pass sizeof). Returns 0, or -1 if there is no arena yet. */
HOTPACK_API int hotpack_get_stats(hotpack_stats* stats, size_t size);

/* Asks for `bytes` (> 0) of device memory for work on `stream` (a CUstream / cudaStream_t, 0: the default stream) in
 * the current context. Returns a CUresult: 0, CUDA_ERROR_OUT_OF_MEMORY (hotpack_explain says why), CUDA_ERROR_INVALID_VALUE, ... */
HOTPACK_API int hotpack_malloc(void** pointer, size_t bytes, void* stream);

/* Gives a block back. The contract is cuMemFreeAsync's: all work that uses the block comes before the point of `stream` at
 * which this is called, or was told of by hotpack_record_use. Whichever stream gets the memory next waits for that
 * point. Null is fine. Returns a CUresult. */
HOTPACK_API int hotpack_free(void* pointer, void* stream);

/* Gives a block back to the pool of `stream`, the one that it was asked for on. The contract is that of caching allocators
 * (PyTorch's, CuPy's): work of any stream that was submitted before this call may use the block. A later request on `stream`
 * may get the memory without an order: the program sees to it that `stream` comes after the block's uses before it
 * uses what it asks for there from now on. Any other stream that gets the memory waits for all work that was submitted
 * before this call, to any stream of the contexts that hotpack serves (docs/correctness.md, Pooled releases). Null is fine.
 * Returns a CUresult. */
HOTPACK_API int hotpack_free_pooled(void* pointer, void* stream);

/* Work on `stream` uses the live block that contains `pointer`, in addition to the stream that its release will name: the
 * memory is not used again, by that stream either, before that work is done. `stream` must live until the release. The
 * handles of default streams (0, 1) stand for those of all contexts that hotpack serves if streams are kept
 * (hotpack_keep_streams). Forgotten with the release. Returns 0, or CUDA_ERROR_NOT_FOUND if no block of hotpack's is there. */
HOTPACK_API int hotpack_record_use(void* pointer, void* stream);

/* Promises, before the first request, that the program names every stream that uses a block (to hotpack_malloc,
 * hotpack_free or hotpack_record_use), destroys none of these streams, and announces captures. Then order between streams
 * is kept by events, where libhotpack.so alone would wait for the stream at every release. Frameworks with their own
 * streams, such as PyTorch, can promise it. Under the preload, which sees streams itself, it only says that no graph uses
 * memory of hotpack_malloc which is asked for on a stream that is not capturing. */
HOTPACK_API void hotpack_keep_streams(void);

/* That promise does not hold for `stream`: the program may destroy it at any time. Its handle must be good now. Nothing
 * under the preload, or without the promise. */
HOTPACK_API void hotpack_except_stream(void* stream);

/* Of a program that has promised so: some stream may be capturing from here on / no longer. Pairs count. Releases in
 * between are put aside. Memory that a graph is to use is not asked for here. Under the preload: nothing. */
HOTPACK_API void hotpack_capture_begin(void);
HOTPACK_API void hotpack_capture_end(void);

/* Kernels of device `peer` may use the blocks of `device` (ordinals) from now on, as after cuCtxEnablePeerAccess, which the
 * preload sees itself. Nothing if there is no arena on `device` yet. */
HOTPACK_API void hotpack_allow_peer(int device, int peer);

/* Who has what of a device's memory now, in bytes; sums over the process's arenas there. */
typedef struct hotpack_memory {
  uint64_t live;           /* in live blocks, each rounded up to 512 */
  uint64_t reserved;       /* physical memory held by hotpack */
  uint64_t reserved_peak;  /* most of it since the beginning or hotpack_reset_peak */
  uint64_t limit;          /* hotpack_set_limit; UINT64_MAX: none */
  uint64_t passed_through; /* requests left to the driver (a count) */
} hotpack_memory;

/* Fills in the first `size` bytes of a hotpack_memory (pass sizeof). Returns 0, or -1 if there is no arena on the device
 * (everything but the limit is 0 then). */
HOTPACK_API int hotpack_get_memory(int device, hotpack_memory* memory, size_t size);
HOTPACK_API void hotpack_reset_peak(int device);

/* Each arena of the device takes no more than `bytes` of it from now on (UINT64_MAX: no limit); also arenas that are made
 * later. What is beyond the limit runs out of memory, as if the device had no more. Has no effect on a plain arena. Returns
 * 0, or -1 if `device` is not in [0, 64). */
HOTPACK_API int hotpack_set_limit(int device, uint64_t bytes);

/* Why a request for `bytes` bytes finds no memory on `device`: who holds what, in one line without its end, written to `text`
 * (at most `size` bytes with the closing zero). Makes driver calls. Returns the line's length, 0 if there is nothing to say. */
HOTPACK_API size_t hotpack_explain(int device, uint64_t bytes, char* text, size_t size);

/* A live block, or a run of addresses that has memory. */
typedef struct hotpack_extent {
  uint64_t address;
  uint64_t bytes;
  int32_t planned; /* of a block: it is served by script */
  int32_t arena;   /* which of the device's arenas, from 0 */
} hotpack_extent;

/* Writes the first `capacity` live blocks / runs of mapped memory of `device`, ascending by arena and address. Returns how
 * many there are. One moment's picture of each arena; O(blocks + memory). */
HOTPACK_API size_t hotpack_list_blocks(int device, hotpack_extent* blocks, size_t capacity);
HOTPACK_API size_t hotpack_list_mapped(int device, hotpack_extent* runs, size_t capacity);

/* Gives the memory that no live block lies in back to the device, so that other processes and libraries can have it:
 * bytes given back, 0 if there is none (or while a stream is capturing). What the job needs again is taken again when it
 * asks, which costs driver calls. Waits for the device. Acts on every arena of the process. */
HOTPACK_API uint64_t hotpack_trim(void);

/* Keeps the plans that there are now for later runs, where HOTPACK_PLAN=path finds them (docs/plan_format.md). `path` may
 * hold %p, %d and %r as HOTPACK_PLAN does; null: the path of HOTPACK_PLAN. A plan file there is replaced at once, any
 * other file is left alone. Returns 0, or an errno value: ENODATA if no arena has a plan yet, EINVAL without a path,
 * EEXIST where something else is, or what the file system says. Waits for the disk. */
HOTPACK_API int hotpack_save_plan(const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOTPACK_H_ */
