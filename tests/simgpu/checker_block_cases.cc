// Blocks and the memory under them: overlap, releases, uses after release, mappings, graphs. See checker_cases.h.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {

// A reset ends all blocks. Any later use of its arena by the allocator is right.
CASE(DeviceReset) {
  Give(arena, 8192);
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuDevicePrimaryCtxReset(0));
  Start();  // the old context is gone
  MUST(cuMemUnmap(arena, 4 * kPage));
}

// A context's end is the end of the blocks that were given in it, and of no other context's.
CASE(ContextEnds) {
  CUcontext other = nullptr;
  MUST(cuCtxCreate(&other, nullptr, 0, 0));
  Give(arena, 8192);
  MUST(cuCtxDestroy(other));
  MUST(cuMemUnmap(arena, 4 * kPage));
}
CASE(OtherContextEnds) {
  CUcontext other = nullptr;
  MUST(cuCtxCreate(&other, nullptr, 0, 0));
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuDevicePrimaryCtxRelease(0));
  MUST(cuMemFree(p));
}
CASE(OtherContextEndsUnderABlock) {
  CUcontext other = nullptr;
  Give(arena, 8192);
  MUST(cuCtxCreate(&other, nullptr, 0, 0));
  MUST(cuCtxDestroy(other));
  MUST(cuMemUnmap(arena, 4 * kPage));
}

CASE(Overlap) {
  Give(arena, 8192);
  Give(arena + 4096, 8192);
}
CASE(OverlapSame) {
  Give(arena, 8192);
  Give(arena, 8192);
}
CASE(OverlapInside) {
  Give(arena, 8192);
  Give(arena + 512, 512);
}
CASE(Adjacent) {
  Give(arena, 4096);
  Give(arena + 4096, 4096);
  Touch(s1, arena);
  Touch(s2, arena + 4096);
}

CASE(DoubleFree) {
  Give(arena, 8192);
  Return(arena);
  Return(arena);
}
// A release that was refused has not happened.
CASE(RefusedFree) {
  Give(arena, 8192);
  Touch(s1, arena);
  Return(arena);
  Keep(arena);
  Touch(s2, arena + 4096);
  Return(arena);
}
CASE(RefusedFreeThenTwo) {
  Give(arena, 8192);
  Return(arena);
  Keep(arena);
  Return(arena);
  Return(arena);
}
CASE(RefusedFreeKeepsHistory) {
  UsedOnce();
  Give(arena, 8192);
  Return(arena);
  Keep(arena);
  Touch(s2, arena);
}
CASE(RefusedFreeKeepsUses) {
  Give(arena, 8192);
  Touch(s1, arena);
  Return(arena);
  Keep(arena);
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(RefusedFreeWasGivenAway) {
  Give(arena, 8192);
  Return(arena);
  Give(arena + 4096, 8192);
  Keep(arena);
}
CASE(RefusedDoubleFree) {
  Give(arena, 8192);
  Return(arena);
  Return(arena);
  Keep(arena);
  Touch(s1, arena);
}
CASE(KeptOfAnother) {
  Give(arena, 4096);
  Give(arena + 4096, 4096);
  Return(arena);
  Return(arena + 4096);
  Keep(arena);
  Touch(s1, arena);
}
// A capture in global mode refuses cudaFree, the capturing stream cudaFreeAsync.
CASE(FreeInCapture) {
  void *p = nullptr, *q = nullptr;
  CUgraph graph = nullptr;
  if (cudaMalloc(&p, 4096) != cudaSuccess || cudaMallocAsync(&q, 4096, s1) != cudaSuccess) exit(3);
  MUST(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  if (cudaFree(p) != cudaErrorStreamCaptureUnsupported || cudaFreeAsync(q, s1) == cudaSuccess) exit(3);
  cuStreamEndCapture(s1, &graph);  // the refused calls have made it invalid
  if (cudaFree(p) != cudaSuccess || cudaFreeAsync(q, s1) != cudaSuccess) exit(3);
}
CASE(UnknownFree) {
  Give(arena, 8192);
  Return(arena + 256);
}
CASE(DriverDoubleFree) {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuMemFree(p));
  if (cuMemFree(p) != CUDA_ERROR_INVALID_VALUE) exit(3);
}
CASE(DriverUnknownFree) {
  if (cuMemFree(0x1234000) != CUDA_ERROR_INVALID_VALUE) exit(3);
}

CASE(UseAfterFree) {
  UsedOnce();
  Touch(s1, arena + 512);
}
CASE(UseAfterFreeCopy) {
  UsedOnce();
  char c = 0;
  MUST(cuMemcpyHtoDAsync(arena, &c, 1, s1));
}
CASE(UseBeyondEnd) {
  Give(arena, 4096);
  MUST(cuMemsetD8Async(arena, 0, 4097, s1));
}
CASE(UseAfterDriverFree) {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuMemFree(p));
  Touch(s1, p);
}
CASE(UseAfterFreeAsync) {
  CUdeviceptr p = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  MUST(cuMemFreeAsync(p, s1));
  Touch(s1, p);
}
// A word of a struct that points nowhere is padding; a live one is a use.
CASE(StructGarbage) {
  UsedOnce();
  Triple t{arena, 3, 0xdeadbeef};
  double d = 0;
  void* parameters[] = {&t, &d};
  MUST(cuLaunchKernel(Kernel("both"), 1, 1, 1, 1, 1, 1, 0, s1, parameters, nullptr));
}
CASE(StructUse) {
  UsedOnce();
  Give(arena, 8192);
  Triple t{1, 3, arena + 8};
  double d = 0;
  void* parameters[] = {&t, &d};
  MUST(cuLaunchKernel(Kernel("both"), 1, 1, 1, 1, 1, 1, 0, s2, parameters, nullptr));
}
CASE(ExtraBufferUse) {
  UsedOnce();
  Give(arena, 8192);
  uint64_t buffer[3] = {0, 7, arena};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  MUST(cuLaunchKernel(Kernel("many"), 1, 1, 1, 1, 1, 1, 0, s2, nullptr, extra));
}

CASE(UnmapInUse) {
  UsedOnce();
  MUST(cuMemUnmap(arena, kPage));
}
CASE(UnmapAfterSync) {
  UsedOnce();
  MUST(cuStreamSynchronize(s1));
  MUST(cuMemUnmap(arena, kPage));
}
CASE(UnmapOtherPage) {
  UsedOnce();
  MUST(cuMemUnmap(arena + kPage, kPage));
}
CASE(UnmapOwnUse) {
  Touch(s1, arena);
  MUST(cuMemUnmap(arena, kPage));
}  // memory the program mapped itself
CASE(UnmapLive) {
  Give(arena, 4096);
  MUST(cuMemUnmap(arena, kPage));
}
CASE(UseUnmapped) {
  Give(arena + 4 * kPage - 4096, 8192);
  Touch(s1, arena + 4 * kPage - 4096);
}
CASE(UseHole) {
  MUST(cuMemUnmap(arena + kPage, kPage));
  Give(arena, 3 * kPage);
  Touch(s1, arena);
}
CASE(NoAccess) {
  const CUdeviceptr closed = NewArena(1, false);
  Give(closed, 4096);
  Touch(s1, closed);
}
CASE(NoAccessOwn) { Touch(s1, NewArena(1, false)); }
CASE(OwnMapping) {
  Touch(s1, arena);
  Touch(s2, arena);
}  // no allocator here: the program's own memory

// Blocks of the driver itself, without an allocator between.
CASE(DriverBlocks) {
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr p = 0, q = 0;
    MUST(cuMemAlloc(&p, 4096));
    Touch(i % 2 == 0 ? s1 : s2, p);
    MUST(cuMemFree(p));
    MUST(cuMemAllocAsync(&q, 4096, i % 2 == 0 ? s2 : s1));
    Touch(i % 2 == 0 ? s2 : s1, q);
    MUST(cuMemFreeAsync(q, i % 2 == 0 ? s2 : s1));
  }
}
// The pool gives a block to another stream: the driver makes that one wait.
CASE(PoolBlockOtherStream) {
  CUdeviceptr p = 0, q = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  Touch(s1, p);
  MUST(cuMemFreeAsync(p, s1));
  MUST(cuMemAllocAsync(&q, 4096, s2));
  if (p != q) exit(3);
  Touch(s2, q);
}
// Memory of a pool handed to cuMemFree: nothing waits, so the next user is not ordered.
CASE(PoolBlockSyncFree) {
  CUdeviceptr p = 0, q = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  Touch(s1, p);
  MUST(cuMemFree(p));
  MUST(cuMemAllocAsync(&q, 4096, s2));
  if (p != q) exit(3);
  Touch(s2, q);
}
// An arena that is one allocation of the driver: its parts are the blocks.
CASE(ArenaOfOneAllocation) {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 16 << 20));
  Give(p, 4096);
  Give(p + 4096, 4096);
  Touch(s1, p);
  Touch(s2, p + 4096);
  Return(p);
  Return(p + 4096);
  MUST(cuMemFree(p));
}
CASE(ArenaOfOneAllocationBad) {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 16 << 20));
  Give(p, 4096);
  Touch(s1, p);
  Return(p);
  Touch(s1, p);
}

CUgraphExec Capture(CUdeviceptr p) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_RELAXED));
  Touch(s1, p);
  MUST(cuStreamEndCapture(s1, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}
CASE(GraphClean) {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  MUST(cuGraphLaunch(exec, s1));
  EventEdge(s1, s2);
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}
CASE(GraphUnordered) {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  MUST(cuGraphLaunch(exec, s1));
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}
CASE(GraphMemoryGivenAway) {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  Return(arena);
  Give(arena, 4096);
  MUST(cuGraphLaunch(exec, s1));
}

// The same for copies, memsets and library calls. The allocator must keep blocks that the graph outlived.
CUgraphExec CaptureOthers(CUdeviceptr p) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuMemcpyAsync(p, p + 1024, 512, s1));
  MUST(cuMemsetD8Async(p, 1, 512, s1));
  simgpuUse(s1, p, 512, 1);
  MUST(cuStreamEndCapture(s1, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}
CASE(GraphOutlivesItsBlocks) {
  Give(arena, 4096);
  const CUgraphExec kernel = Capture(arena), others = CaptureOthers(arena);
  Return(arena);
  MUST(cuGraphLaunch(kernel, s1));
  MUST(cuGraphLaunch(others, s1));
}
CASE(GraphMemoryGivenAwayOthers) {
  Give(arena, 4096);
  const CUgraphExec exec = CaptureOthers(arena);
  MUST(cuGraphLaunch(exec, s1));
  Return(arena);
  Give(arena, 4096);
  const uint64_t before = simgpuReports();
  MUST(cuGraphLaunch(exec, s1));
  const uint64_t found =
      simgpuReports() - before;  // from, to, the memset, the call; none with the checker switched off
  if (found != 4 && found != 0) exit(3);
}

CASE(ManyReports) {
  for (int i = 0; i < 50; ++i) Return(arena + i * 512);
}

// A leak is not a report; a program's own exit status stays.
CASE(OwnStatus) {
  Return(arena);
  exit(5);
}
CASE(FastExit) {
  Return(arena);
  _exit(0);
}

}  // namespace simgpu_test
