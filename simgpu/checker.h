/* Exports of the simulated driver (libcuda.so.1) in addition to the CUDA driver API. They tell it which memory the
 * application got when an allocator library stands between the application and the driver.
 *
 * Found with dlsym (RTLD_DEFAULT, or the handle of libcuda.so.1); callers must work without them. Thread-safe. None
 * fails: a wrong use is a report. With SIMGPU_CHECK=0 they do nothing. */
#ifndef SIMGPU_CHECKER_H_
#define SIMGPU_CHECKER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of `stream` in simgpuBlockGiven and simgpuBlockReturned for a request that names no stream. Otherwise it is
 * the CUstream. */
#define SIMGPU_NO_STREAM ((void*)~(uintptr_t)0)

/* Reports that the application got `bytes` bytes at `address`. Call after the allocation succeeded, before the
 * application sees the address. A block without stream belongs to the current context, as cuMemAlloc's does. A block
 * that the driver itself allocated at the same address with the same size is the same block. O(log blocks). */
void simgpuBlockGiven(uint64_t address, size_t bytes, void* stream);

/* Reports that the application gives the block at `address` back. Call before the memory is released. O(log blocks). */
void simgpuBlockReturned(uint64_t address, void* stream);

/* Reports that the last release that this thread reported was refused: the application still has the block at
 * `address`. Call on the same thread, after the refusal. Does nothing if the last reported release was another, or of
 * no block. O(log blocks). */
void simgpuBlockKept(uint64_t address);

/* Reports that work that is no driver call (a shimmed library function) uses [address, address + bytes) on `stream`. */
void simgpuUse(void* stream, uint64_t address, size_t bytes, int write);

/* Counts a call of a shimmed library that does work. `told` is 1 if simgpuUse reports all memory that it uses. */
void simgpuLibraryCall(int told);

/* Reports that the application is about to reset the device. Its blocks there end, which is no error. Call before an
 * allocator in between learns of it. */
void simgpuDeviceReset(int device);

/* Returns the number of reports so far in this process. */
uint64_t simgpuReports(void);

/* Virtual time (SIMGPU_TIME), in nanoseconds. 0 without it. Of the calling thread's clock; of the last end of all work
 * and clocks so far; of all waits of hosts for the device. */
uint64_t simgpuTimeHost(void);
uint64_t simgpuTimeMakespan(void);
uint64_t simgpuTimeWaited(void);

/* Returns the time that all threads' calls of an entry point took without waits. `base`: its name without version
 * ("cuMemAlloc"); null: all entry points. */
uint64_t simgpuTimeInCalls(const char* base);

/* Keeps the calling thread's clock under `name` (a copy), for the list of marks in SIMGPU_TIME_FILE. */
void simgpuTimeMark(const char* name);

/* Adds `change` (+1 or -1) to this thread's depth inside a library that tells the checker itself. At depth above 0 a
 * witness below stays silent. Returns the depth before the change; 0 only queries. */
int simgpuTeller(int change);

#ifdef __cplusplus
}
#endif
#endif
