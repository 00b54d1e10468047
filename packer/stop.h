// When a solver must end: at a deadline, on the monotonic clock or on one that counts work, or when another thread sets
// a flag.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hotpack {

// Returns nanoseconds on a clock that never goes back; only differences are meaningful.
inline int64_t MonotonicNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Logical time: a clock that advances only with the work that solvers report. A search limited by it gives the same
// result on every machine, whatever the load. It runs about as fast as a real clock: a touched memory word counts as a
// nanosecond. Not thread-safe.
class WorkClock {
 public:
  int64_t Now() const { return nanoseconds_; }  // since construction
  void Advance(int64_t words) { nanoseconds_ += words; }

 private:
  int64_t nanoseconds_ = 0;
};

// Returns nanoseconds on `clock`; null: on the machine's.
inline int64_t NanosecondsOn(const WorkClock* clock) {
  return clock != nullptr ? clock->Now() : MonotonicNanoseconds();
}

// Called in inner loops, so it reads the clock only occasionally. Not thread-safe: one per thread.
class StopCheck {
 public:
  // `deadline_ns`: a value of NanosecondsOn(clock). `cancel` may be null. `clock`, if not null, must outlive this
  // object and receives all work. Only one StopCheck at a time may use it.
  StopCheck(int64_t deadline_ns, const std::atomic<bool>* cancel, WorkClock* clock = nullptr)
      : deadline_ns_(deadline_ns), cancel_(cancel), clock_(clock) {}

  // Returns true once the deadline has passed or the flag is set, and stays true. `work`: approximate number of memory
  // words touched since the last call. The clock is read when the sum exceeds kWorkPerClockRead (about 20
  // microseconds).
  bool operator()(int64_t work = 1) {
    work_ += work;
    total_work_ += work;
    if (work_ >= kWorkPerClockRead && !stopped_) ReadClock();
    return stopped_;
  }

  // The same, but reads the clock now.
  bool Now() {
    if (!stopped_) ReadClock();
    return stopped_;
  }

  bool stopped() const { return stopped_; }
  // Returns all work reported so far. A search bounded by it, and not by the clock, gives the same result every time.
  int64_t total_work() const { return total_work_; }

 private:
  static constexpr int64_t kWorkPerClockRead = 16'384;
  static constexpr int64_t kWorkOfReading = 64;  // so that logical time passes in a loop that reports no work

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
