// A job in which nothing repeats: hotpack's memory on the host is bounded, its search interval grows, and it requests a
// comparison with the driver's pool.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "bench/unbacked_device_memory.h"
#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"

// Every byte of this process's heap is counted: of the engine, its planning thread, and little else.
namespace {
std::atomic<uint64_t> heap_bytes{0}, heap_peak{0};

void* Take(size_t size, size_t alignment) {
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const uint64_t now = heap_bytes += malloc_usable_size(memory);
  uint64_t peak = heap_peak;
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}
void Give(void* memory) {
  if (memory != nullptr) heap_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
}  // namespace

void* operator new(size_t size) { return Take(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) { return Take(size, static_cast<size_t>(alignment)); }
void operator delete(void* memory) noexcept { Give(memory); }
void operator delete(void* memory, size_t) noexcept { Give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Give(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Give(memory); }

namespace hotpack {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// How many times longer than in every run: HOTPACK_TEST_SCALE.
uint64_t Scale() {
  const char* text = std::getenv("HOTPACK_TEST_SCALE");
  const uint64_t scale = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  return scale > 0 ? scale : 1;
}

// `requests` of random sizes, `live` blocks at a time.
class RandomJob {
 public:
  RandomJob(Engine* engine, size_t live) : engine_(engine), blocks_(live) {}
  void Play(uint64_t requests) {
    for (uint64_t i = 0; i < requests; ++i) {
      DeviceAddress& block = blocks_[random_() % blocks_.size()];
      if (block != 0) {
        ASSERT_EQ(engine_->Release(block, 0), EngineStatus::kOk);
      }
      ASSERT_EQ(engine_->Allocate(1 + random_() % kMiB, 0, &block), EngineStatus::kOk);
    }
  }

 private:
  Engine* engine_;
  std::vector<DeviceAddress> blocks_;
  std::mt19937_64 random_{7};
};

TEST(NeverHot, HostMemoryIsBoundedWhateverTheNumberOfRequests) {
  constexpr uint64_t kHistory = (uint64_t{1} << 20) * sizeof(uint64_t);  // mapped, not of the heap
  bench::UnbackedDeviceMemory memory;
  const uint64_t before = heap_bytes;
  heap_peak = before;
  Engine engine(&memory, {});
  RandomJob job(&engine, 100);
  job.Play(1'200'000);  // the history is full
  engine.WaitPlan(-1);
  const uint64_t full = heap_peak - before;
  job.Play(800'000 * Scale());
  engine.WaitPlan(-1);
  const hotpack_stats stats = engine.Stats();
  EXPECT_EQ(stats.planned, 0u);
  EXPECT_GT(stats.detections, 20u) << "it has looked for an iteration";
  EXPECT_LE(heap_peak - before + kHistory, 64 * kMiB);
  EXPECT_LE(heap_peak - before, full + kMiB / 4) << "it does not grow any more";
  printf("%llu requests: at most %.1f MiB of heap, %.1f MiB of history\n",
         static_cast<unsigned long long>(stats.requests), static_cast<double>(heap_peak - before) / kMiB,
         static_cast<double>(kHistory) / kMiB);
}

TEST(NeverHot, ALiveBlockCostsLittle) {
  constexpr size_t kBlocks = 1'000'000;
  bench::UnbackedDeviceMemory memory;
  Engine engine(&memory, {});
  std::vector<DeviceAddress> blocks(kBlocks);
  const uint64_t before = heap_bytes;
  for (DeviceAddress& block : blocks) ASSERT_EQ(engine.Allocate(512, 0, &block), EngineStatus::kOk);
  engine.WaitPlan(-1);
  const uint64_t full = heap_bytes - before;
  for (size_t i = 0; i < kBlocks; i += 2)
    ASSERT_EQ(engine.Release(blocks[i], 0), EngineStatus::kOk);  // the most free ranges
  const uint64_t broken = heap_bytes - before;
  printf("%.0f bytes a live block, %.0f with a free range beside each\n", static_cast<double>(full) / kBlocks,
         static_cast<double>(broken) / kBlocks);
  EXPECT_LE(full, 128 * kBlocks);
  EXPECT_LE(broken, 200 * kBlocks);
}

TEST(NeverHot, DetectionBacksOffAndComesBack) {
  bench::UnbackedDeviceMemory memory;
  EngineOptions options;
  options.window = 1 << 12;
  Engine engine(&memory, options);
  RandomJob job(&engine, 50);
  auto searches = [&](uint64_t requests) {
    const uint64_t before = engine.Stats().detections;
    for (uint64_t i = 0; i < requests; i += 64) {
      job.Play(64);
      engine.WaitPlan(-1);  // no search is skipped because the previous one still runs
    }
    return engine.Stats().detections - before;
  };
  searches(1 << 13);
  const uint64_t first = searches(1 << 14), second = searches(1 << 15), third = searches(1 << 16);
  EXPECT_GE(first, 5u);
  // Twice the requests, no more searches: about ln(2..3) * 16 each. At a fixed interval they would double each time.
  EXPECT_LE(second, first + 6);
  EXPECT_LE(third, first + 6);
  // A repetition is found all the same, within a part of the run's length so far.
  const uint64_t so_far = engine.Stats().requests;
  const uint64_t sizes[] = {1000, 20000, 3000, 400000, 50000};
  while (engine.Stats().planned == 0 && engine.Stats().requests < 2 * so_far) {
    DeviceAddress blocks[5] = {};
    for (int i = 0; i < 5; ++i) ASSERT_EQ(engine.Allocate(sizes[i], 0, &blocks[i]), EngineStatus::kOk);
    for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
    engine.WaitPlan(-1);
  }
  EXPECT_GT(engine.Stats().planned, 0u);
  EXPECT_LE(engine.Stats().requests - so_far, so_far / 8);
}

// A job that was hot and has changed is searched soon, however long it has run.
TEST(NeverHot, AJobThatLeavesItsScriptIsLookedAtSoon) {
  bench::UnbackedDeviceMemory memory;
  EngineOptions options;
  options.window = 1 << 10;
  Engine engine(&memory, options);
  auto step = [&](uint64_t unit) {
    DeviceAddress blocks[8] = {};
    for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(engine.Allocate(unit * (1 + i * i), 0, &blocks[i]), EngineStatus::kOk);
    for (DeviceAddress block : blocks) ASSERT_EQ(engine.Release(block, 0), EngineStatus::kOk);
    engine.WaitPlan(-1);
  };
  // Leaves the script again and again for a moment: each time it is searched, and nothing new is found.
  for (uint64_t i = 0; i < 40'000; ++i) {
    step(700);
    DeviceAddress extra = 0;
    if (i % 16 != 0) continue;
    ASSERT_EQ(engine.Allocate(1'000'000 + 512 * i, 0, &extra), EngineStatus::kOk);
    ASSERT_EQ(engine.Release(extra, 0), EngineStatus::kOk);
  }
  ASSERT_GT(engine.Stats().planned, 0u);
  ASSERT_GT(engine.Stats().detections, 20u);
  const uint64_t planned = engine.Stats().planned, requests = engine.Stats().requests;
  while (engine.Stats().planned < planned + 800 && engine.Stats().requests < requests + 20'000) step(1900);
  EXPECT_LE(engine.Stats().requests - requests, 3000u);
}

TEST(NeverHot, AsksForTheComparisonOnceInAWhileAndNotWhereThereIsAPlan) {
  bench::UnbackedDeviceMemory memory;
  EngineOptions options;
  options.never_hot_requests = 2000;
  Engine engine(&memory, options);
  uint64_t nanoseconds = 0;
  RandomJob job(&engine, 50);
  job.Play(1900);
  EXPECT_EQ(engine.service(), Engine::Service::kServe);
  EXPECT_FALSE(engine.BeginComparison(&nanoseconds));
  job.Play(200);
  ASSERT_EQ(engine.service(), Engine::Service::kCompare);
  EXPECT_TRUE(engine.BeginComparison(&nanoseconds));
  EXPECT_GT(nanoseconds, 0u);
  EXPECT_FALSE(engine.BeginComparison(&nanoseconds)) << "one caller is enough";
  job.Play(20'000);
  EXPECT_EQ(engine.service(), Engine::Service::kServe) << "not again so soon";
  job.Play(20'000);
  EXPECT_EQ(engine.service(), Engine::Service::kCompare);
  engine.LeaveToDriver();
  EXPECT_EQ(engine.service(), Engine::Service::kLeave);

  Engine hot(&memory, options);
  DeviceAddress block = 0;
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_EQ(hot.Allocate(512u * (1 + static_cast<unsigned>(i) % 7), 0, &block), EngineStatus::kOk);
    ASSERT_EQ(hot.Release(block, 0), EngineStatus::kOk);
    if (i % 64 == 0 && i < 2000) hot.WaitPlan(-1);
  }
  EXPECT_EQ(hot.service(), Engine::Service::kServe);
}

}  // namespace
}  // namespace hotpack
