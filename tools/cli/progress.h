// What is being done and how far it is, on the terminal, for as long as it takes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace hotpack {

// From its second second on, one line on stderr that writes over itself and is gone when the object is: "WHAT: 40 %, 3
// s", or without a total "WHAT: 3 s". Nothing at all where stderr is no terminal. Nothing else may be printed there
// meanwhile.
class Progress {
 public:
  explicit Progress(std::string what, uint64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // How much of the total is done. Lock-free; any thread.
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
