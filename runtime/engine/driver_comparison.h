// Decides whether the driver's pool would serve a non-repeating job faster.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/request_timer.h"
#include "runtime/engine/engine.h"

namespace hotpack {

// Needs the engine's lock, except Claim and LeaveToDriver. O(1).
class DriverComparison {
 public:
  // The first comparison is due after `first_after` requests; later ones every 16 · `first_after` requests. `service`
  // must outlive this object.
  DriverComparison(std::atomic<Engine::Service>* service, uint64_t first_after)
      : service_(service), interval_(16 * first_after), next_(first_after) {}

  void AddTime(int64_t nanoseconds) { timer_.Add(nanoseconds); }  // of a request served by best fit
  uint64_t MedianTime() { return timer_.Median(); }               // nanoseconds; 0: none was timed

  // `dynamic` requests have been served by best fit, and there was no plan yet. Requests a comparison if one is due.
  void NoteDynamic(uint64_t dynamic) {
    if (dynamic < next_) return;
    next_ = dynamic + interval_;
    Engine::Service expected = Engine::Service::kServe;
    service_->compare_exchange_strong(expected, Engine::Service::kCompare, std::memory_order_relaxed);
  }

  // Returns true if a comparison was requested: the caller must make it. Lock-free.
  bool Claim() {
    Engine::Service expected = Engine::Service::kCompare;
    return service_->compare_exchange_strong(expected, Engine::Service::kServe);
  }
  bool leaves() const { return service_->load(std::memory_order_relaxed) == Engine::Service::kLeave; }
  void LeaveToDriver() { service_->store(Engine::Service::kLeave, std::memory_order_relaxed); }  // lock-free

 private:
  std::atomic<Engine::Service>* const service_;
  const uint64_t interval_;
  uint64_t next_;
  RequestTimer timer_;
};

}  // namespace hotpack
