// The effects of a capture on other streams and threads, and its end after an invalidation (cuda.h,
// cuStreamBeginCapture and the functions near it).
#include <gtest/gtest.h>

#include <thread>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

class CaptureTest : public testing::Test {
 protected:
  void SetUp() override { context_ = Start(); }
  static CUstreamCaptureStatus Status(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    return status;
  }
  static CUresult Ask(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(stream, &status);
  }
  static CUresult AskMore(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  static cuuint64_t Id(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    EXPECT_EQ(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    return id;
  }
  static void EndWell(CUstream stream) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_NE(graph, nullptr);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
};

TEST_F(CaptureTest, StreamsOfOneContextCaptureIndependently) {
  const CUstream a = NewStream(), b = NewStream(), none = NewStream();
  ASSERT_EQ(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_NE(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS) << "captures already";
    EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(Status(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(Status(none), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_NE(Id(a), Id(b));
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EndWell(b);
  }).join();
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EndWell(a);
}

TEST_F(CaptureTest, OneInvalidatedCaptureLeavesTheOtherAlone) {
  const CUstream a = NewStream(), b = NewStream(), fork = NewStream();
  ASSERT_EQ(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  const CUevent event = NewEvent();
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(fork, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(fork), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  for (const CUstream stream : {a, fork}) {
    EXPECT_EQ(Status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuEventRecord(NewEvent(), stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(fork, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) << "did not begin there";
  EXPECT_EQ(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(Status(a), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Status(fork), CU_STREAM_CAPTURE_STATUS_NONE);
  EndWell(b);
}

// "The legacy stream is in an unusable state until the blocking stream capture is terminated."
TEST_F(CaptureTest, TheLegacyStreamCannotBeAskedWhileABlockingOneCaptures) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT), other = NewStream();
  ASSERT_EQ(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(Ask(CU_STREAM_LEGACY), CUDA_SUCCESS) << "a non-blocking one does not matter";
  EXPECT_EQ(AskMore(CU_STREAM_LEGACY), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(Ask(CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(Ask(nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(AskMore(CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(Status(CU_STREAM_PER_THREAD), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Status(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE) << "asking invalidates nothing";
  CUcontext elsewhere = nullptr;
  ASSERT_EQ(cuCtxCreate(&elsewhere, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(Ask(CU_STREAM_LEGACY), CUDA_SUCCESS) << "of another context";
  EXPECT_EQ(cuCtxDestroy(elsewhere), CUDA_SUCCESS);
  EndWell(blocking);
  EXPECT_EQ(Ask(CU_STREAM_LEGACY), CUDA_SUCCESS);
  EndWell(other);
  // A per-thread stream is a blocking one.
  ASSERT_EQ(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(Ask(CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EndWell(CU_STREAM_PER_THREAD);
}

}  // namespace
}  // namespace simgpu_test
