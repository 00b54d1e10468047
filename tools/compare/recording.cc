#include "tools/compare/recording.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace hotpack {
namespace {

// Returns the block of `profile` of the request with this ordinal (not counting interrupted ones); null: none.
const ProfileBlock* FindPlanned(const Profile& profile, uint64_t ordinal) {
  if (ordinal < profile.seen_from || profile.blocks.empty()) return nullptr;
  const uint64_t n = profile.blocks.size();
  const uint64_t position = ordinal >= profile.first_ordinal ? (ordinal - profile.first_ordinal) % n
                                                             : (n - (profile.first_ordinal - ordinal) % n) % n;
  const ProfileBlock& block = profile.blocks[position];
  return block.planned ? &block : nullptr;
}

// A live block of the recording.
struct LiveRequest {
  uint32_t request;
  uint64_t ordinal;           // by the profile's count
  const ProfileBlock* block;  // null: not planned
};

class Taker {
 public:
  explicit Taker(const Trace& trace) {
    if (std::optional<LargestIteration> largest = FindLargestIteration(trace)) {
      recording_.hot = std::move(largest->hot);
      recording_.marked = largest->marked;
      end_ = recording_.hot->end;
      begin_ = end_ - recording_.hot->period.length;
    }
  }

  void Allocate(const Event& event, bool interrupted) {
    if (!interrupted && event.bytes > 0) FollowWindow();
    const bool within = recording_.hot && !interrupted && ordinal_ < end_;
    const uint64_t ordinal = ordinal_;
    if (!interrupted) ++ordinal_;
    if (event.bytes == 0) return;
    const ProfileBlock* block = within ? FindPlanned(recording_.hot->profile, ordinal) : nullptr;
    live_[event.id] = {recording_.requests, ordinal, block};
    recording_.planned.push_back(block != nullptr ? 1 : 0);
    recording_.events.push_back({recording_.requests++, event.stream, event.bytes});
  }

  void Release(const Event& event) {
    auto live = live_.find(event.id);
    if (live == live_.end()) return;
    CheckAge(live->second);
    recording_.events.push_back({live->second.request, event.stream, 0});
    live_.erase(live);
  }

  PeerRecording Finish() {
    for (const auto& [id, request] : live_) CheckAge(request);
    if (!left_) recording_.window_end = recording_.events.size();
    if (!recording_.hot) recording_.window_begin = recording_.window_end = 0;
    return std::move(recording_);
  }

 private:
  // The window's ends are requests of the iteration and of what follows it. The player of the events finds them in the
  // recording.
  void FollowWindow() {
    if (!reached_ && ordinal_ >= begin_) {
      reached_ = true;
      recording_.window_begin = recording_.events.size();
    }
    if (!left_ && ordinal_ >= end_) {
      left_ = true;
      recording_.window_end = recording_.events.size();
    }
  }

  // A block that lives longer than planned only resembles one of the plan.
  void CheckAge(const LiveRequest& live) {
    if (live.block != nullptr && ordinal_ - live.ordinal > live.block->age) recording_.planned[live.request] = 0;
  }

  PeerRecording recording_;
  absl::flat_hash_map<uint64_t, LiveRequest> live_;
  uint64_t begin_ = 0, end_ = 0;  // of the last iteration, in requests
  uint64_t ordinal_ = 0;
  bool reached_ = false, left_ = false;
};

}  // namespace

PeerRecording TakeRecording(const Trace& trace) {
  Taker taker(trace);
  int interrupted = 0;
  for (const Event& event : trace.events) {
    switch (event.kind) {
      case EventKind::kAllocate:
        taker.Allocate(event, interrupted > 0);
        break;
      case EventKind::kRelease:
        taker.Release(event);
        break;
      case EventKind::kInterrupt:
        ++interrupted;
        break;
      case EventKind::kResume:
        interrupted -= interrupted > 0 ? 1 : 0;
        break;
      case EventKind::kMark:
      case EventKind::kExpect:
        break;
    }
  }
  return taker.Finish();
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
