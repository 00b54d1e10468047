#include "preload/cupti/collector.h"

#include <signal.h>
#include <time.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "preload/cupti/submissions.h"

namespace hotpack::cupti {
namespace {

constexpr int kTickMs = 20;     // between checks of the iterations
constexpr int kLookTicks = 10;  // between checks of the subscription, the clocks and the new records
constexpr int kStartMs = 2000;  // the program's thread waits no longer
constexpr int kAnswerMs = 3000;

timespec After(int milliseconds) {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += milliseconds / 1000;
  at.tv_nsec += milliseconds % 1000 * 1'000'000;
  if (at.tv_nsec >= 1'000'000'000) {
    at.tv_nsec -= 1'000'000'000;
    ++at.tv_sec;
  }
  return at;
}

void Sleep(int milliseconds) {
  const timespec at = After(milliseconds);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

class MutexScope {
 public:
  explicit MutexScope(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~MutexScope() { pthread_mutex_unlock(mutex_); }
  MutexScope(const MutexScope&) = delete;
  MutexScope& operator=(const MutexScope&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

}  // namespace

template <typename Done>
void Collector::WaitLocked(int milliseconds, Done done) {
  const timespec until = After(milliseconds);
  while (!done()) {
    if (pthread_cond_timedwait(&changed_, &mutex_, &until) != 0) return;
  }
}

void Collector::Enter(State state) {
  MutexScope lock(&mutex_);
  state_ = state;
  pthread_cond_broadcast(&changed_);
}

void Collector::Say(const char* format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  host_->say(line);
}

// --- The program's threads -------------------------------------------------------------------------------------------

bool Collector::Start(const hotpack_collector_host* host) {
  host_ = host;
  iterations_wanted_ = host->cupti_iterations();
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&changed_, &monotonic);
  pthread_condattr_destroy(&monotonic);
  state_ = State::kStarting;
  // Signals belong to the program: the collector's thread handles none.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, RunThread, this);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error != 0) {
    Enter(State::kDone);
    Say("kernel times are not recorded: no thread can be started");
    return false;
  }
  pthread_detach(thread);
  MutexScope lock(&mutex_);
  WaitLocked(kStartMs, [&] { return state_ != State::kStarting; });
  return state_ == State::kOn || state_ == State::kStarting;
}

void Collector::Flush() {
  if (abandoned_.load(std::memory_order_relaxed)) return;
  MutexScope lock(&mutex_);
  if (state_ != State::kOn) return;
  const uint64_t mine = ++flushes_wanted_;
  pthread_cond_broadcast(&changed_);
  WaitLocked(kAnswerMs, [&] { return flushes_done_ >= mine || state_ == State::kDone; });
}

void Collector::End() {
  if (abandoned_.load(std::memory_order_relaxed)) return;
  noting_.store(false, std::memory_order_relaxed);
  MutexScope lock(&mutex_);
  if (state_ == State::kOff) return;
  end_wanted_ = true;
  pthread_cond_broadcast(&changed_);
  WaitLocked(kAnswerMs, [&] { return state_ == State::kDone; });
}

void Collector::Submitted(CUpti_CallbackId call, const CUpti_CallbackData& data) {
  if (!noting_.load(std::memory_order_acquire) || data.callbackSite != CUPTI_API_ENTER) return;
  const Submission submission = SubmissionOf(call, data.functionParams);
  const char* name = submission.kernel ? data.symbolName : submission.name;
  if (host_->launch(data.correlationId, name, submission.stream, submission.per_thread ? 1 : 0) == 0) return;
  launches_.fetch_add(1, std::memory_order_relaxed);
}

// --- CUPTI's threads -------------------------------------------------------------------------------------------------

void Collector::BufferRequested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = buffers_.Take();
  *bytes = *buffer != nullptr ? Buffers::kBytes : 0;
  *most_records = 0;  // as many as fit
}

void Collector::BufferCompleted(uint8_t* buffer, size_t valid_bytes) {
  if (buffer == nullptr) return;
  if (valid_bytes > 0 && !abandoned_.load(std::memory_order_relaxed)) {
    works_.fetch_add(HandOver(library_, *host_, clock_, buffer, valid_bytes), std::memory_order_relaxed);
  }
  buffers_.Return(buffer);
}

// --- Our thread ------------------------------------------------------------------------------------------------------

void* Collector::RunThread(void* self) {
  static_cast<Collector*>(self)->Run();
  return nullptr;
}

void Collector::Run() {
  host_->enter_hook();  // driver calls of CUPTI on this thread are not the program's
  if (Attach()) {
    Enter(State::kOn);
    Watch();
  }
  Enter(State::kDone);
}

// Returns when it is time to detach, or when CUPTI is lost.
void Collector::Watch() {
  for (int tick = 1;; ++tick) {
    bool end, flush;
    uint64_t wanted;
    {
      MutexScope lock(&mutex_);
      WaitLocked(kTickMs, [&] { return end_wanted_ || flushes_wanted_ != flushes_done_; });
      end = end_wanted_;
      wanted = flushes_wanted_;
      flush = wanted != flushes_done_;
    }
    const bool look = end || flush || tick % kLookTicks == 0;
    if (look && Lost(true)) return;
    if (look) clock_.Measure(library_, *host_);
    if (end) return Detach({500, 1500});
    if (Enough()) return Lost(true) ? void() : Detach({500, 5000});
    if (flush) {
      Drain({100, 1500});
      MutexScope lock(&mutex_);
      flushes_done_ = wanted;
      pthread_cond_broadcast(&changed_);
    } else if (look) {
      library_.cuptiActivityFlushAll(0);  // so that a killed process leaves the earlier records
    }
  }
}

bool Collector::Enough() const {
  return iterations_wanted_ > 0 && host_->planned_iterations() >= static_cast<int64_t>(iterations_wanted_);
}

// Waits until the records of the launched work have arrived, without a call that waits for the device. Records of
// failed launches, and dropped records, never arrive, and which ones is unknown. So it ends when no more records come.
void Collector::Drain(Patience patience) {
  constexpr int kStepMs = 5;
  uint64_t arrived = works_.load(std::memory_order_relaxed);
  for (int waited = 0, still = 0; waited <= patience.in_all_ms && still <= patience.without_progress_ms;
       waited += kStepMs) {
    if (library_.cuptiActivityFlushAll(0) != CUPTI_SUCCESS) return;
    const uint64_t now = works_.load(std::memory_order_relaxed);
    if (now >= launches_.load(std::memory_order_relaxed)) return;
    still = now == arrived ? still + kStepMs : 0;
    arrived = now;
    Sleep(kStepMs);
  }
}

void Collector::SayDropped() {
  size_t dropped = 0;
  if (library_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS && dropped > 0) {
    Say("CUPTI dropped %zu records: as many kernels, copies or allocations have no times", dropped);
  }
}

void Collector::Detach(Patience patience) {
  noting_.store(false, std::memory_order_release);
  for (const CUpti_CallbackId call : kSubmissions) {
    library_.cuptiEnableCallback(0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, call);
  }
  Drain(patience);
  if (Lost(false)) return;
  Withdraw();
}

// Returns everything: disables the kinds, then returns the buffers, complete or not, then the subscription.
void Collector::Withdraw() {
  for (const CUpti_ActivityKind kind : kKinds) library_.cuptiActivityDisable(kind);
  // Twice: a launch in progress may request a buffer after the first flush. The next tool would find that buffer in
  // CUPTI.
  constexpr int kUnderWayMs = 5;
  library_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Sleep(kUnderWayMs);
  library_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  SayDropped();
  library_.cuptiUnsubscribe(subscriber_);
}

}  // namespace hotpack::cupti
