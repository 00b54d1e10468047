// cuCtxRecordEvent and cuCtxWaitEvent: their errors, and their effects on captures (cuda.h). Their orders are in
// checker_context_cases.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

class ContextEventTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = Start();
    event_ = NewEvent();
  }
  static CUcontext OtherContext() {
    CUcontext context = nullptr;
    MUST(cuCtxCreate(&context, nullptr, 0, 0));
    MUST(cuCtxPopCurrent(nullptr));
    return context;
  }
  static CUstreamCaptureStatus Status(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    return status;
  }
  static CUstream Capturing(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED) {
    const CUstream stream = NewStream();
    MUST(cuStreamBeginCapture(stream, mode));
    EXPECT_EQ(Status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    return stream;
  }
  // The capture was invalidated: no graph, and the stream works again.
  static void ExpectEndsInvalid(CUstream stream) {
    EXPECT_EQ(Status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  static void ExpectEndsWell(CUstream stream) {
    EXPECT_EQ(Status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_NE(graph, nullptr);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
  CUevent event_ = nullptr;
};

TEST_F(ContextEventTest, RefusesBadHandles) {
  const CUcontext gone = OtherContext();
  EXPECT_EQ(cuCtxDestroy(gone), CUDA_SUCCESS);
  const CUevent destroyed = NewEvent();
  EXPECT_EQ(cuEventDestroy(destroyed), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(nullptr, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxRecordEvent(gone, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxRecordEvent(context_, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxRecordEvent(context_, destroyed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxWaitEvent(nullptr, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxWaitEvent(gone, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxWaitEvent(context_, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxWaitEvent(context_, destroyed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(ContextEventTest, RecordsOwnEventsOnlyAndWaitsForAny) {
  const CUcontext other = OtherContext();
  const CUstream capturing = Capturing();
  EXPECT_EQ(cuCtxRecordEvent(other, event_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxWaitEvent(other, event_), CUDA_SUCCESS);
  ExpectEndsWell(capturing);  // of another context than was meant
  EXPECT_EQ(cuCtxRecordEvent(context_, event_), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxWaitEvent(other, event_), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
}

TEST_F(ContextEventTest, NeedsNoCurrentContext) {
  std::thread([&] {
    EXPECT_EQ(cuCtxRecordEvent(context_, event_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxWaitEvent(context_, event_), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event_), CUDA_SUCCESS);
  }).join();
}

TEST_F(ContextEventTest, TimesTheContext) {
  CUevent first = nullptr, second = nullptr;
  ASSERT_EQ(cuEventCreate(&first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&second, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(context_, first), CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(cuCtxRecordEvent(context_, second), CUDA_SUCCESS);
  float ms = -1;
  EXPECT_EQ(cuEventElapsedTime(&ms, first, second), CUDA_SUCCESS);
  EXPECT_GE(ms, 2);
  EXPECT_LT(ms, 600000);
}

// Every capture of the context, whatever its mode, its thread, or the mode of the calling thread.
TEST_F(ContextEventTest, InvalidatesAllCapturesOfTheContext) {
  for (const auto call : {cuCtxRecordEvent, cuCtxWaitEvent}) {
    const CUstream relaxed = Capturing(), global = Capturing(CU_STREAM_CAPTURE_MODE_GLOBAL),
                   local = Capturing(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    std::thread([&] {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
      EXPECT_EQ(call(context_, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }).join();
    ExpectEndsInvalid(relaxed);
    EXPECT_EQ(call(context_, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << "two more capture";
    ExpectEndsInvalid(global);
    EXPECT_EQ(call(context_, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << "an invalid one goes on";
    ExpectEndsInvalid(local);
    EXPECT_EQ(call(context_, event_), CUDA_SUCCESS);
  }
}

// A stream of another context takes part by a fork: that context has a stream in capture mode too.
TEST_F(ContextEventTest, InvalidatesACaptureThatReachedTheContextByAFork) {
  const CUcontext other = OtherContext();
  ASSERT_EQ(cuCtxPushCurrent(other), CUDA_SUCCESS);
  const CUstream there = NewStream();
  const CUevent theirs = NewEvent();
  ASSERT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
  const CUstream here = Capturing();
  ASSERT_EQ(cuEventRecord(event_, here), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(there, event_, 0), CUDA_SUCCESS);
  EXPECT_EQ(Status(there), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuCtxRecordEvent(other, theirs), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(Status(there), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  ExpectEndsInvalid(here);
  EXPECT_EQ(Status(there), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
}

// The waiting context captures nothing, but the event is part of a capture elsewhere.
TEST_F(ContextEventTest, WaitInvalidatesTheEventsCapture) {
  const CUcontext other = OtherContext();
  const CUstream mine = Capturing(), unconcerned = Capturing();
  ASSERT_EQ(cuEventRecord(event_, mine), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxWaitEvent(other, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectEndsInvalid(mine);
  ExpectEndsWell(unconcerned);
  EXPECT_EQ(cuCtxWaitEvent(other, event_), CUDA_SUCCESS) << "the capture is over";
  EXPECT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
}

// An event that was last recorded in a capture stands for the context once that records it.
TEST_F(ContextEventTest, RecordReplacesACapturedRecord) {
  const CUstream stream = Capturing(), side = NewStream();
  ASSERT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(context_, event_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(side, event_, 0), CUDA_SUCCESS);
  EXPECT_EQ(Status(side), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  // The capture's only stream is gone: the capture never ends.
  const CUstream gone = Capturing();
  ASSERT_EQ(cuEventRecord(event_, gone), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(gone), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxRecordEvent(context_, event_), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event_), CUDA_SUCCESS);
}

}  // namespace
}  // namespace simgpu_test
