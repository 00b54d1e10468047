// Memory that is used again, with and without an order. See checker_cases.h.
#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {

CASE(ReuseUnordered) {
  UsedOnce();
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReusePartly) {
  UsedOnce();
  Give(arena + 4096, 8192);
  Touch(s2, arena + 4096);
}
CASE(ReuseSameStream) {
  UsedOnce();
  Give(arena, 8192);
  Touch(s1, arena);
}
CASE(ReuseAfterEvent) {
  UsedOnce();
  EventEdge(s1, s2);
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseEventWrongWay) {
  UsedOnce();
  EventEdge(s2, s1);
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseAfterStreamSync) {
  UsedOnce();
  MUST(cuStreamSynchronize(s1));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseAfterOtherSync) {
  UsedOnce();
  MUST(cuStreamSynchronize(s2));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseAfterQuery) {
  UsedOnce();
  MUST(cuStreamQuery(s1));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseAfterContextSync) {
  UsedOnce();
  MUST(cuCtxSynchronize());
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseByCopy) {
  UsedOnce();
  Give(arena, 8192);
  MUST(cuMemcpyDtoDAsync(arena + 16, arena + 4096, 16, s2));
}
CASE(ReuseBySet) {
  UsedOnce();
  Give(arena, 8192);
  MUST(cuMemsetD8Async(arena, 1, 16, s2));
}
CASE(ReuseByLibrary) {
  UsedOnce();
  Give(arena, 8192);
  simgpuUse(s2, arena, 16, 1);
}

CASE(ReuseEventTooEarly) {
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
CASE(ReuseAfterEventSync) {
  UsedOnce();
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  MUST(cuEventSynchronize(event));
  Give(arena, 8192);
  Touch(s2, arena);
}

// s1 → event → s3 → event → s2.
CASE(ReuseThroughThird) {
  UsedOnce();
  const CUstream s3 = NewStream();
  EventEdge(s1, s3);
  EventEdge(s3, s2);
  Give(arena, 8192);
  Touch(s2, arena);
}

// A block in between that was not used must not hide the use before it.
CASE(ReuseBehindUnused) {
  UsedOnce();
  Give(arena, 4096);
  Return(arena);
  Give(arena, 4096);
  Touch(s2, arena);
}

// The second stream that uses the new block is not ordered, though the first is.
CASE(ReuseSecondStream) {
  UsedOnce();
  EventEdge(s1, s2);
  Give(arena, 8192);
  Touch(s2, arena);
  Touch(NewStream(), arena);
}

// Used by two streams; the new user waits for one of them only.
CASE(ReuseOneOfTwo) {
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
CASE(ReuseLegacyBlocking) {
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
CASE(ReuseLegacyNonBlocking) {
  UsedOnce();
  Give(arena, 8192);
  Touch(nullptr, arena);
}

// A stream that is destroyed has not finished.
CASE(ReuseDestroyedStream) {
  const CUstream gone = NewStream();
  Give(arena, 8192);
  Touch(gone, arena);
  MUST(cuStreamDestroy(gone));
  Return(arena);
  Give(arena, 8192);
  Touch(NewStream(), arena);
}

// A synchronous copy from the device waits for its own stream, and so for that stream's waits.
CASE(ReuseAfterSyncCopy) {
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
CASE(ReuseAfterPageableCopy) {
  Give(arena, 8192);
  char byte = 0;
  MUST(cuMemcpyDtoHAsync(&byte, arena, 1, s1));
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ReuseAfterPinnedCopy) {
  Give(arena, 8192);
  void* byte = nullptr;
  MUST(cuMemHostAlloc(&byte, 1, 0));
  MUST(cuMemcpyDtoHAsync(byte, arena, 1, s1));
  Return(arena);
  Give(arena, 8192);
  Touch(s2, arena);
}

}  // namespace simgpu_test
