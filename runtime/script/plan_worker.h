// A thread that makes plans in the background, so that the job never waits for a solve.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/script/plan_builder.h"

namespace hotpack {

// One thread, started with the first job; at most one job at a time. Thread-safe.
class PlanWorker {
 public:
  // Does a job, on the worker's thread; `cancel`: end with what there is.
  using Work = std::function<void(const PlanJob&, const std::atomic<bool>* cancel)>;

  // on_demand: a job begins only when a thread waits for it. So what the poster still does before it waits is done
  // before the job, in every run alike.
  explicit PlanWorker(Work work, bool on_demand = false) : work_(std::move(work)), on_demand_(on_demand) {}
  ~PlanWorker();  // cancels and joins

  bool Post(PlanJob job);  // false: busy, the job is dropped
  bool Busy() const { return busy_.load(std::memory_order_acquire); }
  void FinishEarly();             // the job that is being done ends with what it has
  bool WaitIdle(int timeout_ms);  // negative: no limit
  void Abandon();                 // in a forked child: there is no thread
  void Detach();                  // no more jobs; the thread ends by itself, soon. The worker must live for ever then

 private:
  void Loop();
  void StartThread();
  bool MayBegin() const { return job_.has_value() && (!on_demand_ || waiters_ > 0); }  // with the mutex

  Work work_;
  const bool on_demand_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<PlanJob> job_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> cancel_{false};
  bool stop_ = false;
  int waiters_ = 0;
  std::thread thread_;
};

}  // namespace hotpack
