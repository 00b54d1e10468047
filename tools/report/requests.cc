#include "tools/report/requests.h"

#include "absl/container/flat_hash_map.h"

namespace hotpack {

RecordedRequests CollectRequests(const Trace& trace) {
  RecordedRequests requests;
  absl::flat_hash_map<uint64_t, uint32_t> live;  // block id → index
  std::vector<uint32_t> ordinals;                // by index
  int interrupted = 0;
  for (uint64_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.kind == EventKind::kAllocate) {
      const auto index = static_cast<uint32_t>(requests.all.size());
      live[event.id] = index;
      ordinals.push_back(static_cast<uint32_t>(requests.monitored.size()));
      requests.all.push_back({e, kNever, 0, interrupted > 0});
      if (interrupted == 0) requests.monitored.push_back(index);
    } else if (event.kind == EventKind::kRelease) {
      const auto found = live.find(event.id);
      if (found == live.end()) continue;
      RecordedRequest& request = requests.all[found->second];
      request.release = e;
      request.age = static_cast<uint32_t>(requests.monitored.size()) - ordinals[found->second];
      live.erase(found);
    } else if (event.kind == EventKind::kInterrupt) {
      ++interrupted;
    } else if (event.kind == EventKind::kResume && interrupted > 0) {
      --interrupted;
    }
  }
  return requests;
}

}  // namespace hotpack
