#include "bench/request_sequence.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "bench/training_sequence.h"
#include "tools/replay/replay_steps.h"

namespace hotpack::bench {
namespace {

// A call of the iteration. `age`: how many iterations ago the released block was allocated.
struct CyclicCall {
  uint32_t request = 0;
  uint64_t bytes = 0;
  uint32_t age = 0;
};

constexpr int kLayers = 64;

uint64_t RoundUp(uint64_t bytes) { return (bytes + 511) / 512 * 512; }

// Returns the calls of the iteration: every request is released exactly once, at some age.
std::vector<CyclicCall> CyclicCalls(const RecordedSteps& recorded, uint64_t* held_to_end) {
  const auto step = static_cast<uint32_t>(recorded.steady.value_or(0));
  std::vector<const PlayedEvent*> events;
  if (recorded.steady) {
    for (const PlayedEvent& event : recorded.steps[step]) events.push_back(&event);
  } else {
    for (const auto& each : recorded.steps) {
      for (const PlayedEvent& event : each) events.push_back(&event);
    }
  }
  // Without a steady step the whole recording is the iteration. Requests of all steps are numbered consecutively.
  std::vector<uint32_t> first(recorded.steps.size(), 0);
  if (!recorded.steady) {
    for (size_t i = 1; i < first.size(); ++i) first[i] = first[i - 1] + recorded.requests[i - 1];
  }
  const auto request_of = [&](const PlayedEvent* event) { return first[event->block.step] + event->block.request; };
  std::set<uint32_t> asked, released;
  for (const PlayedEvent* event : events) {
    if (event->kind == EventKind::kAllocate && event->bytes != 0) asked.insert(request_of(event));
  }
  std::vector<CyclicCall> calls;
  for (const PlayedEvent* event : events) {
    const bool allocation = event->kind == EventKind::kAllocate;
    if ((!allocation && event->kind != EventKind::kRelease) || asked.count(request_of(event)) == 0) continue;
    const uint32_t age = recorded.steady ? step - event->block.step : 0;
    if (allocation) {
      calls.push_back({request_of(event), event->bytes, 0});
    } else if (age <= recorded.reach && released.insert(request_of(event)).second) {
      calls.push_back({request_of(event), 0, age});
    }
  }
  for (const uint32_t request : asked) {
    if (released.count(request) != 0) continue;
    calls.push_back({request, 0, 0});
    ++*held_to_end;
  }
  return calls;
}

// Plays enough iterations to reach the steady peak.
uint64_t LivePeak(const RequestSequence& sequence) {
  std::vector<uint64_t> held(sequence.slots, 0);
  uint64_t live = 0, peak = 0;
  for (size_t i = 0; i < 2 * sequence.forms.size(); ++i) {
    for (const RequestCall& call : sequence.forms[i % sequence.forms.size()]) {
      live -= held[call.slot];
      held[call.slot] = RoundUp(call.bytes);
      live += held[call.slot];
      peak = std::max(peak, live);
    }
  }
  return peak;
}

RequestSequence Unroll(const std::vector<CyclicCall>& calls, uint64_t held_to_end) {
  RequestSequence sequence;
  sequence.held_to_end = held_to_end;
  uint32_t requests = 0, oldest = 0;
  for (const CyclicCall& call : calls) {
    requests = std::max(requests, call.request + 1);
    oldest = std::max(oldest, call.age);
    sequence.pairs += call.bytes != 0;
  }
  const uint32_t forms = oldest + 1;
  sequence.slots = requests * forms;
  sequence.forms.resize(forms);
  for (uint32_t form = 0; form < forms; ++form) {
    for (const CyclicCall& call : calls) {
      const uint32_t born = (form + forms - call.age) % forms;
      sequence.forms[form].push_back({born * requests + call.request, call.bytes});
    }
  }
  sequence.live_peak = LivePeak(sequence);
  return sequence;
}

// Returns an iteration that holds no block over its end.
RequestSequence Repeated(const Sequence& step) {
  RequestSequence sequence;
  sequence.forms.emplace_back();
  for (const Call& call : step.calls) sequence.forms[0].push_back({call.slot, call.bytes});
  sequence.slots = step.slots;
  sequence.pairs = step.slots;
  sequence.live_peak = LivePeak(sequence);
  return sequence;
}

}  // namespace

absl::StatusOr<RequestSequence> SequenceOf(const Trace& trace) {
  uint64_t held_to_end = 0;
  const std::vector<CyclicCall> calls = CyclicCalls(CutIntoSteps(trace), &held_to_end);
  if (calls.empty()) return absl::InvalidArgumentError("no request in it");
  return Unroll(calls, held_to_end);
}

RequestSequence BuiltInSequence() { return Repeated(MakeTrainingSequence(kLayers)); }

RequestSequence GeneratedSequence(uint32_t blocks) { return Repeated(MakeIteration(blocks, Lives::kNested)); }

}  // namespace hotpack::bench
