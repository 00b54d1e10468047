#include "tools/compare/peers.h"

#include <memory>

#include "tools/compare/offline.h"
#include "tools/compare/policy.h"
#include "tools/compare/recording.h"

namespace hotpack {
namespace {

// A policy is either online (gets request by request) or offline (gets all of them at once).
struct Peer {
  const char* name;
  const char* title;
  std::unique_ptr<PeerPolicy> (*online)(ModelDevice*);
  Placement (*offline)(const Instance&);
};

constexpr Peer kPeers[] = {
    {"cudamalloc", "one cudaMalloc a request", MakeSingleAllocations, nullptr},
    {"chainer", "Chainer's pool, the paper's baseline", MakeChainerPool, nullptr},
    {"pytorch", "PyTorch's caching allocator", MakePyTorch, nullptr},
    {"pytorch-expandable", "PyTorch with expandable segments", MakePyTorchExpandable, nullptr},
    {"best-fit", "one arena, best fit", [](ModelDevice* device) { return MakeOneArena(device, true); }, nullptr},
    {"first-fit", "one arena, first fit", [](ModelDevice* device) { return MakeOneArena(device, false); }, nullptr},
    {"tflite", "TFLite's planner, offline", nullptr, PackAsTflite},
    {"xla", "XLA's heap simulator, offline", nullptr, PackAsXla},
};

void PlayOnline(const Peer& peer, const PeerRecording& recording, uint64_t capacity, PeerResult* result) {
  ModelDevice device(capacity);
  std::unique_ptr<PeerPolicy> policy = peer.online(&device);
  const bool windowed = recording.window_begin < recording.window_end;
  for (size_t i = 0; i < recording.events.size(); ++i) {
    const PeerEvent& event = recording.events[i];
    if (windowed && i == recording.window_begin) device.BeginWindow();
    if (windowed && i == recording.window_end) result->reserved_steady = device.window_peak();
    if (event.bytes == 0) {
      policy->Release(event.request);
    } else if (!policy->Allocate(event.request, event.bytes, event.stream)) {
      result->out_of_memory = true;
      result->failed_request = event.request;
      result->failed_bytes = event.bytes;
      break;
    }
  }
  result->reserved_peak = device.peak();
  result->device_calls = device.calls();
  result->synchronizations = device.waits();
  if (result->out_of_memory) {
    result->reserved_steady = 0;
  } else if (!windowed) {
    result->reserved_steady = result->reserved_peak;
  } else if (recording.window_end == recording.events.size()) {
    result->reserved_steady = device.window_peak();
  }
}

// The whole run: places all blocks of the recording at once. The iteration with the highest live load: places its
// blocks; other live blocks have memory of their own.
void PlanOffline(const Peer& peer, const Trace& trace, const PeerRecording& recording, uint64_t capacity,
                 PeerResult* result) {
  result->offline = true;
  if (recording.requests == 0) return;
  result->reserved_peak = static_cast<uint64_t>(peer.offline(WholeRecording(trace)).height);
  result->reserved_steady = result->reserved_peak;
  result->device_calls = 1;
  if (recording.hot) {
    std::vector<uint32_t> index;
    const Instance instance = ToInstance(recording.hot->profile, &index);
    const Bytes height = instance.blocks.empty() ? 0 : peer.offline(instance).height;
    result->reserved_steady = LivePeakInWindow(recording, true) + static_cast<uint64_t>(height);
  }
  if (capacity > 0 && result->reserved_peak > capacity) {
    *result = {result->name, result->title};
    result->offline = result->out_of_memory = true;
  }
}

}  // namespace

std::vector<std::string> PeerNames() {
  std::vector<std::string> names;
  for (const Peer& peer : kPeers) names.push_back(peer.name);
  return names;
}

PeerResult SimulatePeer(const std::string& name, const Trace& trace, const PeerOptions& options) {
  return SimulatePeer(name, trace, TakeRecording(trace), options);
}

PeerResult SimulatePeer(const std::string& name, const Trace& trace, const PeerRecording& recording,
                        const PeerOptions& options) {
  PeerResult result;
  result.name = name;
  for (const Peer& peer : kPeers) {
    if (name != peer.name) continue;
    result.title = peer.title;
    if (peer.online != nullptr) {
      PlayOnline(peer, recording, options.capacity, &result);
    } else {
      PlanOffline(peer, trace, recording, options.capacity, &result);
    }
  }
  return result;
}

SmallestDevice SmallestDeviceOf(const PeerResult& result, const Trace& trace, const PeerRecording& recording,
                                uint64_t live_peak) {
  if (result.offline) {
    const PeerResult whole = result.out_of_memory ? SimulatePeer(result.name, trace, recording, {}) : result;
    return {WholeSteps(whole.reserved_peak), whole.device_calls, whole.synchronizations};
  }
  return FindSmallestDevice(live_peak, result.reserved_peak, [&](uint64_t capacity) {
    const PeerResult on = SimulatePeer(result.name, trace, recording, {capacity});
    return DeviceProbe{!on.out_of_memory, on.device_calls, on.synchronizations};
  });
}

}  // namespace hotpack
