#include "tools/compare/compare_facts.h"

#include <algorithm>
#include <functional>

#include "packer/bounds.h"
#include "packer/pack.h"
#include "packer/stop.h"
#include "runtime/engine/engine.h"
#include "tools/cli/run_all.h"
#include "tools/compare/engine_replay.h"
#include "tools/compare/recording.h"
#include "tools/recording/trace_facts.h"

namespace hotpack {
namespace {

void TakePlan(const PeerRecording& recording, Comparison* comparison) {
  const HotIteration& hot = *recording.hot;
  comparison->period = hot.period.length;
  comparison->not_planned = LivePeakInWindow(recording, true);
  std::vector<uint32_t> index;
  const Instance instance = ToInstance(hot.profile, &index);
  if (instance.blocks.empty()) return;
  PackOptions options;
  WorkClock clock;
  options.time_limit_ns = kLogicalPlanLimitNs;
  options.clock = &clock;
  const PackResult plan = Pack(instance, options);
  comparison->plan_height = static_cast<uint64_t>(plan.placement.height);
  comparison->plan_lower_bound = static_cast<uint64_t>(plan.lower_bound);
}

PeerResult ToPeer(const EngineReplay& replay) {
  PeerResult result;
  result.name = "hotpack";
  result.title = "hotpack's engine";
  result.reserved_peak = replay.reserved_peak;
  result.reserved_steady = replay.reserved_window;
  result.device_calls = replay.device_calls;
  result.synchronizations = replay.synchronizations;
  result.out_of_memory = replay.out_of_memory;
  result.failed_request = replay.failed_request;
  result.failed_bytes = replay.failed_bytes;
  return result;
}

SmallestDevice SmallestDeviceOfEngine(const EngineReplay& unlimited, const Trace& trace, const PeerRecording& recording,
                                      uint64_t live_peak) {
  return FindSmallestDevice(live_peak, unlimited.reserved_peak, [&](uint64_t capacity) {
    const EngineReplay on = ReplayOnEngine(trace, recording, capacity);
    return DeviceProbe{!on.out_of_memory, on.device_calls, on.synchronizations};
  });
}

}  // namespace

Comparison Compare(const Trace& trace, const std::vector<std::string>& peers, uint64_t capacity, bool smallest) {
  Comparison comparison;
  const TraceFacts facts = CountFacts(trace);
  comparison.requests = facts.requests;
  comparison.live_peak = facts.live_peak;
  const PeerRecording recording = TakeRecording(trace);
  comparison.live_steady = LivePeakInWindow(recording, false);
  comparison.marked = recording.marked;
  comparison.peers.resize(peers.size());
  std::vector<std::function<void()>> tasks;  // each writes fields of its own
  tasks.push_back([&] {
    const EngineReplay replay = ReplayOnEngine(trace, recording, capacity);
    comparison.hotpack = ToPeer(replay);
    comparison.held_while_served = replay.reserved_steady;
    if (smallest) comparison.hotpack.smallest = SmallestDeviceOfEngine(replay, trace, recording, comparison.live_peak);
  });
  for (size_t i = 0; i < peers.size(); ++i) {
    tasks.push_back([&, i] {
      PeerResult& peer = comparison.peers[i] = SimulatePeer(peers[i], trace, recording, {capacity});
      if (smallest) peer.smallest = SmallestDeviceOf(peer, trace, recording, comparison.live_peak);
    });
  }
  if (recording.hot) tasks.push_back([&] { TakePlan(recording, &comparison); });
  RunAll(tasks);
  return comparison;
}

}  // namespace hotpack
