/* What the simulated driver (libcuda.so.1) exports besides the CUDA driver API: how it learns which memory the
 * application was given when an allocator library stands between the application and the driver.
 *
 * Found with dlsym (RTLD_DEFAULT, or the handle of libcuda.so.1); whoever calls them must work without them. All may be
 * called from any thread. None fails: a wrong use is a report. With SIMGPU_CHECK=0 they do nothing. */
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

/* The application was given `bytes` bytes at `address`. Called after the allocation succeeded, before the application
 * sees the address. A block of no stream goes with the context that is current, as cuMemAlloc's does. A block that the driver itself allocated at the same address with the same size is the same block.
 * O(log blocks). */
void simgpuBlockGiven(uint64_t address, size_t bytes, void* stream);

/* The application gives the block at `address` back. Called before the memory is released. O(log blocks). */
void simgpuBlockReturned(uint64_t address, void* stream);

/* The release that this thread told last was refused: the block at `address` stays the application's, as if it had never
 * been told. Called on the same thread, after the refusal. Nothing happens if the last release told was another, or of no
 * block. O(log blocks). */
void simgpuBlockKept(uint64_t address);

/* Work that is not a driver call (a shimmed library function) uses [address, address + bytes) on `stream`. */
void simgpuUse(void* stream, uint64_t address, size_t bytes, int write);

/* One call of a shimmed library that does work; `told` is 1 if simgpuUse tells all memory that it uses. Only counted. */
void simgpuLibraryCall(int told);

/* The application is about to reset the device: its blocks there are gone, and that is no mistake. Called before an
 * allocator between hears of it. */
void simgpuDeviceReset(int device);

/* Reports so far in this process. */
uint64_t simgpuReports(void);

/* depth +1 / -1: this thread is inside a library that tells the checker itself, so a witness below it stays silent.
 * Returns the depth before the change; 0 only asks. */
int simgpuTeller(int change);

#ifdef __cplusplus
}
#endif
#endif
