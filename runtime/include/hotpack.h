/* hotpack: C interface.
 *
 * A program needs none of these calls: preloading libhotpack_preload.so suffices. They tell hotpack what it would
 * otherwise have to find out, read its figures, or allocate memory directly. Both libhotpack.so and
 * libhotpack_preload.so export them; the preload is loaded first and wins. All calls are thread-safe. They act on
 * the current context's device unless stated otherwise. None throws or exits. None prints, except hotpack_check.
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

/* Returns the version of the loaded library, in the form of HOTPACK_VERSION. */
HOTPACK_API int hotpack_version(void);

/* Marks the beginning of an iteration. Optional: with marks one iteration suffices for a plan, without marks two.
 * Acts on every arena of the process. */
HOTPACK_API void hotpack_step(void);

/* Says that hotpack_step will be called. Optional: until the first mark, or 65,536 requests if none comes, nothing is
 * planned; loops within the first iteration would be planned otherwise. Acts on every arena of the process, also on
 * those made later. */
HOTPACK_API void hotpack_expect_steps(void);

/* Interrupt and resume the monitoring (Sekiyama 2018, section 4.3). Between the two calls requests are served
 * dynamically, and the clock and lambda stand still. Blocks, monitored or not, may be released on either side.
 * Nested pairs count. Both act on every arena of the process. */
HOTPACK_API void hotpack_interrupt(void);
HOTPACK_API void hotpack_resume(void);

/* Begin a range of the program with a name (the string is copied), and end the innermost range of the thread, like
 * nvtxRangePushA and nvtxRangePop. Ranges appear in traces; HOTPACK_ITERATION_RANGE and HOTPACK_INTERRUPT_RANGE may
 * match them (docs/collectors.md). Return the range's level, from 0; -1: there is no range to end. */
HOTPACK_API int hotpack_range_push(const char* name);
HOTPACK_API int hotpack_range_pop(void);

/* Waits until no planning is under way, for at most `timeout_ms` milliseconds; negative: no limit. Returns 1 when
 * idle, 0 after a time-out. */
HOTPACK_API int hotpack_wait_plan(int timeout_ms);

/* With HOTPACK_DEBUG=guard: checks for writes out of bounds around every live block. (Other blocks are checked when
 * they are released.) Waits for the device. Prints one line on stderr for each bad write. Returns the number of bad
 * writes found so far, at releases too; 0 without that mode. Acts on every arena of the process. */
HOTPACK_API uint64_t hotpack_check(void);

/* Why no request was served by a plan so far (hotpack_stats.no_plan_reason). */
enum hotpack_no_plan_reason {
  HOTPACK_NO_PLAN_NONE = 0,          /* requests were */
  HOTPACK_NO_PLAN_TOO_SHORT = 1,     /* too few monitored requests for a first search, or one mark */
  HOTPACK_NO_PLAN_NO_REPETITION = 2, /* searches found no iteration that repeats */
  HOTPACK_NO_PLAN_NOT_READY = 3,     /* the plan of a found iteration is not ready */
  HOTPACK_NO_PLAN_NOT_BEGUN = 4,     /* the plan is ready; its iteration has not begun since */
  HOTPACK_NO_PLAN_DIFFERENT = 5,     /* the iterations are not like the planned ones */
  HOTPACK_NO_PLAN_CAPTURE = 6,       /* the plan waits for the end of a capture */
  HOTPACK_NO_PLAN_TOO_LARGE = 7,     /* the plan does not fit the device */
  HOTPACK_NO_PLAN_DRIVER_FASTER = 8, /* nothing repeats, and the driver's pool is faster: requests are left to it */
  HOTPACK_NO_PLAN_GIVEN_UP = 9       /* the host had no memory for the arena's bookkeeping */
};

/* Figures of the process, summed over its arenas unless stated otherwise. docs/statistics.md explains each. */
typedef struct hotpack_stats {
  uint64_t requests;                   /* allocation requests that hotpack answered */
  uint64_t planned;                    /* ... at the offset of the script */
  uint64_t dynamic;                    /* ... by best fit */
  uint64_t displaced;                  /* ... expected, but the planned addresses were still in use */
  uint64_t passed_through;             /* allocation requests left to the driver */
  uint64_t iterations;                 /* iterations seen, in units of the period in force */
  int64_t steady_iteration;            /* first iteration served completely by script, -1: none */
  uint64_t requests_steady;            /* requests since then */
  uint64_t planned_steady;             /* planned requests since then */
  uint64_t carried;                    /* blocks of the script that live across the iteration boundary */
  uint64_t retained;                   /* blocks live since before the steady iteration, not packed */
  uint64_t plan_height;                /* bytes: height of the placement in force */
  uint64_t plan_lower_bound;           /* bytes: its lower bound */
  uint64_t live_peak;                  /* bytes: largest sum of live sizes, each rounded up to 512 */
  uint64_t reserved_peak;              /* bytes: peak of physical memory held, whole run */
  uint64_t reserved_steady;            /* bytes: peak of physical memory held since the steady iteration */
  uint64_t divergences;                /* times the job left the script */
  uint64_t reoptimizations;            /* plans made after the first */
  uint64_t driver_memory_calls_steady; /* driver allocation calls per steady iteration, rounded up */
  uint64_t heap_allocations_steady;    /* host heap allocations by job threads since the steady iteration */
  uint64_t ns_per_request;             /* nanoseconds: median of the sampled requests served on script, 0: no sample */
  uint64_t detections;                 /* times the history was searched for an iteration */
  uint64_t planning_ns;                /* nanoseconds of processor time of the planning threads */
  uint64_t managed_peak;               /* bytes: peak of blocks in managed memory (HOTPACK_OVERCOMMIT) */
  uint64_t plans;                      /* scripts made: first ones, for further shapes, reoptimizations */
  uint64_t variants;                   /* scripts known now */
  uint64_t switches;                   /* changes from one known script to another */
  uint64_t cross_stream;               /* requests whose memory had to come after work of other streams */
  uint64_t cross_stream_waits;         /* ... times a stream was told to wait for an event */
  uint64_t cross_stream_events;        /* ... events recorded */
  uint64_t cross_stream_host_waits;    /* ... times the host waited for the device */
  uint64_t cross_stream_ns;            /* ... nanoseconds of host time */
  uint64_t plan_stream_edges;          /* waits between streams in one cycle of the plan in force, at most */
  uint64_t plan_stream_edges_avoided;  /* ... that the plan would have if the packer did not know the streams */
  uint64_t peer_copies;                /* copies between devices that became copies between named contexts */
  uint64_t handles_created;            /* calls of cuMemCreate for the arena */
  uint64_t handles_mapped;             /* calls of cuMemMap for the arena */
  uint64_t access_calls;               /* calls of cuMemSetAccess for the arena's new mappings */
  uint64_t page_waits_unfinished;      /* times idle pages did not move, because work was unfinished */
  uint64_t no_plan_reason;             /* why no request was served by a plan: hotpack_no_plan_reason */
  uint64_t envelope_entries;           /* requests of the envelope that is followed, 0: none is */
  uint64_t envelope_bytes;             /* bytes of the host's memory for it */
  uint64_t envelope_jumps;             /* requests that an envelope's expected next one did not stand for */
} hotpack_stats;

/* Fills in the first `size` bytes of a hotpack_stats (pass sizeof). Returns 0, or -1 if there is no arena yet. */
HOTPACK_API int hotpack_get_stats(hotpack_stats* stats, size_t size);

/* Allocates `bytes` (> 0) of device memory for work on `stream` (a CUstream / cudaStream_t, 0: the default stream)
 * in the current context. Returns a CUresult: 0, CUDA_ERROR_OUT_OF_MEMORY (hotpack_explain says why),
 * CUDA_ERROR_INVALID_VALUE, ... */
HOTPACK_API int hotpack_malloc(void** pointer, size_t bytes, void* stream);

/* Releases a block, with the contract of cuMemFreeAsync. All work that uses the block must come before this call's
 * point of `stream`, or be announced by hotpack_record_use. Whichever stream gets the memory next waits for that
 * point. Null is allowed. Returns a CUresult. */
HOTPACK_API int hotpack_free(void* pointer, void* stream);

/* Releases a block to the pool of `stream`, the stream that it was allocated for. The contract is that of caching
 * allocators (PyTorch's, CuPy's):
 * - Work of any stream that was submitted before this call may use the block.
 * - A later request on `stream` may get the memory without an order. The program must ensure that `stream` comes
 *   after the block's uses before it uses memory that it requests there from now on.
 * - Any other stream that gets the memory waits for all work submitted before this call, to any stream of the
 *   contexts that hotpack serves (docs/correctness.md, Pooled releases).
 * Null is allowed. Returns a CUresult. */
HOTPACK_API int hotpack_free_pooled(void* pointer, void* stream);

/* Announces that work on `stream` uses the live block that contains `pointer`, in addition to the stream that its
 * release will name. No stream, not even `stream` itself, gets the memory before that work is done. `stream` must
 * live until the release. The handles of default streams (0, 1) stand for those of all contexts that hotpack serves
 * if streams are kept (hotpack_keep_streams). The release forgets the announcement. Returns 0, or
 * CUDA_ERROR_NOT_FOUND if `pointer` lies in no block of hotpack's. */
HOTPACK_API int hotpack_record_use(void* pointer, void* stream);

/* Makes a promise, before the first request: the program names every stream that uses a block (to hotpack_malloc,
 * hotpack_free or hotpack_record_use), destroys none of these streams, and announces captures. Events then keep the
 * order between streams; without the promise, libhotpack.so alone waits for the stream at every release. Frameworks
 * with their own streams, such as PyTorch, can make it. The preload sees streams itself. There the promise only says
 * that no graph uses memory of hotpack_malloc that is requested on a stream which is not capturing. */
HOTPACK_API void hotpack_keep_streams(void);

/* Excludes `stream` from that promise: the program may destroy it at any time. Its handle must be valid now. Has no
 * effect under the preload, or without the promise. */
HOTPACK_API void hotpack_except_stream(void* stream);

/* For programs that made the promise: some stream may be capturing from now on / no longer. Pairs count. Releases in
 * between are deferred. Memory for a graph must not be requested through this interface. No effect under the
 * preload. */
HOTPACK_API void hotpack_capture_begin(void);
HOTPACK_API void hotpack_capture_end(void);

/* Allows kernels of device `peer` to use the blocks of `device` (ordinals) from now on, as after
 * cuCtxEnablePeerAccess. The preload sees that call itself. Does nothing if there is no arena on `device` yet. */
HOTPACK_API void hotpack_allow_peer(int device, int peer);

/* How a device's memory is used now, in bytes; sums over the process's arenas there. */
typedef struct hotpack_memory {
  uint64_t live;           /* in live blocks, each rounded up to 512 */
  uint64_t reserved;       /* physical memory held by hotpack */
  uint64_t reserved_peak;  /* maximum of it since the beginning or hotpack_reset_peak */
  uint64_t limit;          /* hotpack_set_limit; UINT64_MAX: none */
  uint64_t passed_through; /* requests left to the driver (a count) */
} hotpack_memory;

/* Fills in the first `size` bytes of a hotpack_memory (pass sizeof). Returns 0, or -1 if there is no arena on the
 * device (all fields but the limit are 0 then). */
HOTPACK_API int hotpack_get_memory(int device, hotpack_memory* memory, size_t size);
HOTPACK_API void hotpack_reset_peak(int device);

/* Limits the memory of each arena of the device, including later arenas, to `bytes` from now on (UINT64_MAX: no
 * limit). Requests beyond the limit run out of memory, as if the device had no more. Has no effect on a plain arena.
 * Returns 0, or -1 if `device` is not in [0, 64). */
HOTPACK_API int hotpack_set_limit(int device, uint64_t bytes);

/* Explains why a request for `bytes` bytes finds no memory on `device`: how the memory is used, in one line without
 * its end. Writes at most `size` bytes to `text`, including the closing zero. Makes driver calls. Returns the line's
 * length, 0 if there is nothing to explain. */
HOTPACK_API size_t hotpack_explain(int device, uint64_t bytes, char* text, size_t size);

/* A live block, or a run of addresses that has memory. */
typedef struct hotpack_extent {
  uint64_t address;
  uint64_t bytes;
  int32_t planned; /* of a block: it is served by script */
  int32_t arena;   /* which of the device's arenas, from 0 */
} hotpack_extent;

/* Write the first `capacity` live blocks / runs of mapped memory of `device`, ascending by arena and address. Return
 * the total number. A snapshot of one moment for each arena. O(blocks + memory). */
HOTPACK_API size_t hotpack_list_blocks(int device, hotpack_extent* blocks, size_t capacity);
HOTPACK_API size_t hotpack_list_mapped(int device, hotpack_extent* runs, size_t capacity);

/* A piece of a device's memory that another process can map. */
typedef struct hotpack_piece {
  uint64_t bytes;     /* a multiple of the device's granularity, 2 MiB as a rule */
  int32_t descriptor; /* a file */
  int32_t device;     /* ordinal, of the process that exports */
} hotpack_piece;

/* Exports the memory below `bytes` bytes (> 0) at `pointer`, which must lie in one live block: *count pieces,
 * ascending. The range begins `*offset` bytes into the first one. Opens a file for each piece, which the caller
 * closes; none if there are more than `capacity` pieces. Other blocks lie in the pieces, too, and get the range once
 * the block is released. Returns a CUresult: CUDA_ERROR_NOT_FOUND if hotpack has no such block in memory of its own
 * (a plain arena is no such memory), CUDA_ERROR_NOT_SUPPORTED if the device has no files for memory,
 * CUDA_ERROR_OPERATING_SYSTEM if no more files can be opened. O(pieces). */
HOTPACK_API int hotpack_export(const void* pointer, size_t bytes, hotpack_piece* pieces, size_t capacity, size_t* count,
                               uint64_t* offset);

/* Maps exported pieces, one after the other, for the current context's device; the files stay the caller's.
 * hotpack_end_import(*pointer) waits for the device's work and unmaps them. Both return a CUresult; no partial mapping
 * stays. The mapping stays with CUDA_ERROR_NOT_READY, because work has gone on for a second (it may wait for this
 * thread), and with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
HOTPACK_API int hotpack_import(const hotpack_piece* pieces, size_t count, void** pointer);
HOTPACK_API int hotpack_end_import(void* pointer);

/* Gives memory without live blocks back to the device, for other processes and libraries. Returns the bytes given
 * back; 0 if there are none (or while a stream is capturing). Memory that the job needs again is taken again on
 * request, which costs driver calls. Waits for the device. Acts on every arena of the process. */
HOTPACK_API uint64_t hotpack_trim(void);

/* Saves the current plans for later runs, where HOTPACK_PLAN=path finds them (docs/plan_format.md). `path` may
 * contain %p, %d and %r as HOTPACK_PLAN does; null: the path of HOTPACK_PLAN. Atomically replaces a plan file there;
 * leaves any other file alone. Returns 0, or an errno value: ENODATA if no arena has a plan yet, EINVAL without a
 * path, EEXIST if another file is there, or an error of the file system. Waits for the disk. */
HOTPACK_API int hotpack_save_plan(const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOTPACK_H_ */
