// Green contexts: their memory, their streams, and their end (cuda.h, cuGreenCtxCreate, cuGreenCtxDestroy).
#include <gtest/gtest.h>

#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

CUgreenCtx NewGreen() {
  CUdevResource all = {}, part = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  unsigned count = 1;
  MUST(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  MUST(cuDevSmResourceSplitByCount(&part, &count, &all, nullptr, 0, 16));
  MUST(cuDevResourceGenerateDesc(&description, &part, 1));
  MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

CUcontext ContextOf(CUgreenCtx green) {
  CUcontext context = nullptr;
  MUST(cuCtxFromGreenCtx(&context, green));
  return context;
}

TEST(GreenContext, MemoryBelongsToThePrimaryContext) {
  Start();
  const CUgreenCtx green = NewGreen();
  CUcontext of_block = nullptr, primary = nullptr;
  CUdeviceptr block = 0;
  MUST(cuCtxGetCurrent(&primary));
  MUST(cuCtxPushCurrent(ContextOf(green)));
  MUST(cuMemAlloc(&block, kPage));
  MUST(cuPointerGetAttribute(&of_block, CU_POINTER_ATTRIBUTE_CONTEXT, block));
  EXPECT_EQ(of_block, primary);
  MUST(cuCtxPopCurrent(nullptr));
  MUST(cuGreenCtxDestroy(green));
  EXPECT_EQ(cuMemsetD8(block, 1, kPage), CUDA_SUCCESS) << "it outlives the green context";
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
}

TEST(GreenContext, ItsStreamsAreOfNoUseAfterItsEnd) {
  Start();
  const CUgreenCtx green = NewGreen();
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  CUgreenCtx of_stream = nullptr;
  EXPECT_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
  MUST(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  MUST(cuStreamGetGreenCtx(stream, &of_stream));
  EXPECT_EQ(of_stream, green);
  MUST(cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, ContextOf(green));
  EXPECT_EQ(cuCtxDestroy(ContextOf(green)), CUDA_ERROR_INVALID_CONTEXT);
  MUST(cuGreenCtxDestroy(green));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(GreenContext, RetainsThePrimaryContext) {
  MUST(cuInit(0));
  CUcontext context = nullptr;
  unsigned flags = 0;
  int active = 0;
  MUST(cuDevicePrimaryCtxReset(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  const CUgreenCtx green = NewGreen();
  MUST(cuDevicePrimaryCtxRelease(0));
  MUST(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  MUST(cuGreenCtxDestroy(green));
  MUST(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
}

}  // namespace
}  // namespace simgpu_test
