#include "runtime/planning.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <new>

#include "packer/pack.h"

namespace hotpack {
namespace {

// How much higher the load may get so that releases may permute without a block being displaced.
constexpr uint32_t kJitterPercent = 10;

// A marked iteration: how far its repetition reaches back.
Period MarkedPeriod(const HistoryTail& tail, uint64_t length) {
  uint64_t n = tail.units.size(), run = 0;
  while (run + length < n && tail.units[n - 1 - run] == tail.units[n - 1 - run - length]) ++run;
  return {length, run};
}

}  // namespace

std::optional<Profile> FindProfile(const History& history, const PlanJob& job) {
  if (job.profile) return job.profile;
  HistoryTail tail = CopyTail(history, job.end, history.Window());
  Period period;
  if (job.period != 0) {
    if (job.period > tail.units.size()) return std::nullopt;
    period = MarkedPeriod(tail, job.period);
  } else {
    period = FindPeriod(tail);
    if (period.length == 0) return std::nullopt;
    if (!job.replace && job.known_period != 0 && period.length <= job.known_period) return std::nullopt;
  }
  Profile profile = BuildProfile(tail, period);
  for (const ProfileBlock& block : profile.blocks) {
    if (block.planned) return profile;
  }
  return std::nullopt;
}

std::shared_ptr<const Script> MakeScript(Profile profile, int64_t time_limit_ns, const std::atomic<bool>* cancel) {
  WidenForJitter(&profile, kJitterPercent);
  std::vector<uint32_t> index;
  Instance instance = ToInstance(profile, &index);
  PackOptions options;
  options.time_limit_ns = time_limit_ns;
  options.cancel = cancel;
  PackResult result = Pack(instance, options);
  if (result.status != PackStatus::kOk) return nullptr;
  if (static_cast<uint64_t>(result.placement.height) / kUnitBytes >= kNone) return nullptr;
  return std::make_shared<const Script>(CompileScript(profile, index, result.placement, result.lower_bound));
}

Planner::Planner(const History* history, int64_t time_limit_ns, Done done)
    : history_(history), time_limit_ns_(time_limit_ns), done_(std::move(done)) {}

Planner::~Planner() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    cancel_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Signals are the program's: none is handled on our thread.
void Planner::StartThread() {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { Loop(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

bool Planner::Post(PlanJob job) {
  if (Busy()) return false;
  std::lock_guard lock(mutex_);
  if (busy_ || stop_) return false;
  job_ = std::move(job);
  busy_ = true;
  if (!thread_.joinable()) {
    try {
      StartThread();
    } catch (...) {  // no thread to be had: no plan
      job_.reset();
      busy_ = false;
      return false;
    }
  }
  changed_.notify_all();
  return true;
}

void Planner::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || job_.has_value(); });
    if (stop_) return;
    PlanJob job = std::move(*job_);
    job_.reset();
    lock.unlock();
    std::shared_ptr<const Script> script;
    try {
      if (std::optional<Profile> profile = FindProfile(*history_, job)) {
        script = MakeScript(std::move(*profile), time_limit_ns_, &cancel_);
      }
    } catch (const std::bad_alloc&) {  // the host is out of memory: no plan
    }
    done_(std::move(script));
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

bool Planner::WaitIdle(int timeout_ms) {
  std::unique_lock lock(mutex_);
  auto idle = [this] { return !busy_ || stop_; };
  if (timeout_ms < 0) {
    changed_.wait(lock, idle);
    return true;
  }
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), idle);
}

void Planner::Abandon() {
  busy_ = true;  // takes no more jobs
  if (thread_.joinable()) thread_.detach();
}

}  // namespace hotpack
