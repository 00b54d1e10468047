#include "tools/recording/recording_builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace hotpack {
namespace {

constexpr uint64_t kBefore = uint64_t{1} << 63;    // in an id: the block was live before the recording
constexpr uint64_t kPointers = uint64_t{1} << 32;  // stream handles from here on are pointers
constexpr uint16_t kLastThread = UINT16_MAX;

}  // namespace

uint32_t RecordingBuilder::StreamIndex(uint64_t stream) {
  const auto [found, is_new] = stream_index_.try_emplace(stream, static_cast<uint32_t>(streams_.size()));
  if (is_new) streams_.push_back(stream);
  return found->second;
}

Event RecordingBuilder::Make(EventKind kind, const EventContext& context) {
  const auto next = static_cast<uint16_t>(std::min<size_t>(threads_.size(), kLastThread));
  Event event;
  event.kind = kind;
  event.thread = threads_.try_emplace(context.thread, next).first->second;
  event.stream = StreamIndex(context.stream);
  event.time_ns = context.time_ns;
  return event;
}

void RecordingBuilder::Allocate(uint64_t address, uint64_t bytes, const EventContext& context) {
  if (IsLive(address)) {
    ++missed_;
    Release(address, 0, context);
  }
  Event event = Make(EventKind::kAllocate, context);
  event.id = allocations_++;
  event.bytes = bytes;
  events_.push_back(event);
  live_[address] = {event.id, bytes};
}

void RecordingBuilder::Release(uint64_t address, uint64_t bytes, const EventContext& context) {
  Event event = Make(EventKind::kRelease, context);
  if (const auto found = live_.find(address); found != live_.end()) {
    event.id = found->second.id;
    event.bytes = found->second.bytes;
    live_.erase(found);
  } else {
    event.id = kBefore | before_.size();
    event.bytes = bytes;
    before_.push_back({bytes, event.stream});
  }
  events_.push_back(event);
}

void RecordingBuilder::Mark(EventKind kind, uint64_t time_ns) {
  events_.push_back({.kind = kind, .stream = StreamIndex(0), .time_ns = time_ns});
}

void RecordingBuilder::AddLive(uint64_t bytes, uint64_t stream) { before_.push_back({bytes, StreamIndex(stream)}); }

std::vector<uint32_t> RecordingBuilder::StreamOrdinals() const {
  absl::flat_hash_set<uint64_t> kept;
  for (uint64_t stream : streams_) {
    if (stream < kPointers) kept.insert(stream);
  }
  std::vector<uint32_t> ordinals;
  uint32_t next = 1;
  for (uint64_t stream : streams_) {
    if (stream < kPointers) {
      ordinals.push_back(static_cast<uint32_t>(stream));
      continue;
    }
    while (kept.contains(next)) ++next;
    ordinals.push_back(next++);
  }
  return ordinals;
}

Trace RecordingBuilder::Finish() {
  const std::vector<uint32_t> ordinals = StreamOrdinals();
  Trace trace;
  trace.events.reserve(before_.size() + events_.size());
  for (const Before& block : before_) {
    trace.events.push_back({.kind = EventKind::kAllocate,
                            .stream = ordinals[block.stream],
                            .id = trace.events.size(),
                            .bytes = block.bytes});
  }
  for (Event& event : events_) {
    const bool is_block = event.kind == EventKind::kAllocate || event.kind == EventKind::kRelease;
    if (is_block) event.id = (event.id & kBefore) != 0 ? event.id & ~kBefore : event.id + before_.size();
    event.stream = ordinals[event.stream];
    trace.events.push_back(event);
  }
  *this = RecordingBuilder();
  return trace;
}

uint64_t UnreleasedBlocks(const Trace& trace) {
  uint64_t live = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAllocate) ++live;
    if (event.kind == EventKind::kRelease) --live;
  }
  return live;
}

}  // namespace hotpack
