#include "tools/hot_iteration.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "profiler/history.h"
#include "profiler/period.h"

namespace hotpack {
namespace {

uint64_t CountRequests(const Trace& trace) {
  return static_cast<uint64_t>(std::count_if(trace.events.begin(), trace.events.end(),
                                             [](const Event& event) { return event.kind == EventKind::kAllocate; }));
}

// The ring remembers one request less than its size.
uint64_t WindowFor(const Trace& trace) { return CountRequests(trace) + 2; }

std::vector<uint64_t> Iterations(const std::vector<uint64_t>& marks) {
  std::vector<uint64_t> bounds = marks;
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds.size() < 2 ? std::vector<uint64_t>() : bounds;
}

// How many of the last requests equal those `length` earlier.
uint64_t Run(const HistoryTail& tail, uint64_t length) {
  uint64_t n = tail.units.size(), run = 0;
  while (run + length < n && tail.units[n - 1 - run] == tail.units[n - 1 - run - length]) ++run;
  return run;
}

}  // namespace

std::vector<uint64_t> MarkedIterations(const Trace& trace) {
  History history(WindowFor(trace));
  std::vector<uint64_t> marks;
  Feed(trace, &history, &marks);
  return Iterations(marks);
}

std::optional<HotIteration> MarkedIteration(const Trace& trace) {
  History history(WindowFor(trace));
  std::vector<uint64_t> marks;
  Feed(trace, &history, &marks);
  std::vector<uint64_t> bounds = Iterations(marks);
  if (bounds.empty()) return std::nullopt;
  uint64_t end = bounds.back();
  HistoryTail tail = CopyTail(history, end, end);
  HotIteration found;
  found.period.length = end - bounds[bounds.size() - 2];
  found.period.run = Run(tail, found.period.length);
  found.profile = BuildProfile(tail, found.period);
  found.end = end;
  return found;
}

std::optional<HotIteration> DetectedIteration(const Trace& trace) {
  History history(WindowFor(trace));
  Feed(trace, &history, nullptr);
  uint64_t count = history.Count();
  for (uint64_t passed_over : {uint64_t{0}, count / 32, count / 16, count / 8, count / 4}) {
    HistoryTail tail = CopyTail(history, count - passed_over, count);
    HotIteration found;
    found.period = FindPeriod(tail);
    if (found.period.length == 0) continue;
    found.profile = BuildProfile(tail, found.period);
    found.end = tail.end();
    return found;
  }
  return std::nullopt;
}

Instance WholeRecording(const Trace& trace) {
  Instance instance;
  absl::flat_hash_map<uint64_t, size_t> live;
  Clock clock = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAllocate) {
      Block block;
      block.size = static_cast<Bytes>(UnitsOf(event.bytes) * kUnitBytes);
      block.alignment = kUnitBytes;
      block.residency.push_back({clock++, 0});
      live[event.id] = instance.blocks.size();
      instance.blocks.push_back(block);
    } else if (event.kind == EventKind::kRelease) {
      auto block = live.find(event.id);
      instance.blocks[block->second].residency[0].end = clock++;
      live.erase(block);
    }
  }
  for (const auto& [id, block] : live) instance.blocks[block].residency[0].end = clock;
  return instance;
}

}  // namespace hotpack
