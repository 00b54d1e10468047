// The engine's figures. docs/statistics.md says what each means.
#include <algorithm>

#include "runtime/engine_impl.h"

namespace hotpack {

// Writes the figures to where they are read from, perhaps by another process after this one has died.
void Engine::Impl::FlushStats() {
  hotpack_stats s{};
  s.requests = Requests();
  s.planned = planned_;
  s.displaced = displaced_;
  s.dynamic = others_ - displaced_;
  s.passed_through = passed_through_;
  s.iterations = iterations_;
  s.steady_iteration = steady_iteration_;
  s.carried = carried_;
  s.plan_height = plan_height_;
  s.plan_lower_bound = plan_lower_bound_;
  s.live_peak = guards_ ? guards_->live_peak() : live_peak_units_ * kUnitBytes;  // what was asked for
  s.reserved_peak = reserved_peak_;
  s.divergences = Divergences();
  s.reoptimizations = reoptimizations_;
  s.ns_per_request = timer_.Median();
  s.managed_peak = spill_.peak_bytes();
  s.detections = detections_;
  s.planning_ns = planning_ns_;
  s.plans = plans_;
  s.variants = variants_.size();
  s.switches = switches_;
  stream_order_.AddTo(&s);
  if (steady_) {
    s.requests_steady = Requests() - requests_before_;
    s.planned_steady = planned_ - planned_before_;
    s.retained = retained_;
    s.reserved_steady = reserved_steady_;
    s.heap_allocations_steady = heap_allocations_ - heap_before_;
    uint64_t calls = arena_.driver_calls() - calls_before_ + passed_through_ - passed_before_;
    uint64_t iterations = std::max<uint64_t>(1, iterations_ - static_cast<uint64_t>(steady_iteration_));
    s.driver_memory_calls_steady = (calls + iterations - 1) / iterations;
  }
  (options_.stats != nullptr ? *options_.stats : own_stats_) = s;
}

hotpack_stats Engine::Impl::Stats() {
  Lock lock(mutex_, std::defer_lock);
  if (!abandoned()) {
    lock.lock();
    FlushStats();
  }
  return options_.stats != nullptr ? *options_.stats : own_stats_;
}

}  // namespace hotpack
