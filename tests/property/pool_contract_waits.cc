// The order that the program itself establishes: by events, as late as the contract allows.
#include "tests/property/pool_contract_player.h"

namespace property {

// While a stream is capturing, nothing may be submitted to its context's legacy stream, which would wait for it.
bool ContractPlayer::Works(int stream) const {
  if (!streams_[stream].alive) return false;
  if (capture_ == nullptr) return true;
  const bool legacy = drawn_.settings.roles[streams_[stream].role].legacy;
  return stream != capture_->stream && !(legacy && streams_[stream].device == streams_[capture_->stream].device);
}

CUevent ContractPlayer::NewEvent(int device) {
  std::vector<CUevent>& idle = idle_events_[device];
  CUevent event = nullptr;
  if (!idle.empty()) {
    event = idle.back();
    idle.pop_back();
    return event;
  }
  Enter(device);
  return Ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate") ? event : nullptr;
}

// The stream remembers its latest three.
bool ContractPlayer::RecordEvent(int stream) {
  Stream& s = streams_[stream];
  if (!Works(stream)) return false;
  Stamped stamped{NewEvent(s.device), {}};
  Enter(s.device);
  if (stamped.event == nullptr || !Ok(cuEventRecord(stamped.event, s.handle), "cuEventRecord")) return false;
  stamped.moment = order_.Record(stream);
  if (s.events.size() == 3) {
    idle_events_[s.device].push_back(s.events.front().event);
    s.events.erase(s.events.begin());
  }
  s.events.push_back(stamped);
  return true;
}

bool ContractPlayer::WaitEvent(int stream, const Stamped& event) {
  Enter(streams_[stream].device);
  if (!Ok(cuStreamWaitEvent(streams_[stream].handle, event.event, 0), "cuStreamWaitEvent")) return false;
  order_.Wait(stream, event.moment);
  ++counts_.waits;
  return true;
}

// False: not possible now.
bool ContractPlayer::OrderOne(int stream, int other, uint32_t tick, Wait wait, uint32_t hint) {
  if (stream == other || order_.Covers(stream, other, tick)) return true;
  if (wait.next && order_.CoversNext(stream, other, tick)) return true;
  if (!Works(stream)) return false;
  if (wait.owed && ++counts_.owed == drop_) {
    order_.Pretend(stream, other, tick);
    return true;
  }
  const auto known = [&]() -> const Stamped* {  // the earliest that will do
    for (const Stamped& event : streams_[other].events) {
      if (event.moment[other] >= tick) return &event;
    }
    return nullptr;
  };
  const bool latest = hint % 3 != 0;
  const Stamped* event = latest && RecordEvent(other) ? &streams_[other].events.back() : known();
  if (event == nullptr && RecordEvent(other)) event = &streams_[other].events.back();
  return event != nullptr && WaitEvent(stream, *event);
}

bool ContractPlayer::Order(int stream, const Moment& moment, Wait wait, uint32_t hint) {
  for (int other = 0; other < static_cast<int>(streams_.size()); ++other) {
    if (moment[other] != 0 && !OrderOne(stream, other, moment[other], wait, hint)) return false;
  }
  return true;
}

// The requirements of a use on `stream`: it comes after the request, and after the earlier uses of the owner's memory.
// On another stream either that stream waits for each use itself, or the owner waits, and the stream waits for the
// owner.
bool ContractPlayer::OrderUse(const Block& block, int stream, uint32_t hint) {
  const int owner = block.stream;
  if (stream != owner && (hint >> 8) % 2 == 0 && Works(owner) && !Order(owner, block.before, {.owed = true}, hint)) {
    return false;
  }
  if (stream != owner && !OrderOne(stream, owner, block.given, {.next = true}, hint >> 4)) return false;
  return Order(stream, block.before, {.owed = true, .next = true}, hint);
}

}  // namespace property
