/* libhotpack_torch.so: hotpack behind torch.cuda.memory.CUDAPluggableAllocator. python/hotpack registers these
 * functions and reads the figures. Needs no PyTorch headers. Thread-safe. Blocks come from hotpack_malloc (hotpack.h)
 * of libhotpack_preload.so if that is loaded, else of libhotpack.so.
 *
 * `device` is a CUDA ordinal in [0, 64), `stream` a cudaStream_t. Sizes are bytes. */
#ifndef HOTPACK_TORCH_H_
#define HOTPACK_TORCH_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- called by PyTorch (torch/csrc/cuda/CUDAPluggableAllocator.h); the two of pools, with C++ types, are in
 * graph_pools.cc --- */

/* Throws torch.OutOfMemoryError (c10::OutOfMemoryError, else std::runtime_error) with PyTorch's beginning of the text
 * and hotpack's diagnosis. Returns null for size 0. */
void* hotpack_torch_malloc(ssize_t size, int device, void* stream);
void hotpack_torch_free(void* pointer, ssize_t size, int device, void* stream);
void hotpack_torch_init(int device_count);
void hotpack_torch_reset(void); /* empty_cache */
void hotpack_torch_memory_fraction(double fraction, int device);
void* hotpack_torch_base_alloc(void* pointer, size_t* size);
void hotpack_torch_record_stream(void* pointer, void* stream);

/* --- blocks that other processes use (hotpack_export) --- */

/* Holds the live block that starts at `pointer`: its release waits for as many calls of hotpack_torch_drop as there
 * were of hotpack_torch_hold. Until then its memory stays where it is, and counts as allocated. Returns 0, or -1 if the
 * host is out of memory. */
int hotpack_torch_hold(void* pointer);
/* Ends one hold. Releases the block if PyTorch has done so meanwhile, and this was the last hold. */
void hotpack_torch_drop(void* pointer);

/* --- figures, as torch.cuda.memory_stats names them --- */

typedef struct hotpack_torch_stat {
  uint64_t current, peak, allocated, freed;
} hotpack_torch_stat;

/* [0] all, [1] small pool (at most 1 MiB), [2] large pool: PyTorch's division, which hotpack itself does not make. */
typedef struct hotpack_torch_stats {
  hotpack_torch_stat allocation[3];      /* blocks */
  hotpack_torch_stat allocated_bytes[3]; /* their bytes, each block rounded up to 512 */
  hotpack_torch_stat requested_bytes[3]; /* their requested bytes */
  hotpack_torch_stat segment;            /* runs of mapped memory: current only */
  hotpack_torch_stat reserved_bytes;     /* held by hotpack; allocated and freed are not counted */
  uint64_t num_ooms;
  double fraction; /* of the last hotpack_torch_memory_fraction; 1 at first */
} hotpack_torch_stats;

/* Returns 0; -1 if `device` is out of range. */
int hotpack_torch_get_stats(int device, hotpack_torch_stats* stats, size_t size);
int hotpack_torch_reset_peak(int device);
int hotpack_torch_reset_accumulated(int device);

/* --- history, for snapshots --- */

enum hotpack_torch_action { HOTPACK_TORCH_ALLOC, HOTPACK_TORCH_FREE, HOTPACK_TORCH_OOM, HOTPACK_TORCH_SNAPSHOT };

typedef struct hotpack_torch_event {
  uint64_t address; /* of OOM: free bytes */
  uint64_t bytes;   /* requested */
  uint64_t stream;
  int64_t time_us; /* since the epoch */
  int32_t action;  /* hotpack_torch_action */
  int32_t device;
} hotpack_torch_event;

/* Keeps the last `entries` events from now on (0: stops and forgets all), and the requested bytes of live blocks.
 * `clear`: forgets earlier ones first. Returns 0, or -1 if the host is out of memory. */
int hotpack_torch_record(uint64_t entries, int clear);

/* Writes the first `capacity` events, oldest first / the live blocks known since recording began (action ALLOC, no
 * order). Returns their total number. */
size_t hotpack_torch_events(hotpack_torch_event* events, size_t capacity);
size_t hotpack_torch_live(hotpack_torch_event* blocks, size_t capacity);
void hotpack_torch_mark_snapshot(int device);

/* Device memory in segments of graph pools: PyTorch's private pools. As hotpack_list_mapped. */
typedef struct hotpack_torch_segment {
  uint64_t address, bytes, live;
  uint64_t pool[2];
} hotpack_torch_segment;
size_t hotpack_torch_segments(int device, hotpack_torch_segment* segments, size_t capacity);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
