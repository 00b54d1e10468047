// Shows on the terminal what is running and how far it is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace hotpack {

// Shows one line on stderr from its second second on: "WHAT: 40 %, 3 s", or without a total "WHAT: 3 s". The line
// overwrites itself and disappears with the object. Shows nothing if stderr is no terminal. No other output may go
// there meanwhile.
class Progress {
 public:
  explicit Progress(std::string what, uint64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets how much of the total is done. Lock-free, thread-safe.
  void Reached(uint64_t done) { done_.store(done, std::memory_order_relaxed); }

 private:
  void Show();

  const std::string what_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace hotpack
