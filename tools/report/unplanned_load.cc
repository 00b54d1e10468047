#include "tools/report/unplanned_load.h"

#include <algorithm>

#include "profiler/history.h"
#include "tools/compare/recording.h"

namespace hotpack {
namespace {

// Returns by request (RecordedRequests::all) whether the plan has an offset for it.
std::vector<bool> Planned(const Trace& trace, const RecordedRequests& requests) {
  const PeerRecording recording = TakeRecording(trace);
  std::vector<bool> planned;
  size_t next = 0;  // recordings for policies lack requests of no bytes
  for (const RecordedRequest& request : requests.all) {
    planned.push_back(trace.events[request.event].bytes > 0 && recording.planned[next++] != 0);
  }
  return planned;
}

// An allocation, or a release, in the order of the recording.
struct Step {
  uint64_t event;
  uint32_t request;
  bool release;
};

std::vector<Step> Steps(const RecordedRequests& requests) {
  std::vector<Step> steps;
  for (uint32_t i = 0; i < requests.all.size(); ++i) {
    steps.push_back({requests.all[i].event, i, false});
    if (requests.all[i].release != kNever) steps.push_back({requests.all[i].release, i, true});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.event < b.event; });
  return steps;
}

}  // namespace

UnplannedLoad UnplannedLoadOf(const Trace& trace, const RecordedRequests& requests, const HotIteration& hot) {
  const std::vector<bool> planned = Planned(trace, requests);
  const uint64_t length = hot.period.length, begin = hot.end - length;
  std::vector<Bytes> by_request(length, 0);  // of the iteration, the most until the next request
  UnplannedLoad unplanned;
  Bytes live = 0;
  uint64_t blocks = 0, ordinal = 0;
  for (const Step& step : Steps(requests)) {
    if (!step.release && !requests.all[step.request].interrupted) ++ordinal;
    if (!planned[step.request]) {
      const auto size =
          static_cast<Bytes>(uint64_t{UnitsOf(trace.events[requests.all[step.request].event].bytes)} * kBlockUnit);
      live += step.release ? -size : size;
      blocks += step.release ? uint64_t{0} - 1 : 1;
    }
    if (ordinal <= begin || ordinal > hot.end) continue;
    Bytes& most = by_request[ordinal - 1 - begin];
    most = std::max(most, live);
    if (live <= unplanned.most) continue;
    unplanned.most = live;
    unplanned.blocks = blocks;
  }
  // The plan's clock begins anywhere in the iteration and goes around it, several times if it is unrolled.
  for (uint64_t clock = 0; clock < hot.profile.blocks.size(); ++clock) {
    const Bytes bytes = by_request[(hot.profile.first_ordinal % length + clock + length - begin % length) % length];
    if (!unplanned.bytes.empty() && unplanned.bytes.back() == bytes) continue;
    unplanned.at.push_back(static_cast<Clock>(clock));
    unplanned.bytes.push_back(bytes);
  }
  if (!unplanned.bytes.empty()) unplanned.least = *std::min_element(unplanned.bytes.begin(), unplanned.bytes.end());
  return unplanned;
}

LiveMoment PeakMoment(const PlacementCurves& curves, const UnplannedLoad& unplanned) {
  LiveMoment peak;
  const auto consider = [&peak](Clock at, Bytes load, Bytes bytes) {
    if (load + bytes > peak.load + peak.unplanned) peak = {at, load, bytes};
  };
  for (size_t i = 0, k = 0; i < curves.at.size(); ++i) {
    const Clock end = i + 1 < curves.at.size() ? curves.at[i + 1] : curves.end;
    while (k + 1 < unplanned.at.size() && unplanned.at[k + 1] <= curves.at[i]) ++k;
    consider(curves.at[i], curves.load[i], unplanned.bytes.empty() ? 0 : unplanned.bytes[k]);
    for (size_t j = k + 1; j < unplanned.at.size() && unplanned.at[j] < end; k = j++)
      consider(unplanned.at[j], curves.load[i], unplanned.bytes[j]);
  }
  return peak;
}

Bytes LivePeak(const PlacementCurves& curves, const UnplannedLoad& unplanned) {
  const LiveMoment peak = PeakMoment(curves, unplanned);
  return std::max(unplanned.most, peak.load + peak.unplanned);
}

}  // namespace hotpack
