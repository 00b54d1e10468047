#include "bench/varying_job.h"

#include <algorithm>
#include <random>
#include <unordered_map>
#include <utility>

namespace hotpack::bench {
namespace {

EngineOptions LogicalTime() {
  EngineOptions options;
  options.logical_time = true;
  return options;
}

}  // namespace

VaryingSequence MakeVaryingSteps(int layers, int steps) {
  constexpr uint64_t kTokenBytes = 32 << 10, kShortest = 64, kLengths = 64, kGradientBytes = 1 << 20;
  constexpr int kEvaluateEvery = 4;  // steps
  std::mt19937_64 random(1);
  VaryingSequence sequence;
  for (int step = 0; step < steps; ++step) {
    std::vector<Call>& calls = sequence.steps.emplace_back();
    uint32_t slots = 0;
    const auto allocate = [&](uint64_t bytes) {
      calls.push_back({slots, bytes});
      return slots++;
    };
    const auto release = [&](uint32_t slot) { calls.push_back({slot, 0}); };
    const uint64_t output_bytes = kTokenBytes * (kShortest + random() % kLengths);
    std::vector<uint32_t> outputs, gradients;
    for (int layer = 0; layer < layers; ++layer) {
      const uint32_t workspace = allocate(output_bytes / 2);
      outputs.push_back(allocate(output_bytes));
      release(workspace);
    }
    while (!outputs.empty()) {
      const uint32_t workspace = allocate(output_bytes / 2);
      gradients.push_back(allocate(kGradientBytes));
      release(workspace);
      release(outputs.back());
      outputs.pop_back();
    }
    for (const uint32_t gradient : gradients) release(gradient);
    for (int layer = 0; layer < layers && step % kEvaluateEvery == 0; ++layer) {
      const uint32_t before = allocate(output_bytes / 4);
      const uint32_t output = allocate(output_bytes / 2);
      release(before);
      release(output);
    }
    sequence.slots = std::max(sequence.slots, slots);
  }
  return sequence;
}

VaryingSequence StepsOf(const Trace& trace) {
  VaryingSequence sequence;
  sequence.steps.emplace_back();
  std::unordered_map<uint64_t, uint32_t> slots;  // of live blocks, by id
  std::vector<uint32_t> free;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kMark) sequence.steps.emplace_back();
    if (event.kind == EventKind::kAllocate && event.bytes > 0) {
      if (free.empty()) free.push_back(sequence.slots++);
      slots[event.id] = free.back();
      free.pop_back();
      sequence.steps.back().push_back({slots[event.id], event.bytes});
    }
    const auto slot = event.kind == EventKind::kRelease ? slots.find(event.id) : slots.end();
    if (slot == slots.end()) continue;
    sequence.steps.back().push_back({slot->second, 0});
    free.push_back(slot->second);
    slots.erase(slot);
  }
  return sequence;
}

VaryingJob::VaryingJob(VaryingSequence sequence)
    : sequence_(std::move(sequence)), addresses_(sequence_.slots), engine_(&memory_, LogicalTime()) {}

bool VaryingJob::WarmUp(size_t steps) {
  while (next_ < steps && next_ < sequence_.steps.size()) {
    if (!PlayStep(UINT64_MAX)) return false;
  }
  const hotpack_stats stats = engine_.Stats();
  planned_before_ = stats.planned;
  requests_ = 0;
  return stats.envelope_entries > 0;
}

uint64_t VaryingJob::Play(uint64_t pairs) {
  while (requests_ < pairs && next_ < sequence_.steps.size() && PlayStep(pairs)) {
  }
  return requests_;
}

double VaryingJob::Planned() {
  return 100.0 * static_cast<double>(engine_.Stats().planned - planned_before_) / static_cast<double>(requests_);
}

// Until there have been `most` requests in all.
bool VaryingJob::PlayStep(uint64_t most) {
  engine_.Mark();
  for (const Call& call : sequence_.steps[next_]) {
    DeviceAddress& address = addresses_[call.slot];
    if (call.bytes != 0 && requests_ == most) break;
    const EngineStatus status =
        call.bytes != 0 ? engine_.Allocate(call.bytes, 0, &address) : engine_.Release(address, 0);
    if (status != EngineStatus::kOk) return false;
    requests_ += call.bytes != 0 ? 1 : 0;
  }
  ++next_;
  return true;
}

}  // namespace hotpack::bench
