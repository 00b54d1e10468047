#include "tools/recording/trace_facts.h"

#include <algorithm>
#include <unordered_set>

#include "packer/block_unit.h"

namespace hotpack {

TraceFacts CountFacts(const Trace& trace) {
  TraceFacts facts;
  std::unordered_set<uint32_t> streams;
  std::unordered_set<uint16_t> threads;
  uint64_t live = 0, earliest = UINT64_MAX, latest = 0;
  for (const Event& event : trace.events) {
    uint64_t rounded = RoundUpToUnit(event.bytes);
    ++facts.events;
    threads.insert(event.thread);
    earliest = std::min(earliest, event.time_ns);
    latest = std::max(latest, event.time_ns);
    if (event.kind == EventKind::kMark) ++facts.marks;
    if (event.kind == EventKind::kAllocate) {
      ++facts.requests;
      facts.bytes += event.bytes;
      facts.async += (event.flags & kEventAsync) != 0;
      streams.insert(event.stream);
      live += rounded;
      facts.live_peak = std::max(facts.live_peak, live);
    } else if (event.kind == EventKind::kRelease) {
      ++facts.releases;
      streams.insert(event.stream);
      live -= rounded;
    }
  }
  facts.live_end = live;
  facts.streams = streams.size();
  facts.threads = threads.size();
  facts.duration_ns = facts.events > 0 ? latest - earliest : 0;
  return facts;
}

}  // namespace hotpack
