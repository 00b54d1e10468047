// Jobs that are not hot, or not any more: how often their history is searched, and whether serving them is worth it.
#include <ctime>

#include "runtime/engine_impl.h"

namespace hotpack {
namespace {

// Processor time of the calling thread: nanoseconds.
uint64_t ThreadTime() {
  timespec time = {};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

// On the planner's thread: a job, and what came of it.
void Engine::Impl::PlanAndNote(const PlanJob& job, const std::atomic<bool>* cancel) {
  uint64_t plans_before = 0;
  const uint64_t start = ThreadTime();
  {
    Lock lock(mutex_);
    plans_before = plans_;
  }
  Plan(job, cancel);
  Lock lock(mutex_);
  planning_ns_ += ThreadTime() - start;
  const bool searched = !job.profile && job.period == 0;
  if (searched) ++detections_;
  if (plans_ != plans_before) {
    fruitless_ = 0;
  } else if (searched) {
    ++fruitless_;
  }
}

// Requests until the history is searched again. A search costs as much as the history is long, so once that is full the
// interval has to grow with the run: then all searches together cost the window's length times the logarithm of the run's.
uint64_t Engine::Impl::DetectionInterval(uint64_t count) const {
  const uint64_t usual = std::max<uint64_t>(64, std::min(count, history_.Window()) / 16);
  return fruitless_ < 2 ? usual : std::max(usual, count / 16);
}

// The job has left what was planned: something else may repeat from now on.
void Engine::Impl::DetectSoon(uint64_t count) {
  fruitless_ = 0;
  next_detection_ = std::min(next_detection_, count + DetectionInterval(count));
}

// A request has been served by best fit. The lock is held.
void Engine::Impl::AfterDynamic() {
  if (follower_.active()) return;
  if (others_ % RequestTimer::kEvery == 0) attention_.store(true, std::memory_order_relaxed);
  if (plans_ == 0) comparison_.NoteDynamic(others_);
}

bool Engine::Impl::BeginComparison(uint64_t* median_ns) {
  if (abandoned() || !comparison_.Claim()) return false;
  Lock lock(mutex_);
  *median_ns = comparison_.MedianTime();
  return *median_ns != 0 && plans_ == 0;
}

}  // namespace hotpack
