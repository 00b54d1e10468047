// Virtual time (SIMGPU_TIME): every figure here follows from the costs that the test states, to the nanosecond.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "simgpu/checker.h"
#include "tests/simgpu/support.h"

namespace simgpu_test {
namespace {

// Microseconds. A launch is 10, a kernel 1000, other calls 0. Copies and memsets move 1 MB in 1000.
constexpr char kCosts[] =
    "call=0,cuLaunchKernel=10,kernel=1000,thread=0,cuMemcpy=5,cuMemset=0,pcie=1,memory=1,cuCtxSynchronize=0,"
    "cuEventRecord=0,cuEventQuery=0,cuEventSynchronize=0,cuStreamWaitEvent=0,cuStreamQuery=0,cuStreamSynchronize=0,"
    "cuMemAlloc=20,cuMemFree=30,cuMemCreate=100+50,cuMemMap=7,cuMemSetAccess=3+1,kernel:many=250";

double Us(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

class TimeTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SIMGPU_TIME", kCosts, 1);  // read by the first cuInit
    Start();
    Kernel("touch");  // loads the module
    MUST(cuCtxSynchronize());
    begin_ = simgpuTimeHost();
  }
  double Now() const { return Us(simgpuTimeHost() - begin_); }
  static CUevent Event() {
    CUevent event = nullptr;
    MUST(cuEventCreate(&event, 0));
    return event;
  }
  static CUdeviceptr Block(size_t bytes) {
    CUdeviceptr block = 0;
    MUST(cuMemAlloc(&block, bytes));
    return block;
  }
  uint64_t begin_ = 0;
};

TEST_F(TimeTest, LaunchesTakeTheHostLessThanTheStream) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Block(4096);
  const double before = Now();
  for (int i = 0; i < 3; ++i) Touch(stream, block);
  EXPECT_DOUBLE_EQ(Now() - before, 30);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 3010);  // the first kernel begins when its launch returns
}

TEST_F(TimeTest, StreamsOverlapAndEventsOrderThem) {
  const CUstream first = NewStream(), second = NewStream();
  const CUdeviceptr block = Block(4096), other = Block(4096);
  double before = Now();
  Touch(first, block);
  Touch(second, other);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 1020);

  before = Now();
  const CUevent event = Event();
  Touch(first, block);
  EXPECT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  Touch(second, other);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 2010);
}

TEST_F(TimeTest, TheLegacyStreamWaitsForBlockingStreams) {
  CUstream blocking = nullptr;
  MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  const CUstream free_stream = NewStream();
  const CUdeviceptr block = Block(4096);
  const double before = Now();
  Touch(blocking, block);
  Touch(free_stream, block + 1024);
  Touch(nullptr, block + 2048);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 2010);
}

TEST_F(TimeTest, AReleaseWaitsForTheDevice) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Block(4096), other = Block(4096);
  const double before = Now();
  const uint64_t waited = simgpuTimeWaited(), in_free = simgpuTimeInCalls("cuMemFree");
  Touch(stream, block);
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 1010);
  EXPECT_DOUBLE_EQ(Us(simgpuTimeWaited() - waited), 970);  // the call itself took 30
  EXPECT_DOUBLE_EQ(Us(simgpuTimeInCalls("cuMemFree") - in_free), 30);
}

TEST_F(TimeTest, CopiesOfOneDirectionShareAnEngine) {
  const CUstream first = NewStream(), second = NewStream();
  const CUdeviceptr block = Block(2'000'000);
  void* host = nullptr;
  MUST(cuMemAllocHost(&host, 2'000'000));
  double before = Now();
  MUST(cuMemcpyHtoDAsync(block, host, 1'000'000, first));
  MUST(cuMemcpyHtoDAsync(block + 1'000'000, host, 1'000'000, second));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 2005);

  before = Now();
  MUST(cuMemcpyHtoDAsync(block, host, 1'000'000, first));
  MUST(cuMemcpyDtoHAsync(static_cast<char*>(host) + 1'000'000, block + 1'000'000, 1'000'000, second));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_DOUBLE_EQ(Now() - before, 1010);
}

TEST_F(TimeTest, EventsMeasureVirtualTime) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Block(4096);
  const CUevent start = Event(), end = Event();
  MUST(cuEventRecord(start, stream));
  Touch(stream, block);
  MUST(cuEventRecord(end, stream));
  EXPECT_EQ(cuEventQuery(start), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventSynchronize(end), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(end), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(milliseconds, 1.01F);  // the launch of 10 µs lies between the two
}

TEST_F(TimeTest, ProgramsThatPollComeToAnEnd) {
  const CUstream stream = NewStream();
  Touch(stream, Block(4096));
  int polls = 0;
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) ++polls;
  EXPECT_GT(polls, 1);
  EXPECT_LT(polls, 40);
}

TEST_F(TimeTest, PagesCostByCallAndBySize) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUdeviceptr place = 0;
  MUST(cuMemAddressReserve(&place, 2 * kPage, 0, 0, 0));
  double before = Now();
  CUmemGenericAllocationHandle handle = 0;
  MUST(cuMemCreate(&handle, 2 * kPage, &prop, 0));
  EXPECT_DOUBLE_EQ(Now() - before, 100 + 4 * 50);
  before = Now();
  MUST(cuMemMap(place, 2 * kPage, 0, handle, 0));
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  MUST(cuMemSetAccess(place, 2 * kPage, &access, 1));
  EXPECT_DOUBLE_EQ(Now() - before, 7 + 3 + 4);
}

TEST_F(TimeTest, ThreadsHaveClocksOfTheirOwnAndMeetAtStreams) {
  const CUstream mine = NewStream(), shared = NewStream();
  const CUdeviceptr block = Block(4096), other = Block(4096);
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  const double before = Now();
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 7; ++i) Touch(shared, block);
  }).join();
  EXPECT_DOUBLE_EQ(Now() - before, 0);
  Touch(mine, other);
  EXPECT_DOUBLE_EQ(Now() - before, 10);
  Touch(shared, block);  // comes after the other thread's launches, which ended at 70 µs
  EXPECT_DOUBLE_EQ(Now() - before, 70);
}

TEST_F(TimeTest, GraphsTakeWhatTheirNodesTake) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Block(4096);
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < 3; ++i) Touch(stream, block);
  CUgraph graph = nullptr;
  MUST(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = nullptr;
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(cuCtxSynchronize());
  const double before = Now();
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  EXPECT_DOUBLE_EQ(Now() - before, 3002.5);  // the default cost of a launch, 2.5
}

TEST_F(TimeTest, TheMakespanIsTheLastEnd) {
  const CUstream stream = NewStream();
  const CUdeviceptr block = Block(4096);
  Touch(stream, block);
  EXPECT_GE(simgpuTimeMakespan(), simgpuTimeHost() + 1'000'000);
}

}  // namespace
}  // namespace simgpu_test
