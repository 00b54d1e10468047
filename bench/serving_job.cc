#include "bench/serving_job.h"

namespace hotpack::bench {

bool ServingJob::WarmUp() {
  constexpr int kMaxSteps = 50;
  for (int step = 0; step < kMaxSteps; ++step) {
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

bool ServingJob::PlayStepOnStreams(uint32_t streams, uint64_t* waits) {
  for (const Call& call : sequence_.calls) {
    DeviceAddress& address = addresses_[call.slot];
    const uint32_t stream = call.slot % streams;
    ReuseAfter after;
    if (call.bytes != 0) {
      if (engine_.Allocate(call.bytes, stream | kStreamOrdered, &address, &after) != EngineStatus::kOk) return false;
      for (uint32_t i = 0; i < after.count; ++i) *waits += after.points[i].stream != stream;
    } else {
      after.Add(stream, ++tick_);
      if (engine_.Release(address, stream | kStreamOrdered, &after) != EngineStatus::kOk) return false;
    }
  }
  return true;
}

bool ServingJob::PlayStepWithOthers(uint64_t every) {
  const auto draw = [this] { return (random_ = random_ * 6364136223846793005u + 1442695040888963407u) >> 33; };
  for (const Call& call : sequence_.calls) {
    DeviceAddress& address = addresses_[call.slot];
    if (call.bytes == 0) {
      if (engine_.Release(address, 0) != EngineStatus::kOk) return false;
      continue;
    }
    if (++until_other_ >= every) {
      until_other_ = 0;
      DeviceAddress other = 0;
      if (engine_.Allocate(1 + draw() % (1 << 20), 0, &other) != EngineStatus::kOk) return false;
      if (engine_.Release(other, 0) != EngineStatus::kOk) return false;
    }
    if (engine_.Allocate(call.bytes, 0, &address) != EngineStatus::kOk) return false;
  }
  return true;
}

bool ServingJob::AllPlanned() {
  const hotpack_stats stats = engine_.Stats();
  return stats.steady_iteration >= 0 && stats.planned_steady == stats.requests_steady;
}

}  // namespace hotpack::bench
