#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/adaptive_mutex.h"

namespace hotpack {
namespace {

TEST(AdaptiveMutex, TryLockSaysWhetherItIsHeld) {
  AdaptiveMutex lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// Short sections, with a long one now and then, so that waiters spin, sleep, are woken in vain and sleep again.
TEST(AdaptiveMutex, OneAtATimeAndNobodySleepsForEver) {
  constexpr int kThreads = 8, kTimes = 20000;
  AdaptiveMutex lock;
  int inside = 0, together = 0;
  long count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        std::lock_guard<AdaptiveMutex> hold(lock);
        together += ++inside != 1 ? 1 : 0;
        ++count;
        if (i % 2000 == t) std::this_thread::sleep_for(std::chrono::microseconds(200));
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, 0);
  EXPECT_EQ(count, long{kThreads} * kTimes);
}

// All threads sleep while one holds it. Each is woken in the end, though no other thread takes the lock in between.
TEST(AdaptiveMutex, AllSleepersAreWoken) {
  for (int round = 0; round < 20; ++round) {
    AdaptiveMutex lock;
    std::atomic<int> done{0};
    lock.lock();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        lock.lock();
        lock.unlock();
        ++done;
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(done, 0);
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, 8);
  }
}

}  // namespace
}  // namespace hotpack
