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

// Starts its one thread with the first job. Holds at most one job at a time. Thread-safe.
class PlanWorker {
 public:
  // Does a job, on the worker's thread. Once `cancel` is set, it ends with the best result so far.
  using Work = std::function<void(const PlanJob&, const std::atomic<bool>* cancel)>;

  // `on_demand`: a job begins only when a thread waits for it. So everything the poster does before it waits precedes
  // the job, in every run alike.
  explicit PlanWorker(Work work, bool on_demand = false) : work_(std::move(work)), on_demand_(on_demand) {}
  ~PlanWorker();  // cancels and joins

  bool Post(PlanJob job);  // returns false if busy: the job is dropped
  bool Busy() const { return busy_.load(std::memory_order_acquire); }
  void FinishEarly();             // makes the current job end with its best result so far
  bool WaitIdle(int timeout_ms);  // returns whether idle; negative: no limit
  void Abandon();                 // in a forked child, which has no worker thread
  // Accepts no more jobs. The thread ends by itself, soon. The worker must never be destroyed after that.
  void Detach();

 private:
  void Loop();
  void StartThread();
  bool MayBegin() const { return job_.has_value() && (!on_demand_ || waiters_ > 0); }  // needs the mutex

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
