// When a solver has to end: a deadline, on the monotonic clock or on one that counts work, and a flag that another
// thread may set.
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

// Logical time: a clock that advances with the work that solvers report, and with nothing else. A search that ends by
// it gives the same result on every machine, however loaded. About as quick as a real clock: a word of memory touched
// counts as a nanosecond. Not thread-safe.
class WorkClock {
 public:
  int64_t Now() const { return nanoseconds_; }  // since it was made
  void Advance(int64_t words) { nanoseconds_ += words; }

 private:
  int64_t nanoseconds_ = 0;
};

// Nanoseconds on `clock`; null: on the machine's.
inline int64_t NanosecondsOn(const WorkClock* clock) {
  return clock != nullptr ? clock->Now() : MonotonicNanoseconds();
}

// Asked in the inner loops, so the clock is read only once in a while. Not thread-safe: one a thread.
class StopCheck {
 public:
  // deadline_ns: a value of NanosecondsOn(clock). cancel may be null. `clock`, if not null, outlives this and is told
  // all work; only one StopCheck at a time may be in use with it.
  StopCheck(int64_t deadline_ns, const std::atomic<bool>* cancel, WorkClock* clock = nullptr)
      : deadline_ns_(deadline_ns), cancel_(cancel), clock_(clock) {}

  // True once the deadline has passed or the flag is set; stays true. `work` is about the number of memory words that
  // were touched since the last call: the clock is read when the sum passes kWorkPerClockRead (some 20 microseconds).
  bool operator()(int64_t work = 1) {
    work_ += work;
    total_work_ += work;
    if (work_ >= kWorkPerClockRead && !stopped_) ReadClock();
    return stopped_;
  }

  // The same with the clock read now.
  bool Now() {
    if (!stopped_) ReadClock();
    return stopped_;
  }

  bool stopped() const { return stopped_; }
  // All the work told so far. What is bounded by it, and not by the clock, comes out the same every time.
  int64_t total_work() const { return total_work_; }

 private:
  static constexpr int64_t kWorkPerClockRead = 16'384;
  static constexpr int64_t kWorkOfReading = 64;  // so that logical time passes in a loop that only asks

  void ReadClock() {
    if (clock_ != nullptr) clock_->Advance(work_ + kWorkOfReading);
    work_ = 0;
    stopped_ =
        (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) || NanosecondsOn(clock_) >= deadline_ns_;
  }

  const int64_t deadline_ns_;
  const std::atomic<bool>* const cancel_;
  WorkClock* const clock_;
  int64_t work_ = 0;  // since the clock was read
  int64_t total_work_ = 0;
  bool stopped_ = false;
};

}  // namespace hotpack
