#include "tools/recording/peak_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "profiler/history.h"
#include "tools/recording/stack_text.h"

namespace hotpack {
namespace {

uint64_t BytesOf(const Event& event) { return uint64_t{UnitsOf(event.bytes)} * kBlockUnit; }

// Returns the number of events up to the first moment with the most live memory.
uint64_t EventsToPeak(const Trace& trace) {
  uint64_t live = 0, most = 0, at = 0;
  for (uint64_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kAllocate) live += BytesOf(event);
    if (event.kind == EventKind::kRelease) live -= BytesOf(event);
    if (live <= most) continue;
    most = live;
    at = i + 1;
  }
  return at;
}

// Returns the bytes by id of the blocks that live then.
absl::flat_hash_map<uint64_t, uint64_t> LiveAfter(const Trace& trace, uint64_t events) {
  absl::flat_hash_map<uint64_t, uint64_t> live;
  for (uint64_t i = 0; i < events; ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kAllocate) live[event.id] = BytesOf(event);
    if (event.kind == EventKind::kRelease) live.erase(event.id);
  }
  return live;
}

}  // namespace

absl::flat_hash_map<uint64_t, uint64_t> LiveAtPeak(const Trace& trace) { return LiveAfter(trace, EventsToPeak(trace)); }

std::vector<PeakLine> PeakByLine(const TraceFile& file) {
  if (file.notes.stacks.empty()) return {};
  absl::flat_hash_map<uint64_t, uint64_t> live = LiveAtPeak(file.trace);
  struct Sum {
    PeakLine line;
    uint64_t largest = 0;
  };
  std::map<std::string, Sum> sums;
  absl::flat_hash_map<NameOrdinal, std::string> lines;  // stacks are shared by many blocks
  const auto add = [&](const std::string& line, NameOrdinal stack, uint64_t bytes) {
    Sum& sum = sums[line];
    ++sum.line.blocks;
    sum.line.bytes += bytes;
    if (bytes <= sum.largest) return;
    sum.largest = bytes;
    sum.line.line = line;
    sum.line.stack = stack == kNoName ? "" : ReadableStack(file.notes.names[stack]);
  };
  for (const BlockStack& stack : file.notes.stacks) {
    const auto block = live.find(stack.id);
    if (block == live.end() || stack.stack >= file.notes.names.size()) continue;
    const auto [line, is_new] = lines.try_emplace(stack.stack);
    if (is_new) line->second = SourceLine(file.notes.names[stack.stack]);
    add(line->second, stack.stack, block->second);
    live.erase(block);
  }
  for (const auto& [id, bytes] : live) add("", kNoName, bytes);
  std::vector<PeakLine> sorted;
  for (auto& [line, sum] : sums) sorted.push_back(std::move(sum.line));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PeakLine& a, const PeakLine& b) { return a.bytes > b.bytes; });
  return sorted;
}

}  // namespace hotpack
