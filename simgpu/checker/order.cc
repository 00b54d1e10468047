#include "simgpu/checker/order.h"

#include <algorithm>

#include "simgpu/checker/virtual_time.h"

namespace simgpu {
namespace {

void JoinClock(Clock* into, const Clock& from) {
  if (into->size() < from.size()) into->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*into)[i] = std::max((*into)[i], from[i]);
  into->end = std::max(into->end, from.end);
}

}  // namespace

int Order::AddStream(int group, StreamKind kind) {
  // The number of a removed stream is reused once the host knows that its work is finished. Its ticks go on, so no
  // earlier operation of it can be mistaken for a later one.
  auto free = std::find_if(removed_.begin(), removed_.end(), [&](int s) {
    return Ticks(s) == 0 || Finished(Epoch{s, Ticks(s)});
  });
  int index = static_cast<int>(streams_.size());
  if (free != removed_.end()) {
    index = *free;
    removed_.erase(free);
  } else {
    streams_.emplace_back();
    streams_[index].clock.resize(index + 1);
  }
  Stream& s = streams_[index];
  s.group = group;
  s.kind = kind;
  s.removed = false;
  if (auto wait = waits_.find(group); wait != waits_.end()) {
    if (Finished(wait->second)) {
      waits_.erase(wait);
    } else {
      WaitAlone(index, wait->second);
    }
  }
  return index;
}

void Order::RemoveStream(int stream) {
  streams_[stream].removed = true;
  removed_.push_back(stream);
}

uint64_t Order::Ticks(int stream) const { return streams_[stream].clock[stream]; }

void Order::Join(int stream, int other) {
  if (Reached(streams_[stream].clock, {other, Ticks(other)})) {
    streams_[stream].clock.end = std::max(streams_[stream].clock.end, streams_[other].clock.end);
    return;
  }
  JoinClock(&streams_[stream].clock, streams_[other].clock);
}

// CUDA driver API, "Stream synchronization behavior": the legacy default stream and all blocking streams of its context
// wait for each other. A removed stream's work still counts.
void Order::JoinDefaultStream(int stream) {
  const StreamKind kind = streams_[stream].kind;
  if (kind == StreamKind::kNonBlocking) return;
  for (int other = 0; other < static_cast<int>(streams_.size()); ++other) {
    if (other == stream || streams_[other].group != streams_[stream].group) continue;
    const bool joins = kind == StreamKind::kLegacy ? streams_[other].kind == StreamKind::kBlocking
                                                   : streams_[other].kind == StreamKind::kLegacy;
    if (joins) Join(stream, other);
  }
}

// An operation begins once it is submitted, and the submitting call comes after the one before it on the stream.
void Order::BeginInTime(int stream) {
  Stream& s = streams_[stream];
  HostComesAfter(s.submitted);
  HostSubmits();
  s.submitted = HostNow();
  s.clock.end = std::max(s.clock.end, s.submitted);
}

void Order::Take(int stream, uint64_t nanoseconds, uint64_t* engine) {
  uint64_t& end = streams_[stream].clock.end;
  if (engine != nullptr) end = std::max(end, *engine);
  end += nanoseconds;
  if (engine != nullptr) *engine = end;
  NoteEnd(end);
}

Epoch Order::Submit(int stream) {
  JoinDefaultStream(stream);
  if (TimeMode()) BeginInTime(stream);
  return {stream, ++streams_[stream].clock[stream]};
}

void Order::Wait(int stream, const Clock& moment) {
  Submit(stream);
  JoinClock(&streams_[stream].clock, moment);
}

void Order::WaitAlone(int stream, const Clock& moment) {
  ++streams_[stream].clock[stream];
  JoinClock(&streams_[stream].clock, moment);
}

Clock Order::AtGroup(int group) const {
  Clock all;
  for (const Stream& s : streams_) {
    if (s.group == group) JoinClock(&all, s.clock);
  }
  return all;
}

void Order::WaitGroup(int group, const Clock& moment) {
  if (Finished(moment)) return;
  for (int stream = 0; stream < static_cast<int>(streams_.size()); ++stream) {
    if (streams_[stream].group == group && !streams_[stream].removed) WaitAlone(stream, moment);
  }
  JoinClock(&waits_[group], moment);
}

void Order::HostSaw(const Clock& moment) {
  HostWaits(moment.end);
  if (Finished(moment)) return;
  JoinClock(&host_, moment);
}

void Order::HostSawGroup(int group) {
  for (const Stream& s : streams_) {
    if (s.group == group) HostSaw(s.clock);
  }
}

bool Order::Finished(const Clock& moment) const {
  for (size_t i = 0; i < moment.size(); ++i) {
    if (moment[i] > (i < host_.size() ? host_[i] : 0)) return false;
  }
  return true;
}

}  // namespace simgpu
