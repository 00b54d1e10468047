// Orders by events of whole contexts (cuCtxRecordEvent, cuCtxWaitEvent). See checker_cases.h.
#include <thread>

#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {
namespace {

CUcontext Current() {
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  return context;
}

// A context of its own, which does not stay current.
CUcontext OtherContext() {
  CUcontext context = nullptr;
  MUST(cuCtxCreate(&context, nullptr, 0, 0));
  MUST(cuCtxPopCurrent(nullptr));
  return context;
}

CUstream StreamOf(CUcontext context) {
  MUST(cuCtxPushCurrent(context));
  const CUstream stream = NewStream();
  MUST(cuCtxPopCurrent(nullptr));
  return stream;
}

CUevent EventOf(CUcontext context) {
  MUST(cuCtxPushCurrent(context));
  const CUevent event = NewEvent();
  MUST(cuCtxPopCurrent(nullptr));
  return event;
}

CUevent RecordedContext() {
  const CUevent event = NewEvent();
  MUST(cuCtxRecordEvent(Current(), event));
  return event;
}

// A block used on `used`; s2 uses the next one there, after an event of the context.
void RecordAfterUseOn(CUstream used) {
  Give(arena, 8192);
  Touch(used, arena);
  Return(arena);
  MUST(cuStreamWaitEvent(s2, RecordedContext(), 0));
  Give(arena, 8192);
  Touch(s2, arena);
}

// A block used on s1, and then the context waits for s1.
void UsedAndContextWaits() {
  UsedOnce();
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  MUST(cuCtxWaitEvent(Current(), event));
  Give(arena, 8192);
}

void WaitThenUseOn(CUstream user) {
  UsedAndContextWaits();
  Touch(user, arena);
}

}  // namespace

CASE(ContextRecordLegacy) { RecordAfterUseOn(CU_STREAM_LEGACY); }
CASE(ContextRecordBlocking) { RecordAfterUseOn(NewStream(CU_STREAM_DEFAULT)); }
CASE(ContextRecordNonBlocking) { RecordAfterUseOn(s1); }
CASE(ContextRecordPerThread) { RecordAfterUseOn(CU_STREAM_PER_THREAD); }
CASE(ContextRecordDestroyed) {
  const CUstream gone = NewStream();
  Give(arena, 8192);
  Touch(gone, arena);
  MUST(cuStreamDestroy(gone));
  Return(arena);
  MUST(cuStreamWaitEvent(s2, RecordedContext(), 0));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextRecordSeveral) {
  Give(arena, 8192);
  Touch(s1, arena);
  Touch(NewStream(CU_STREAM_DEFAULT), arena);
  Touch(NewStream(), arena);
  Return(arena);
  MUST(cuStreamWaitEvent(s2, RecordedContext(), 0));
  Give(arena, 8192);
  Touch(s2, arena);
}

CASE(ContextRecordTooEarly) {
  Give(arena, 8192);
  const CUevent event = RecordedContext();
  Touch(s1, arena);  // after the record
  Return(arena);
  MUST(cuStreamWaitEvent(s2, event, 0));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextRecordNotWaitedFor) {
  UsedOnce();
  RecordedContext();
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextRecordOfOther) {
  UsedOnce();
  const CUcontext other = OtherContext();
  const CUevent event = EventOf(other);
  MUST(cuCtxRecordEvent(other, event));
  MUST(cuStreamWaitEvent(s2, event, 0));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextRecordSync) {
  UsedOnce();
  MUST(cuEventSynchronize(RecordedContext()));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextRecordQuery) {
  UsedOnce();
  MUST(cuEventQuery(RecordedContext()));
  Give(arena, 8192);
  Touch(s2, arena);
}
// The last record counts: it replaces the event's earlier one.
CASE(ContextRecordReplaced) {
  UsedOnce();
  const CUevent event = RecordedContext();
  MUST(cuEventRecord(event, NewStream()));
  MUST(cuStreamWaitEvent(s2, event, 0));
  Give(arena, 8192);
  Touch(s2, arena);
}

CASE(ContextWaitLegacy) { WaitThenUseOn(CU_STREAM_LEGACY); }
CASE(ContextWaitBlocking) {
  const CUstream user = NewStream(CU_STREAM_DEFAULT);
  WaitThenUseOn(user);
}
CASE(ContextWaitNonBlocking) { WaitThenUseOn(s2); }
CASE(ContextWaitPerThread) {
  Give(arena + kPage, 512);
  Touch(CU_STREAM_PER_THREAD, arena + kPage);  // it exists
  WaitThenUseOn(CU_STREAM_PER_THREAD);
}
CASE(ContextWaitLaterStream) {
  UsedAndContextWaits();
  Touch(NewStream(), arena);
}
CASE(ContextWaitLaterThread) {
  UsedAndContextWaits();
  const CUcontext context = Current();
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    Touch(CU_STREAM_PER_THREAD, arena);
  }).join();
}
// The number of a stream that is finished and destroyed is used again.
CASE(ContextWaitLaterStreamOldNumber) {
  const CUstream gone = NewStream();
  Touch(gone, arena + kPage);
  MUST(cuStreamSynchronize(gone));
  MUST(cuStreamDestroy(gone));
  UsedAndContextWaits();
  Touch(NewStream(), arena);
}
CASE(ContextWaitTwice) {
  const CUevent other = NewEvent();
  MUST(cuEventRecord(other, s2));
  UsedAndContextWaits();
  MUST(cuCtxWaitEvent(Current(), other));  // does not replace the first wait
  Touch(NewStream(), arena);
}
// A stream that was made after the wait and did nothing: a stream of another context does not inherit its wait
// with its number.
CASE(ContextWaitIsNotInherited) {
  const CUcontext other = OtherContext();
  UsedAndContextWaits();
  MUST(cuStreamDestroy(NewStream()));
  Touch(StreamOf(other), arena);
}

CASE(ContextWaitNotRecorded) {
  UsedOnce();
  MUST(cuCtxWaitEvent(Current(), NewEvent()));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextWaitTooEarly) {
  Give(arena, 8192);
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  Touch(s1, arena);  // after the record
  Return(arena);
  MUST(cuCtxWaitEvent(Current(), event));
  Give(arena, 8192);
  Touch(s2, arena);
}
// Work that was submitted before the wait does not wait.
CASE(ContextWaitTooLate) {
  UsedOnce();
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  Give(arena, 8192);
  Touch(s2, arena);
  MUST(cuCtxWaitEvent(Current(), event));
}
// The wait is no order between the streams that wait, not even between two that both know the legacy stream.
CASE(ContextWaitAddsNothing) {
  const CUstream first = NewStream(CU_STREAM_DEFAULT), second = NewStream(CU_STREAM_DEFAULT);
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  Give(arena, 8192);
  Touch(first, arena);
  Return(arena);
  MUST(cuCtxWaitEvent(Current(), event));
  Give(arena, 8192);
  Touch(second, arena);
}
CASE(ContextWaitOfOther) {
  UsedOnce();
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, s1));
  MUST(cuCtxWaitEvent(OtherContext(), event));
  Give(arena, 8192);
  Touch(s2, arena);
}
CASE(ContextWaitForOther) {
  const CUcontext other = OtherContext();
  const CUstream there = StreamOf(other);
  const CUevent event = EventOf(other);
  UsedOnce();
  MUST(cuStreamWaitEvent(there, RecordedContext(), 0));
  MUST(cuCtxRecordEvent(other, event));
  MUST(cuCtxWaitEvent(Current(), event));
  Give(arena, 8192);
  Touch(NewStream(), arena);
}
// A stream that comes after one that waited comes after the event.
CASE(ContextWaitThenEdge) {
  UsedAndContextWaits();
  const CUstream third = NewStream();
  EventEdge(s2, third);
  Touch(third, arena);
}

}  // namespace simgpu_test
