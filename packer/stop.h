// When a solver has to end: a deadline on the monotonic clock and a flag that another thread may set.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hotpack {

// Nanoseconds on a clock that never goes back; only differences mean something.
inline int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Asked in the inner loops, so the clock is read only once in a while. Not thread-safe: one a thread.
class StopCheck {
 public:
  // deadline_ns: a value of MonotonicNanoseconds(). cancel may be null.
  StopCheck(int64_t deadline_ns, const std::atomic<bool>* cancel) : deadline_ns_(deadline_ns), cancel_(cancel) {}

  // True once the deadline has passed or the flag is set; stays true. `work` is about the number of memory words that
  // were touched since the last call: the clock is read when the sum passes kWorkPerClockRead (some 20 microseconds).
  bool operator()(int64_t work = 1) {
    work_ += work;
    total_work_ += work;
    if (work_ >= kWorkPerClockRead && !stopped_) {
      work_ = 0;
      stopped_ =
          (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) || MonotonicNanoseconds() >= deadline_ns_;
    }
    return stopped_;
  }

  // The same with the clock read now.
  bool Now() {
    work_ = kWorkPerClockRead;
    return (*this)(0);
  }

  bool stopped() const { return stopped_; }
  // All the work told so far. What is bounded by it, and not by the clock, comes out the same every time.
  int64_t total_work() const { return total_work_; }

 private:
  static constexpr int64_t kWorkPerClockRead = 16'384;

  const int64_t deadline_ns_;
  const std::atomic<bool>* const cancel_;
  int64_t work_ = 0;  // since the clock was read
  int64_t total_work_ = 0;
  bool stopped_ = false;
};

}  // namespace hotpack
