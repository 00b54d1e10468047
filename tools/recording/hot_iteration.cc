#include "tools/recording/hot_iteration.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "profiler/history.h"
#include "profiler/period.h"
#include "profiler/shapes.h"

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

// Returns how many of the last requests equal those `length` earlier.
uint64_t Run(const HistoryTail& tail, uint64_t length) {
  uint64_t n = tail.units.size(), run = 0;
  while (run + length < n && tail.units[n - 1 - run] == tail.units[n - 1 - run - length]) ++run;
  return run;
}

// Returns the iteration of the requests [begin, end).
HotIteration IterationAt(const History& history, uint64_t begin, uint64_t end) {
  const HistoryTail tail = CopyTail(history, end, end);
  HotIteration found;
  found.period.length = end - begin;
  found.period.run = Run(tail, found.period.length);
  found.profile = BuildProfile(tail, found.period);
  found.end = end;
  return found;
}

// Returns by request (not counting interrupted ones) the most units live from it to the next one.
std::vector<uint64_t> LiveByRequest(const Trace& trace) {
  std::vector<uint64_t> most;
  absl::flat_hash_map<uint64_t, uint64_t> blocks;
  uint64_t live = 0;
  int interrupted = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kInterrupt) ++interrupted;
    if (event.kind == EventKind::kResume) interrupted -= interrupted > 0 ? 1 : 0;
    if (event.kind == EventKind::kAllocate) {
      live += blocks[event.id] = UnitsOf(event.bytes);
      if (interrupted == 0) most.push_back(live);
    } else if (event.kind == EventKind::kRelease) {
      auto block = blocks.find(event.id);
      if (block == blocks.end()) continue;
      live -= block->second;
      blocks.erase(block);
    }
    if (!most.empty()) most.back() = std::max(most.back(), live);
  }
  return most;
}

uint64_t MostOf(const std::vector<uint64_t>& live, uint64_t begin, uint64_t end) {
  if (begin >= end) return 0;
  return *std::max_element(live.begin() + static_cast<ptrdiff_t>(begin), live.begin() + static_cast<ptrdiff_t>(end));
}

// Returns whether two stretches of `length` requests are the same step, perhaps with other sizes. Nearly every request
// must have the same size in both, or be larger or smaller than its successor in both. Stretches that have the same
// number of requests by chance fail.
bool AreAlike(const HistoryTail& tail, uint64_t a, uint64_t b, uint64_t length) {
  const auto order = [&](uint64_t i) { return tail.units[i] <=> tail.units[i + 1]; };
  uint64_t alike = 0;
  for (uint64_t i = 0; i + 1 < length; ++i)
    alike += tail.units[a + i] == tail.units[b + i] || order(a + i) == order(b + i);
  return 10 * alike >= 9 * (length - 1);
}

// Returns the highest stretch between two bounds, among those that are like the previous or next one of the same
// length. Returns none if these cover hardly any of the requests. O(requests).
std::optional<std::pair<uint64_t, uint64_t>> HighestStretch(const HistoryTail& tail,
                                                            const std::vector<uint64_t>& live) {
  const std::vector<uint64_t> bounds = PieceBounds(tail);
  std::map<uint64_t, size_t> last;  // by length: the previous stretch
  std::vector<bool> recurs(bounds.size());
  for (size_t i = 1; i < bounds.size(); ++i) {
    const uint64_t length = bounds[i] - bounds[i - 1];
    const auto [before, is_new] = last.emplace(length, i);
    if (is_new) continue;
    if (AreAlike(tail, bounds[before->second - 1], bounds[i - 1], length)) recurs[before->second] = recurs[i] = true;
    before->second = i;
  }
  constexpr uint64_t kMinPart = 32;
  std::optional<std::pair<uint64_t, uint64_t>> best;
  uint64_t most = 0, explained = 0;
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (recurs[i]) explained += bounds[i] - bounds[i - 1];
    const uint64_t peak = recurs[i] ? MostOf(live, bounds[i - 1], bounds[i]) : 0;
    if (!recurs[i] || peak < most) continue;
    most = peak;
    best = {bounds[i - 1], bounds[i]};
  }
  if (kMinPart * explained < tail.units.size()) best.reset();
  return best;
}

}  // namespace

std::optional<LargestIteration> FindLargestIteration(const Trace& trace) {
  History history(WindowFor(trace));
  std::vector<uint64_t> marks;
  Feed(trace, &history, &marks);
  const std::vector<uint64_t> live = LiveByRequest(trace), bounds = Iterations(marks);
  LargestIteration largest;
  if (!bounds.empty()) {
    size_t best = 1;
    for (size_t i = 1; i < bounds.size(); ++i) {
      if (MostOf(live, bounds[i - 1], bounds[i]) >= MostOf(live, bounds[best - 1], bounds[best])) best = i;
    }
    largest.hot = IterationAt(history, bounds[best - 1], bounds[best]);
    largest.marked = true;
    return largest;
  }
  std::optional<HotIteration> detected = DetectedIteration(trace);
  const auto stretch = HighestStretch(CopyTail(history, history.Count(), history.Count()), live);
  const uint64_t repeats = detected ? detected->period.length + detected->period.run : 0;
  const uint64_t found = detected ? MostOf(live, detected->end - std::min(detected->end, repeats), detected->end) : 0;
  if (stretch && MostOf(live, stretch->first, stretch->second) > found) {
    largest.hot = IterationAt(history, stretch->first, stretch->second);
    return largest;
  }
  if (!detected) return std::nullopt;
  largest.hot = *std::move(detected);
  return largest;
}

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
  return IterationAt(history, bounds[bounds.size() - 2], bounds.back());
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
      block.size = static_cast<Bytes>(UnitsOf(event.bytes) * kBlockUnit);
      block.alignment = kBlockUnit;
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
