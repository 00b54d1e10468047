// Threads that act in turn, so that the order of all their actions is the same in each run.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace property {

class Workers {
 public:
  explicit Workers(int count) {
    for (int w = 1; w < count; ++w) threads_.emplace_back([this, w] { Loop(w); });
  }
  ~Workers() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      turn_ = kEnd;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `what` on worker `w`, and returns when it has ended. Worker 0 is the calling thread.
  void Run(int w, const std::function<void()>& what) {
    if (w == 0) {
      what();
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    what_ = &what;
    turn_ = w;
    changed_.notify_all();
    changed_.wait(lock, [this] { return turn_ == 0; });
  }

 private:
  static constexpr int kEnd = -1;

  void Loop(int w) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this, w] { return turn_ == w || turn_ == kEnd; });
      if (turn_ == kEnd) return;
      lock.unlock();
      (*what_)();
      lock.lock();
      turn_ = 0;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  const std::function<void()>* what_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace property
