// The collector in this process, with the stand-in and a host that records its calls.
#include "preload/cupti/collector.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cupti/standin.h"

namespace hotpack::cupti {
namespace {

using cupti_standin::cupti_standin_figures;
using cupti_standin::cupti_standin_launch;
using cupti_standin::cupti_standin_reset;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Told {
  struct Launch {
    uint64_t correlation;
    std::string name;
    void* stream;
    uint64_t time_ns;
  };
  struct Work {
    std::string name;
    uint64_t start_ns, end_ns;
  };
  std::mutex mutex;
  std::vector<Launch> launches;
  std::map<uint64_t, Work> works;  // by correlation
  std::vector<std::string> lines;
  std::atomic<int64_t> iterations{-1};
  uint64_t wanted = 0;
};
Told* told = nullptr;

uint64_t Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

int OnLaunch(uint64_t correlation, const char* name, void* stream, int) {
  std::lock_guard lock(told->mutex);
  told->launches.push_back({correlation, name != nullptr ? name : "", stream, Monotonic()});
  return 1;
}
int OnWork(uint64_t correlation, const char* name, uint64_t start_ns, uint64_t end_ns) {
  std::lock_guard lock(told->mutex);
  told->works[correlation] = {name != nullptr ? name : "", start_ns, end_ns};
  return 1;
}
void OnMemory(const hotpack_note_memory*) {}
void OnSay(const char* line) {
  std::lock_guard lock(told->mutex);
  told->lines.push_back(line);
}

const hotpack_collector_host kHost = [] {
  hotpack_collector_host host = {};
  host.version = HOTPACK_COLLECTOR_HOST_VERSION;
  host.size = sizeof(host);
  host.now_ns = Monotonic;
  host.launch = OnLaunch;
  host.work = OnWork;
  host.memory = OnMemory;
  host.say = OnSay;
  host.planned_iterations = [] { return told->iterations.load(); };
  host.cupti_iterations = [] { return told->wanted; };
  host.enter_hook = [] {};
  return host;
}();

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    unsetenv("CUDA_INJECTION64_PATH");
    unsetenv("NSYS_PROFILING_SESSION_ID");
    told = &told_;
  }
  // Collectors are never destroyed.
  bool Start(const char* words, uint64_t iterations = 0) {
    cupti_standin_reset(words);
    told_.wanted = iterations;
    collector_ = new Collector;
    static auto* kept = new std::vector<Collector*>;
    kept->push_back(collector_);
    return collector_->Start(&kHost);
  }
  std::vector<std::string> Lines() {
    std::lock_guard lock(told_.mutex);
    return told_.lines;
  }
  template <typename Condition>
  static bool Eventually(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      usleep(10'000);
    }
    return false;
  }
  // Every launch has its work, and nothing is left behind in CUPTI.
  void ExpectAllTimed(size_t launches) {
    ASSERT_EQ(told_.launches.size(), launches);
    for (const Told::Launch& launch : told_.launches) {
      ASSERT_EQ(told_.works.count(launch.correlation), 1u) << launch.correlation;
      const Told::Work& work = told_.works[launch.correlation];
      EXPECT_EQ(work.name, launch.name);
      EXPECT_LT(work.start_ns, work.end_ns);
      // Two readings of two clocks apart; the launch comes before its work.
      EXPECT_GT(work.start_ns + 1'000'000, launch.time_ns);
      EXPECT_LT(work.end_ns, Monotonic() + 1'000'000);
    }
    ExpectGivenBack();
  }
  static void ExpectGivenBack() {
    const auto figures = cupti_standin_figures();
    EXPECT_EQ(figures.subscribed, figures.unsubscribed);
    EXPECT_EQ(figures.kinds_on, 0u);
    EXPECT_EQ(figures.calls_watched, 0u);
    EXPECT_EQ(figures.buffers_out, 0u);
    EXPECT_EQ(figures.finalized, 0u);
    EXPECT_EQ(figures.disturbed, 0u);
  }

  Told told_;
  Collector* collector_ = nullptr;
};

// What another tool does first.
CUptiResult SubscribeAsAnother() {
  CUpti_SubscriberHandle handle = nullptr;
  return cuptiSubscribe(
      &handle, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
}

TEST_F(CollectorTest, WhereCuptiIsFreeLaunchesGetTheirTimes) {
  ASSERT_TRUE(Start(""));
  EXPECT_EQ(SubscribeAsAnother(), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) << "it is ours";
  const auto stream = reinterpret_cast<CUstream>(0x70);
  for (int i = 0; i < 3000; ++i) cupti_standin_launch(i % 2 == 0 ? "even" : "odd", stream);
  collector_->End();
  ExpectAllTimed(3000);
  EXPECT_EQ(told_.launches[0].name, "even");
  EXPECT_EQ(told_.launches[1].name, "odd");
  EXPECT_EQ(told_.launches[0].stream, stream);
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_EQ(SubscribeAsAnother(), CUPTI_SUCCESS);
}

TEST_F(CollectorTest, WhereItIsTakenOneLineSaysByWhom) {
  EXPECT_FALSE(Start("taken=CUPTI for PyTorch"));
  cupti_standin_launch("kernel", nullptr);
  EXPECT_THAT(Lines(), ElementsAre("kernel times are not recorded: CUPTI is taken by CUPTI for PyTorch"));
  EXPECT_THAT(told_.launches, IsEmpty());
  collector_->Flush();
  collector_->End();
  const auto figures = cupti_standin_figures();
  EXPECT_EQ(figures.kinds_on + figures.calls_watched + figures.buffers_out + figures.flushes + figures.forced_flushes,
            0u);
}

TEST_F(CollectorTest, AToolThatIsToComeGoesFirst) {
  setenv("CUDA_INJECTION64_PATH", "/a/tool.so", 1);
  EXPECT_FALSE(Start(""));
  EXPECT_THAT(Lines(), ElementsAre("kernel times are not recorded: another tool is given by CUDA_INJECTION64_PATH"));
  EXPECT_EQ(cupti_standin_figures().subscribed, 0u);
  unsetenv("CUDA_INJECTION64_PATH");
  setenv("NSYS_PROFILING_SESSION_ID", "7", 1);
  EXPECT_FALSE(Start(""));
  EXPECT_EQ(cupti_standin_figures().subscribed, 0u);
  unsetenv("NSYS_PROFILING_SESSION_ID");
}

TEST_F(CollectorTest, LostMidwayItIsLeftAlone) {
  ASSERT_TRUE(Start("lose=100"));
  for (int i = 0; i < 150; ++i) cupti_standin_launch("kernel", nullptr);
  ASSERT_TRUE(Eventually([&] { return !Lines().empty(); }));
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          "kernel times are recorded no further: another tool has taken CUPTI (CUPTI_ERROR_INVALID_PARAMETER)"));
  EXPECT_EQ(told_.launches.size(), 99u);
  const auto begin = std::chrono::steady_clock::now();
  collector_->Flush();
  collector_->End();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "there is nothing to wait for";
  const auto figures = cupti_standin_figures();
  EXPECT_EQ(figures.disturbed, 0u) << "what is on by now is somebody else's";
  EXPECT_GT(figures.kinds_on, 0u);
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(CollectorTest, EndedBySomebodyElseItIsOver) {
  ASSERT_TRUE(Start("end=100"));
  for (int i = 0; i < 150; ++i) cupti_standin_launch("kernel", nullptr);
  ASSERT_TRUE(Eventually([&] { return !Lines().empty(); }));
  EXPECT_THAT(Lines()[0], HasSubstr("another tool has taken CUPTI (CUPTI_ERROR_NOT_INITIALIZED)"));
  collector_->End();
  EXPECT_EQ(SubscribeAsAnother(), CUPTI_SUCCESS);
}

TEST_F(CollectorTest, AfterTheIterationsItDetaches) {
  ASSERT_TRUE(Start("", 3));
  told_.iterations = 2;
  cupti_standin_launch("first", nullptr);
  usleep(100'000);
  EXPECT_EQ(cupti_standin_figures().unsubscribed, 0u) << "two iterations are not three";
  cupti_standin_launch("second", nullptr);
  told_.iterations = 3;
  ASSERT_TRUE(Eventually([] { return cupti_standin_figures().unsubscribed == 1; }));
  ExpectAllTimed(2);
  cupti_standin_launch("later", nullptr);
  EXPECT_EQ(told_.launches.size(), 2u);
  EXPECT_EQ(SubscribeAsAnother(), CUPTI_SUCCESS);
  collector_->End();
  EXPECT_EQ(cupti_standin_figures().unsubscribed, 1u);
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(CollectorTest, WorkThatIsNotDoneYetIsWaitedFor) {
  ASSERT_TRUE(Start("late=200,thread", 1));
  for (int i = 0; i < 10; ++i) cupti_standin_launch("slow", nullptr);
  told_.iterations = 1;
  ASSERT_TRUE(Eventually([] { return cupti_standin_figures().unsubscribed == 1; }));
  ASSERT_EQ(told_.works.size(), 10u);
  for (const auto& [correlation, work] : told_.works) EXPECT_GE(work.end_ns - work.start_ns, 200'000'000u);
  ExpectGivenBack();
}

TEST_F(CollectorTest, WorkThatIsNeverDoneIsNotWaitedForForEver) {
  ASSERT_TRUE(Start("late=1000000"));
  cupti_standin_launch("endless", nullptr);
  const auto begin = std::chrono::steady_clock::now();
  collector_->End();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(told_.works.size(), 1u);  // the record comes with the forced flush, without times
  EXPECT_EQ(told_.works.begin()->second.start_ns, 0u);
  EXPECT_EQ(told_.works.begin()->second.end_ns, 0u);
  ExpectGivenBack();
}

TEST_F(CollectorTest, DroppedRecordsAreCounted) {
  ASSERT_TRUE(Start("drop=7"));
  for (int i = 0; i < 20; ++i) cupti_standin_launch("kernel", nullptr);
  collector_->End();
  EXPECT_EQ(told_.launches.size(), 20u);
  EXPECT_EQ(told_.works.size(), 13u);
  EXPECT_THAT(Lines(), ElementsAre("CUPTI dropped 7 records: as many kernels, copies or allocations have no times"));
}

TEST_F(CollectorTest, BuffersAreBoundedInNumber) {
  Buffers buffers;
  std::vector<uint8_t*> taken;
  while (uint8_t* buffer = buffers.Take()) taken.push_back(buffer);
  EXPECT_EQ(taken.size(), static_cast<size_t>(Buffers::kMax));
  buffers.Return(taken.back());
  taken.pop_back();
  uint8_t* again = buffers.Take();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(buffers.Take(), nullptr);
  buffers.Return(again);
  for (uint8_t* buffer : taken) buffers.Return(buffer);
}

TEST_F(CollectorTest, BuffersOfOtherThreadsAreReadAsWell) {
  ASSERT_TRUE(Start("thread"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) cupti_standin_launch("kernel", nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  collector_->Flush();
  EXPECT_EQ(told_.works.size(), 4000u) << "a flush hands over what is done";
  EXPECT_EQ(cupti_standin_figures().unsubscribed, 0u) << "and goes on";
  cupti_standin_launch("kernel", nullptr);
  collector_->End();
  ExpectAllTimed(4001);
}

TEST_F(CollectorTest, ADeviceThatMayNotBeProfiledIsSaid) {
  EXPECT_FALSE(Start("deny"));
  EXPECT_THAT(
      Lines(),
      ElementsAre("kernel times are not recorded: CUPTI cannot be used here (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)"));
  ExpectGivenBack();
}

TEST_F(CollectorTest, AnOldVersionIsSaid) {
  EXPECT_FALSE(Start("version=16"));
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          "kernel times are not recorded: this libcupti is of version 16; 19 (CUDA 12) is the oldest that will do"));
  EXPECT_EQ(cupti_standin_figures().subscribed, 0u);
}

TEST_F(CollectorTest, AForkedChildHasNoneOfIt) {
  ASSERT_TRUE(Start(""));
  cupti_standin_launch("kernel", nullptr);
  const pid_t child = fork();
  if (child == 0) {
    collector_->AbandonAfterFork();
    collector_->Flush();
    collector_->End();  // would wait for a thread that it has not got
    _exit(cupti_standin_figures().unsubscribed == 0 ? 0 : 1);
  }
  int status = -1;
  const auto begin = std::chrono::steady_clock::now();
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  collector_->End();
  ExpectAllTimed(1);
}

}  // namespace
}  // namespace hotpack::cupti
