#include "tools/peers/recording.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace hotpack {
namespace {

// Whether the request with this ordinal (interrupted ones not counted) has a place in the plan of `profile`.
bool IsPlanned(const Profile& profile, uint64_t ordinal) {
  if (ordinal < profile.seen_from) return false;
  const uint64_t n = profile.blocks.size();
  const uint64_t position = ordinal >= profile.first_ordinal ? (ordinal - profile.first_ordinal) % n
                                                             : (n - (profile.first_ordinal - ordinal) % n) % n;
  return profile.blocks[position].planned;
}

}  // namespace

PeerRecording TakeRecording(const Trace& trace) {
  PeerRecording recording;
  recording.hot = MarkedIteration(trace);
  if (!recording.hot) recording.hot = DetectedIteration(trace);
  const uint64_t end = recording.hot ? recording.hot->end : 0;
  const uint64_t begin = recording.hot ? end - recording.hot->period.length : 0;
  absl::flat_hash_map<uint64_t, uint32_t> live;
  uint64_t ordinal = 0;  // as the profile counts: without interrupted requests
  bool interrupted = false, reached = false, left = false;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kInterrupt) interrupted = true;
    if (event.kind == EventKind::kResume) interrupted = false;
    if (event.kind == EventKind::kAllocate) {
      if (!reached && ordinal >= begin) {
        reached = true;
        recording.window_begin = recording.events.size();
      }
      if (!left && ordinal >= end) {
        left = true;
        recording.window_end = recording.events.size();
      }
      const bool planned = recording.hot && !interrupted && ordinal < end && IsPlanned(recording.hot->profile, ordinal);
      ordinal += interrupted ? 0 : 1;
      if (event.bytes == 0) continue;
      live[event.id] = recording.requests;
      recording.planned.push_back(planned ? 1 : 0);
      recording.events.push_back({recording.requests++, event.stream, event.bytes});
    } else if (event.kind == EventKind::kRelease) {
      auto block = live.find(event.id);
      if (block == live.end()) continue;
      recording.events.push_back({block->second, event.stream, 0});
      live.erase(block);
    }
  }
  if (!left) recording.window_end = recording.events.size();
  if (!recording.hot) recording.window_begin = recording.window_end = 0;
  return recording;
}

uint64_t LivePeakInWindow(const PeerRecording& recording, bool not_planned_only) {
  std::vector<uint64_t> sizes(recording.requests, 0);
  uint64_t live = 0, peak = 0;
  const bool all = recording.window_begin == recording.window_end;
  for (size_t i = 0; i < recording.events.size(); ++i) {
    const PeerEvent& event = recording.events[i];
    const bool within = all || (i >= recording.window_begin && i < recording.window_end);
    if (within) peak = std::max(peak, live);
    if (not_planned_only && recording.planned[event.request] != 0) continue;
    if (event.bytes > 0) sizes[event.request] = (event.bytes + 511) / 512 * 512;
    live = event.bytes > 0 ? live + sizes[event.request] : live - sizes[event.request];
    if (within) peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace hotpack
