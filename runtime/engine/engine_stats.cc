#include "runtime/engine/engine_stats.h"

#include <algorithm>

namespace hotpack {

void EngineStats::SetIterations(uint64_t iterations, uint64_t count) {
  iterations_ = iterations;
  counted_to_ = count;
}

void EngineStats::RecountIterations(const Profile& profile, uint64_t count) {
  if (marks_ > 0) {
    SetIterations(marks_, count);  // requests before the first mark count as one iteration
    return;
  }
  // Requests before the repetition count as one iteration, if they are more than half of one.
  const uint64_t unseen = profile.seen_from > profile.period / 2 ? 1 : 0;
  SetIterations(unseen + (count - std::min(count, profile.seen_from)) / profile.period, count);
}

void EngineStats::BeginSteady(uint64_t driver_calls) {
  steady_iteration_ = static_cast<int64_t>(iterations_);
  steady_began_now_ = true;
  before_ = {Requests(), planned_requests_, driver_calls, heap_allocations_, passed_through_};
}

void EngineStats::EndHeapScope(uint64_t allocations) {
  heap_allocations_ += allocations;
  if (steady_began_now_) before_.heap_allocations = heap_allocations_;
  steady_began_now_ = false;
}

void EngineStats::AddTo(hotpack_stats* stats, uint64_t driver_calls) {
  stats->requests = Requests();
  stats->planned = planned_requests_;
  stats->displaced = displaced_;
  stats->dynamic = dynamic_requests_ - displaced_;
  stats->passed_through = passed_through_;
  stats->iterations = iterations_;
  stats->steady_iteration = steady_iteration_;
  stats->plans = plans_;
  stats->reoptimizations = reoptimizations_;
  stats->ns_per_request = timer_.Median();
  if (!steady()) return;
  stats->requests_steady = Requests() - before_.requests;
  stats->planned_steady = planned_requests_ - before_.planned;
  stats->retained = retained_;
  stats->heap_allocations_steady = heap_allocations_ - before_.heap_allocations;
  const uint64_t calls = driver_calls - before_.driver_calls + passed_through_ - before_.passed_through;
  const uint64_t iterations = std::max<uint64_t>(1, iterations_ - static_cast<uint64_t>(steady_iteration_));
  stats->driver_memory_calls_steady = (calls + iterations - 1) / iterations;
}

}  // namespace hotpack
