// The effects of a capture on other streams and threads, and its end after an invalidation (cuda.h,
// cuStreamBeginCapture and the functions near it).
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

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

// Ends a capture that must be invalid by now.
void EndInvalid(CUstream stream, const char* what) {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << what;
  EXPECT_EQ(graph, nullptr) << what;
}

struct Call {
  const char* name;
  std::function<CUresult()> run;
};

class ForbiddenCallTest : public CaptureTest {
 protected:
  static constexpr size_t kBytes = 4096;
  void SetUp() override {
    CaptureTest::SetUp();
    for (CUdeviceptr* block : {&a_, &b_}) ASSERT_EQ(cuMemAlloc(block, kBytes), CUDA_SUCCESS);
    event_ = NewEvent();
    idle_ = NewStream();
    Kernel("touch");  // loads the module
  }
  // Of a stream, by each kind of call that submits to it, waits for it or queries its work.
  std::vector<Call> WorkOn(CUstream stream) {
    return {{"cuMemcpyAsync", [=, this] { return cuMemcpyAsync(a_, b_, 64, stream); }},
            {"cuMemcpyDtoDAsync", [=, this] { return cuMemcpyDtoDAsync(a_, b_, 64, stream); }},
            {"cuMemcpyHtoDAsync", [=, this] { return cuMemcpyHtoDAsync(a_, host_, 64, stream); }},
            {"cuMemcpyDtoHAsync", [=, this] { return cuMemcpyDtoHAsync(host_, a_, 64, stream); }},
            {"cuMemcpy3DAsync", [=, this] { return Box(stream); }},
            {"cuMemsetD8Async", [=, this] { return cuMemsetD8Async(a_, 0, 64, stream); }},
            {"cuLaunchKernel", [=, this] { return Launch(stream); }},
            {"cuLaunchHostFunc",
             [=] {
               return cuLaunchHostFunc(
                   stream, [](void*) {}, nullptr);
             }},
            {"cuMemAllocAsync", [=, this] { return cuMemAllocAsync(&given_, kBytes, stream); }},
            {"cuEventRecord", [=, this] { return cuEventRecord(event_, stream); }},
            {"cuStreamWaitEvent", [=, this] { return cuStreamWaitEvent(stream, event_, 0); }},
            {"cuStreamSynchronize", [=] { return cuStreamSynchronize(stream); }},
            {"cuStreamQuery", [=] { return cuStreamQuery(stream); }}};
  }
  // Copies and memsets that wait on the legacy stream.
  std::vector<Call> SynchronousWork() {
    return {{"cuMemcpy", [this] { return cuMemcpy(a_, b_, 64); }},
            {"cuMemcpyDtoD", [this] { return cuMemcpyDtoD(a_, b_, 64); }},
            {"cuMemcpyHtoD", [this] { return cuMemcpyHtoD(a_, host_, 64); }},
            {"cuMemcpyDtoH", [this] { return cuMemcpyDtoH(host_, a_, 64); }},
            {"cuMemcpyPeer", [this] { return cuMemcpyPeer(a_, context_, b_, context_, 64); }},
            {"cuMemsetD32", [this] { return cuMemsetD32(a_, 0, 16); }},
            {"cuMemsetD2D8", [this] { return cuMemsetD2D8(a_, 64, 0, 32, 2); }}};
  }
  // Calls that act at once, not in a stream's order.
  std::vector<Call> UnsafeCalls() {
    return {{"cuMemAlloc", [this] { return cuMemAlloc(&given_, kBytes); }},
            {"cuMemAllocPitch",
             [this] {
               size_t pitch = 0;
               return cuMemAllocPitch(&given_, &pitch, 64, 64, 4);
             }},
            {"cuMemAllocManaged", [this] { return cuMemAllocManaged(&given_, kBytes, CU_MEM_ATTACH_GLOBAL); }},
            {"cuMemFree", [this] { return cuMemFree(b_); }},
            {"cuMemHostAlloc", [this] { return cuMemHostAlloc(&pinned_, kBytes, 0); }},
            {"cuMemAllocHost", [this] { return cuMemAllocHost(&pinned_, kBytes); }},
            {"cuModuleLoadData", [this] { return cuModuleLoadData(&module_, kPtx); }},
            {"cuModuleUnload", [this] { return cuModuleUnload(module_); }},
            {"cuEventQuery", [this] { return cuEventQuery(event_); }}};
  }
  // Calls of which the documentation does not say whether they are unsafe.
  std::vector<Call> PerhapsUnsafeCalls() {
    return {{"cuStreamSynchronize", [this] { return cuStreamSynchronize(idle_); }},
            {"cuStreamQuery", [this] { return cuStreamQuery(idle_); }},
            {"cuEventSynchronize", [this] { return cuEventSynchronize(event_); }},
            {"cuMemHostRegister", [this] { return cuMemHostRegister(host_, sizeof host_, 0); }},
            {"cuMemHostUnregister", [this] { return cuMemHostUnregister(host_); }}};
  }
  CUresult Launch(CUstream stream) {
    CUdeviceptr address = a_;
    void* parameters[] = {&address};
    return cuLaunchKernel(Kernel("touch"), 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult Box(CUstream stream) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a_;
    copy.dstDevice = b_;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
    copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
    return cuMemcpy3DAsync(&copy, stream);
  }
  static CUresult InMode(CUstreamCaptureMode mode, const Call& call) {
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    const CUresult result = call.run();
    EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    return result;
  }
  static bool Strict() {
    const char* setting = getenv("SIMGPU_CAPTURES");
    return setting != nullptr && strcmp(setting, "strict") == 0;
  }
  CUdeviceptr a_ = 0, b_ = 0, given_ = 0;
  CUevent event_ = nullptr;
  CUstream idle_ = nullptr;
  CUmodule module_ = nullptr;
  void* pinned_ = nullptr;
  static inline char host_[4096];
};

TEST_F(ForbiddenCallTest, WorkOnTheLegacyStreamEndsTheCapturesOfBlockingStreams) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT), other = NewStream();
  std::vector<Call> calls = WorkOn(CU_STREAM_LEGACY);
  for (const Call& call : WorkOn(nullptr)) calls.push_back(call);
  for (const Call& call : SynchronousWork()) calls.push_back(call);
  for (const Call& call : calls) {
    ASSERT_EQ(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      EXPECT_EQ(call.run(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) << call.name;
    }).join();
    EXPECT_EQ(call.run(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) << call.name << ", of an invalid capture";
    EndInvalid(blocking, call.name);
    EndWell(other);
  }
}

TEST_F(ForbiddenCallTest, CapturesOfNonBlockingStreamsAllowWorkOnTheLegacyStream) {
  const CUstream stream = NewStream();
  std::vector<Call> calls = WorkOn(CU_STREAM_LEGACY);
  for (const Call& call : SynchronousWork()) calls.push_back(call);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  for (const Call& call : calls) EXPECT_EQ(call.run(), CUDA_SUCCESS) << call.name;
  EndWell(stream);
}

TEST_F(ForbiddenCallTest, AStreamOfAnInvalidCaptureRefusesAllWork) {
  const CUstream stream = NewStream();
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  for (const Call& call : WorkOn(stream)) EXPECT_EQ(call.run(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << call.name;
  EndInvalid(stream, "cuStreamSynchronize");
}

TEST_F(ForbiddenCallTest, WaitsForCapturedWorkAreRefusedInEveryMode) {
  const CUstream stream = NewStream();
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  float time = 0;
  const CUevent timed[] = {NewEvent(), event_};
  const std::pair<Call, CUresult> cases[] = {
      {{"cuStreamQuery", [&] { return cuStreamQuery(stream); }}, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {{"cuStreamSynchronize", [&] { return cuStreamSynchronize(stream); }}, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {{"cuEventQuery", [&] { return cuEventQuery(event_); }}, CUDA_ERROR_CAPTURED_EVENT},
      {{"cuEventSynchronize", [&] { return cuEventSynchronize(event_); }}, CUDA_ERROR_CAPTURED_EVENT},
      {{"cuCtxSynchronize", [&] { return cuCtxSynchronize(); }}, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {{"cuStreamAttachMemAsync", [&] { return cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE); }},
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
  };
  for (const auto& [call, error] : cases) {
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
      ASSERT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
      ASSERT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
      EXPECT_EQ(InMode(CU_STREAM_CAPTURE_MODE_RELAXED, call), error) << call.name;
      EndInvalid(stream, call.name);
    }
  }
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&time, timed[0], timed[1]), CUDA_ERROR_CAPTURED_EVENT);
  EndWell(stream);
  EXPECT_EQ(cuMemFree(managed), CUDA_SUCCESS);
}

// cuda.h, cuThreadExchangeStreamCaptureMode: which capture forbids such calls to which thread.
TEST_F(ForbiddenCallTest, UnsafeCallsDependOnTheModesOfCaptureAndThread) {
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL, kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                 kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  std::vector<Call> calls = UnsafeCalls();
  if (Strict()) {
    for (const Call& call : PerhapsUnsafeCalls()) calls.push_back(call);
  }
  const CUstream stream = NewStream();
  for (const Call& call : calls) {
    for (const auto capture : {kGlobal, kLocal, kRelaxed}) {
      for (const auto thread : {kGlobal, kLocal, kRelaxed}) {
        for (const bool other : {false, true}) {
          const bool mine = !other && capture != kRelaxed && thread != kRelaxed;
          const bool theirs = other && capture == kGlobal && thread == kGlobal;
          if (!mine && !theirs) continue;  // below: they have effects
          ASSERT_EQ(cuStreamBeginCapture(stream, capture), CUDA_SUCCESS);
          const auto run = [&] {
            EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
            EXPECT_EQ(InMode(thread, call), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << call.name;
          };
          other ? std::thread(run).join() : run();
          EndInvalid(stream, call.name);
        }
      }
    }
  }
  const auto allowed = [&](CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool other) {
    ASSERT_EQ(cuStreamBeginCapture(stream, capture), CUDA_SUCCESS);
    const auto run = [&] {
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      for (const Call& call : calls) EXPECT_EQ(InMode(thread, call), CUDA_SUCCESS) << call.name;
    };
    other ? std::thread(run).join() : run();
    EXPECT_EQ(cuMemAlloc(&b_, kBytes), capture == kRelaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    capture == kRelaxed ? EndWell(stream) : EndInvalid(stream, "cuMemAlloc");
    if (capture != kRelaxed) {
      ASSERT_EQ(cuMemAlloc(&b_, kBytes), CUDA_SUCCESS);
    }
  };
  allowed(kRelaxed, kGlobal, false);
  allowed(kGlobal, kRelaxed, false);
  allowed(kLocal, kRelaxed, false);
  allowed(kLocal, kGlobal, true);
  allowed(kGlobal, kLocal, true);
  allowed(kGlobal, kRelaxed, true);
}

// The driver refuses, and the capture stays valid (simgpu/README.md names the source).
TEST_F(ForbiddenCallTest, BatchesOfCopiesAreNotCaptured) {
  const CUstream stream = NewStream();
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t bytes = 64, first = 0;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyBatchAsync(&a_, &b_, &bytes, 1, &attributes, &first, 1, stream),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EndWell(stream);
}

}  // namespace
}  // namespace simgpu_test
