// One small program a case: what a wrong (or right) allocator, or program, does. `checker_cases` lists them;
// `checker_cases NAME` runs one; checker_test.cc says which report each must give.
//
// The "allocator" is this file: it maps an arena and tells the checker which parts of it the application got.
#include <unistd.h>

#include <map>
#include <string>

#include "simgpu/checker.h"
#include "tests/simgpu/support.h"

namespace {

using simgpu_test::Kernel;
using simgpu_test::kPage;
using simgpu_test::NewArena;
using simgpu_test::NewEvent;
using simgpu_test::NewStream;
using simgpu_test::Touch;
using simgpu_test::Triple;

void Give(CUdeviceptr address, size_t bytes) { simgpuBlockGiven(address, bytes, SIMGPU_NO_STREAM); }
void Return(CUdeviceptr address) { simgpuBlockReturned(address, SIMGPU_NO_STREAM); }

CUdeviceptr arena;
CUstream s1, s2;

// A block used on s1, returned, and given again in part.
void UsedOnce() {
  Give(arena, 8192);
  Touch(s1, arena);
  Return(arena);
}

void EventEdge(CUstream from, CUstream to) {
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, from));
  MUST(cuStreamWaitEvent(to, event, 0));
  MUST(cuEventDestroy(event));
}

void ReuseUnordered() { UsedOnce(); Give(arena, 8192); Touch(s2, arena); }
void ReusePartly() { UsedOnce(); Give(arena + 4096, 8192); Touch(s2, arena + 4096); }
void ReuseSameStream() { UsedOnce(); Give(arena, 8192); Touch(s1, arena); }
void ReuseAfterEvent() { UsedOnce(); EventEdge(s1, s2); Give(arena, 8192); Touch(s2, arena); }
void ReuseEventWrongWay() { UsedOnce(); EventEdge(s2, s1); Give(arena, 8192); Touch(s2, arena); }
void ReuseAfterStreamSync() { UsedOnce(); MUST(cuStreamSynchronize(s1)); Give(arena, 8192); Touch(s2, arena); }
void ReuseAfterOtherSync() { UsedOnce(); MUST(cuStreamSynchronize(s2)); Give(arena, 8192); Touch(s2, arena); }
void ReuseAfterQuery() { UsedOnce(); MUST(cuStreamQuery(s1)); Give(arena, 8192); Touch(s2, arena); }
void ReuseAfterContextSync() { UsedOnce(); MUST(cuCtxSynchronize()); Give(arena, 8192); Touch(s2, arena); }
void ReuseByCopy() { UsedOnce(); Give(arena, 8192); MUST(cuMemcpyDtoDAsync(arena + 16, arena + 4096, 16, s2)); }
void ReuseBySet() { UsedOnce(); Give(arena, 8192); MUST(cuMemsetD8Async(arena, 1, 16, s2)); }
void ReuseByLibrary() { UsedOnce(); Give(arena, 8192); simgpuUse(s2, arena, 16, 1); }

void ReuseEventTooEarly() {
  Give(arena, 8192);
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  Touch(s1, arena);  // after the record
  Return(arena);
  MUST(cuStreamWaitEvent(s2, event, 0));
  Give(arena, 8192);
  Touch(s2, arena);
}

// The event is known to the host, the wait is not needed.
void ReuseAfterEventSync() {
  UsedOnce();
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  MUST(cuEventSynchronize(event));
  Give(arena, 8192);
  Touch(s2, arena);
}

// s1 → event → s3 → event → s2.
void ReuseThroughThird() {
  UsedOnce();
  const CUstream s3 = NewStream();
  EventEdge(s1, s3);
  EventEdge(s3, s2);
  Give(arena, 8192);
  Touch(s2, arena);
}

// A block in between that nobody used must not hide the use before it.
void ReuseBehindUnused() {
  UsedOnce();
  Give(arena, 4096);
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}

// The second stream that uses the new block is not ordered, though the first is.
void ReuseSecondStream() {
  UsedOnce();
  EventEdge(s1, s2);
  Give(arena, 8192);
  Touch(s2, arena);
  Touch(NewStream(), arena);
}

// Used by two streams; the new user waits for one of them only.
void ReuseOneOfTwo() {
  Give(arena, 8192);
  Touch(s1, arena);
  Touch(s2, arena);
  Return(arena);
  const CUstream s3 = NewStream();
  EventEdge(s1, s3);
  Give(arena, 8192);
  Touch(s3, arena);
}

// The legacy default stream comes after blocking streams, and not after others.
void ReuseLegacyBlocking() {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  Give(arena, 8192);
  Touch(blocking, arena);
  Return(arena);
  Give(arena, 8192);
  Touch(nullptr, arena);
  Return(arena);
  Give(arena, 8192);
  Touch(NewStream(CU_STREAM_DEFAULT), arena);  // after the legacy stream
}
void ReuseLegacyNonBlocking() { UsedOnce(); Give(arena, 8192); Touch(nullptr, arena); }

// A stream that is destroyed has not finished.
void ReuseDestroyedStream() {
  const CUstream gone = NewStream();
  Give(arena, 8192);
  Touch(gone, arena);
  MUST(cuStreamDestroy(gone));
  Return(arena);
  Give(arena, 8192);
  Touch(NewStream(), arena);
}

// A synchronous copy from the device waits for its own stream, so for what that waited for.
void ReuseAfterSyncCopy() {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  Give(arena, 8192);
  Give(arena + kPage, 8192);
  Touch(blocking, arena);
  char byte = 0;
  MUST(cuMemcpyDtoH(&byte, arena + kPage, 1));
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}

// So does an asynchronous one to pageable memory, and not one to pinned memory.
void ReuseAfterPageableCopy() {
  Give(arena, 8192);
  char byte = 0;
  MUST(cuMemcpyDtoHAsync(&byte, arena, 1, s1));
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}
void ReuseAfterPinnedCopy() {
  Give(arena, 8192);
  void* byte = nullptr;
  MUST(cuMemHostAlloc(&byte, 1, 0));
  MUST(cuMemcpyDtoHAsync(byte, arena, 1, s1));
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}

// A reset ends all blocks; what the allocator then does with its arena is right.
void DeviceReset() {
  Give(arena, 8192);
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuDevicePrimaryCtxReset(0));
  MUST(cuMemUnmap(arena, 4 * kPage));
}

void Overlap() { Give(arena, 8192); Give(arena + 4096, 8192); }
void OverlapSame() { Give(arena, 8192); Give(arena, 8192); }
void OverlapInside() { Give(arena, 8192); Give(arena + 512, 512); }
void Adjacent() { Give(arena, 4096); Give(arena + 4096, 4096); Touch(s1, arena); Touch(s2, arena + 4096); }

void DoubleFree() { Give(arena, 8192); Return(arena); Return(arena); }
void UnknownFree() { Give(arena, 8192); Return(arena + 256); }
void DriverDoubleFree() {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuMemFree(p));
  if (cuMemFree(p) != CUDA_ERROR_INVALID_VALUE) exit(3);
}
void DriverUnknownFree() {
  if (cuMemFree(0x1234000) != CUDA_ERROR_INVALID_VALUE) exit(3);
}

void UseAfterFree() { UsedOnce(); Touch(s1, arena + 512); }
void UseAfterFreeCopy() { UsedOnce(); char c = 0; MUST(cuMemcpyHtoDAsync(arena, &c, 1, s1)); }
void UseBeyondEnd() { Give(arena, 4096); MUST(cuMemsetD8Async(arena, 0, 4097, s1)); }
void UseAfterDriverFree() {
  CUdeviceptr p = 0;
  MUST(cuMemAlloc(&p, 4096));
  MUST(cuMemFree(p));
  Touch(s1, p);
}
void UseAfterFreeAsync() {
  CUdeviceptr p = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  MUST(cuMemFreeAsync(p, s1));
  Touch(s1, p);
}
// A word of a struct that points nowhere is padding; a live one is a use.
void StructGarbage() {
  UsedOnce();
  Triple t{arena, 3, 0xdeadbeef};
  double d = 0;
  void* parameters[] = {&t, &d};
  MUST(cuLaunchKernel(Kernel("both"), 1, 1, 1, 1, 1, 1, 0, s1, parameters, nullptr));
}
void StructUse() {
  UsedOnce();
  Give(arena, 8192);
  Triple t{1, 3, arena + 8};
  double d = 0;
  void* parameters[] = {&t, &d};
  MUST(cuLaunchKernel(Kernel("both"), 1, 1, 1, 1, 1, 1, 0, s2, parameters, nullptr));
}
void ExtraBufferUse() {
  UsedOnce();
  Give(arena, 8192);
  uint64_t buffer[3] = {0, 7, arena};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  MUST(cuLaunchKernel(Kernel("many"), 1, 1, 1, 1, 1, 1, 0, s2, nullptr, extra));
}

void UnmapInUse() { UsedOnce(); MUST(cuMemUnmap(arena, kPage)); }
void UnmapAfterSync() { UsedOnce(); MUST(cuStreamSynchronize(s1)); MUST(cuMemUnmap(arena, kPage)); }
void UnmapOtherPage() { UsedOnce(); MUST(cuMemUnmap(arena + kPage, kPage)); }
void UnmapOwnUse() { Touch(s1, arena); MUST(cuMemUnmap(arena, kPage)); }  // memory the program mapped itself
void UnmapLive() { Give(arena, 4096); MUST(cuMemUnmap(arena, kPage)); }
void UseUnmapped() { Give(arena + 4 * kPage - 4096, 8192); Touch(s1, arena + 4 * kPage - 4096); }
void UseHole() {
  MUST(cuMemUnmap(arena + kPage, kPage));
  Give(arena, 3 * kPage);
  Touch(s1, arena);
}
void NoAccess() {
  const CUdeviceptr closed = NewArena(1, false);
  Give(closed, 4096);
  Touch(s1, closed);
}
void NoAccessOwn() { Touch(s1, NewArena(1, false)); }
void OwnMapping() { Touch(s1, arena); Touch(s2, arena); }  // no allocator here: the program's own memory

// Blocks of the driver itself, without an allocator between.
void DriverBlocks() {
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
void PoolBlockOtherStream() {
  CUdeviceptr p = 0, q = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  Touch(s1, p);
  MUST(cuMemFreeAsync(p, s1));
  MUST(cuMemAllocAsync(&q, 4096, s2));
  if (p != q) exit(3);
  Touch(s2, q);
}
// Memory of a pool handed to cuMemFree: nothing waits, so the next user is not ordered.
void PoolBlockSyncFree() {
  CUdeviceptr p = 0, q = 0;
  MUST(cuMemAllocAsync(&p, 4096, s1));
  Touch(s1, p);
  MUST(cuMemFree(p));
  MUST(cuMemAllocAsync(&q, 4096, s2));
  if (p != q) exit(3);
  Touch(s2, q);
}
// An arena that is one allocation of the driver: its parts are the blocks.
void ArenaOfOneAllocation() {
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
void ArenaOfOneAllocationBad() {
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
void GraphClean() {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  MUST(cuGraphLaunch(exec, s1));
  EventEdge(s1, s2);
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}
void GraphUnordered() {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  MUST(cuGraphLaunch(exec, s1));
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}
void GraphMemoryGivenAway() {
  Give(arena, 4096);
  const CUgraphExec exec = Capture(arena);
  Return(arena);
  Give(arena, 4096);
  MUST(cuGraphLaunch(exec, s1));
}

void ManyReports() {
  for (int i = 0; i < 50; ++i) Return(arena + i * 512);
}

// A leak is not a report; a program's own exit status stays.
void OwnStatus() { Return(arena); exit(5); }
void FastExit() { Return(arena); _exit(0); }

using Case = void (*)();
const std::map<std::string, Case>& Cases() {
#define CASE(name) {#name, name}
  static const std::map<std::string, Case> cases = {
      CASE(ReuseUnordered), CASE(ReusePartly), CASE(ReuseSameStream), CASE(ReuseAfterEvent), CASE(ReuseEventWrongWay),
      CASE(ReuseAfterStreamSync), CASE(ReuseAfterOtherSync), CASE(ReuseAfterQuery), CASE(ReuseAfterContextSync),
      CASE(ReuseByCopy), CASE(ReuseBySet), CASE(ReuseByLibrary), CASE(ReuseEventTooEarly), CASE(ReuseAfterEventSync),
      CASE(ReuseThroughThird), CASE(ReuseBehindUnused), CASE(ReuseSecondStream), CASE(ReuseOneOfTwo),
      CASE(ReuseLegacyBlocking), CASE(ReuseLegacyNonBlocking), CASE(ReuseDestroyedStream), CASE(ReuseAfterSyncCopy),
      CASE(ReuseAfterPageableCopy), CASE(ReuseAfterPinnedCopy), CASE(DeviceReset),
      CASE(Overlap), CASE(OverlapSame), CASE(OverlapInside), CASE(Adjacent), CASE(DoubleFree), CASE(UnknownFree),
      CASE(DriverDoubleFree), CASE(DriverUnknownFree), CASE(UseAfterFree), CASE(UseAfterFreeCopy), CASE(UseBeyondEnd),
      CASE(UseAfterDriverFree), CASE(UseAfterFreeAsync), CASE(StructGarbage), CASE(StructUse), CASE(ExtraBufferUse),
      CASE(UnmapInUse), CASE(UnmapAfterSync), CASE(UnmapOtherPage), CASE(UnmapOwnUse), CASE(UnmapLive),
      CASE(UseUnmapped), CASE(UseHole), CASE(NoAccess), CASE(NoAccessOwn), CASE(OwnMapping), CASE(DriverBlocks),
      CASE(PoolBlockSyncFree), CASE(PoolBlockOtherStream), CASE(ArenaOfOneAllocation), CASE(ArenaOfOneAllocationBad), CASE(GraphClean),
      CASE(GraphUnordered), CASE(GraphMemoryGivenAway), CASE(ManyReports), CASE(OwnStatus), CASE(FastExit)};
#undef CASE
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, run] : Cases()) printf("%s\n", name.c_str());
    return 0;
  }
  const auto found = Cases().find(argv[1]);
  if (found == Cases().end()) return 2;
  simgpu_test::Start();
  arena = NewArena(4);
  s1 = NewStream();
  s2 = NewStream();
  found->second();
  return 0;
}
