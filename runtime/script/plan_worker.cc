#include "runtime/script/plan_worker.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <utility>

namespace hotpack {

PlanWorker::~PlanWorker() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    cancel_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Signals belong to the program: this thread handles none.
void PlanWorker::StartThread() {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

bool PlanWorker::Post(PlanJob job) {
  if (Busy()) return false;
  std::lock_guard lock(mutex_);
  if (busy_ || stop_) return false;
  job_ = std::move(job);
  busy_ = true;
  if (!thread_.joinable()) {
    try {
      StartThread();
    } catch (...) {  // the system refused a thread: no plan
      job_.reset();
      busy_ = false;
      return false;
    }
  }
  changed_.notify_all();
  return true;
}

void PlanWorker::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || MayBegin(); });
    if (stop_) return;
    PlanJob job = std::move(*job_);
    job_.reset();
    cancel_ = false;
    lock.unlock();
    try {
      work_(job, &cancel_);
    } catch (...) {  // the host is out of memory: no plan
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void PlanWorker::FinishEarly() {
  std::lock_guard lock(mutex_);
  if (busy_ && !job_) cancel_ = true;
}

bool PlanWorker::WaitIdle(int timeout_ms) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  if (on_demand_) changed_.notify_all();
  auto idle = [this] { return !busy_ || stop_; };
  bool is_idle = true;
  if (timeout_ms < 0) {
    changed_.wait(lock, idle);
  } else {
    is_idle = changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), idle);
  }
  --waiters_;
  return is_idle;
}

// Does not join: the caller may hold the dynamic linker's lock (a library's destructor), which an ending thread may
// need.
void PlanWorker::Detach() {
  std::lock_guard lock(mutex_);
  stop_ = true;
  cancel_ = true;
  if (thread_.joinable()) thread_.detach();
  changed_.notify_all();
}

void PlanWorker::Abandon() {
  busy_ = true;  // accepts no more jobs. The thread object is left alone: the thread belongs to another process
}

}  // namespace hotpack
