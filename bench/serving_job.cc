#include "bench/serving_job.h"

namespace hotpack::bench {

bool ServingJob::WarmUp() {
  constexpr int kMostSteps = 50;
  for (int step = 0; step < kMostSteps; ++step) {
    engine_.Mark();
    if (!PlayStep()) return false;
    engine_.WaitPlan(-1);
    const hotpack_stats stats = engine_.Stats();
    if (stats.steady_iteration >= 0 && stats.planned_steady >= static_cast<uint64_t>(PairsPerStep())) return true;
  }
  return false;
}

bool ServingJob::PlayStep() {
  for (const Call& call : sequence_.calls) {
    DeviceAddress& address = addresses_[call.slot];
    const EngineStatus status =
        call.bytes != 0 ? engine_.Allocate(call.bytes, 0, &address) : engine_.Release(address, 0);
    if (status != EngineStatus::kOk) return false;
  }
  return true;
}

bool ServingJob::AllPlanned() {
  const hotpack_stats stats = engine_.Stats();
  return stats.steady_iteration >= 0 && stats.planned_steady == stats.requests_steady;
}

}  // namespace hotpack::bench
