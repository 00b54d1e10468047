#include "profiler/recorded_streams.h"

#include <algorithm>

namespace hotpack {
namespace {

uint16_t BlockStreamOf(uint16_t stream) { return stream == 0 ? kAnyStream : stream; }

}  // namespace

std::vector<uint16_t> RecordedStreams(const Trace& trace) {
  const auto flagged = [](const Event& event) { return (event.flags & kEventAsync) != 0; };
  const bool all = std::none_of(trace.events.begin(), trace.events.end(), flagged) &&
                   std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
                     return event.kind == EventKind::kAllocate && event.stream > 0;
                   });
  std::vector<uint16_t> streams;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAllocate) continue;
    const uint32_t ordinal = std::min<uint32_t>(event.stream, kAnyStream - 2);
    streams.push_back(all || flagged(event) ? static_cast<uint16_t>(ordinal + 1) : uint16_t{0});
  }
  return streams;
}

BlockStreams ToBlockStreams(const Profile& profile, const std::vector<uint32_t>& index) {
  BlockStreams streams;
  streams.reserve(index.size());
  for (const uint32_t i : index) streams.push_back(BlockStreamOf(profile.blocks[i].stream));
  return streams;
}

BlockStreams ToBlockStreams(const std::vector<uint16_t>& streams) {
  BlockStreams converted = streams;
  std::transform(converted.begin(), converted.end(), converted.begin(), BlockStreamOf);
  return converted;
}

}  // namespace hotpack
