// The streams' events where threads record at the same time. The driver is a table of functions of this file.
#include "preload/streams/used_streams.h"

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"

// The library's own is in a file that needs the whole library.
constinit thread_local hotpack::StreamOrderCost hotpack::order_cost = {};

namespace hotpack {
namespace {

const CUcontext kContext = reinterpret_cast<CUcontext>(0x1000);
const CUstream kStream = reinterpret_cast<CUstream>(0x2000);

// Events are recorded at once. A call with the marked event returns only when the gate is open.
std::mutex mutex;
std::condition_variable changed;
uintptr_t events = 0;
bool held = false, open_gate = false;
thread_local bool waits_at_gate = false;

CUresult GetCurrent(CUcontext* context) {
  *context = kContext;
  return CUDA_SUCCESS;
}
CUresult CreateEvent(CUevent* event, unsigned int) {
  std::lock_guard<std::mutex> lock(mutex);
  *event = reinterpret_cast<CUevent>(++events);
  return CUDA_SUCCESS;
}
CUresult RecordEvent(CUevent, CUstream) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!waits_at_gate) return CUDA_SUCCESS;
  held = true;
  changed.notify_all();
  changed.wait(lock, [] { return open_gate; });
  return CUDA_SUCCESS;
}

bool finished = false;
CUresult QueryEvent(CUevent) { return finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

class UsedStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    events = 0;
    held = open_gate = false;
    driver_.CtxGetCurrent = GetCurrent;
    driver_.EventCreate = CreateEvent;
    driver_.EventRecord = RecordEvent;
    driver_.EventQuery = QueryEvent;
    finished = false;
    bool fresh = false;
    number_ = streams_.Add(kStream, kContext, StreamKind::kNonBlocking, &fresh);
    ASSERT_TRUE(fresh);
    streams_.Joined(number_);
  }
  void TearDown() override { streams_.ResetAfterFork(); }  // the table of handles is the process's

  // Another thread's recording that has reached the driver and does not come back yet.
  std::thread RecordSlowly(uint64_t tick, CUevent* event) {
    std::thread thread([this, tick, event] {
      waits_at_gate = true;
      *event = streams_.Record(driver_, number_, tick);
    });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [] { return held; });
    return thread;
  }
  void OpenGate() {
    std::lock_guard<std::mutex> lock(mutex);
    open_gate = true;
    changed.notify_all();
  }

  CudaDriver driver_;
  const std::unique_ptr<UsedStreams> own_ = std::make_unique<UsedStreams>();
  UsedStreams& streams_ = *own_;
  uint32_t number_ = 0;
};

TEST_F(UsedStreamsTest, TheLatestEventIsTheOneBegunLast) {
  CUevent slow = nullptr;
  std::thread other = RecordSlowly(2, &slow);
  // The program submits more work and destroys the stream.
  const CUevent last = streams_.Record(driver_, number_, 3);
  OpenGate();
  other.join();
  streams_.Remove(kStream);
  EXPECT_NE(slow, last);
  EXPECT_EQ(streams_.LatestEvent(number_), last) << "the work after the other recording would be missed";
}

TEST_F(UsedStreamsTest, TheLatestEventIsWaitedFor) {
  const CUevent first = streams_.Record(driver_, number_, 2);
  CUevent slow = nullptr;
  std::thread other = RecordSlowly(3, &slow);
  std::thread opens([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    OpenGate();
  });
  const CUevent latest = streams_.LatestEvent(number_);
  other.join();
  opens.join();
  EXPECT_NE(slow, first);
  EXPECT_EQ(latest, slow);
}

TEST_F(UsedStreamsTest, AStreamWithoutEventsHasNoLatest) {
  EXPECT_EQ(streams_.LatestEvent(number_), nullptr);
  EXPECT_EQ(streams_.EventAfter(number_, 1), nullptr);
}

// A recording that is under way stands for nothing yet.
TEST_F(UsedStreamsTest, AnEventCountsOnceItIsRecorded) {
  CUevent slow = nullptr;
  std::thread other = RecordSlowly(5, &slow);
  EXPECT_EQ(streams_.EventAfter(number_, 4), nullptr);
  OpenGate();
  other.join();
  EXPECT_EQ(streams_.EventAfter(number_, 4), slow);
  EXPECT_EQ(streams_.EventAfter(number_, 6), nullptr);
}

// An event is recorded again after kEvents others. What it stood for needs no event any more if it was complete.
TEST_F(UsedStreamsTest, WorkOfAnEventThatIsRecordedAgain) {
  for (uint64_t tick = 1; tick <= EventRing::kEvents; ++tick) streams_.Record(driver_, number_, tick);
  const CUevent second = streams_.EventAfter(number_, 2);
  streams_.Record(driver_, number_, 100);
  EXPECT_FALSE(streams_.Finished(number_, 1)) << "it was not complete";
  EXPECT_EQ(streams_.EventAfter(number_, 1), second) << "the next event stands for it, too";
  finished = true;
  streams_.Record(driver_, number_, 101);
  EXPECT_TRUE(streams_.Finished(number_, 2));
  EXPECT_FALSE(streams_.Finished(number_, 3));
}

}  // namespace
}  // namespace hotpack
