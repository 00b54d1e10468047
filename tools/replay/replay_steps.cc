#include "tools/replay/replay_steps.h"

#include <algorithm>
#include <unordered_map>

namespace hotpack {
namespace {

std::vector<uint64_t> SizesOf(const std::vector<PlayedEvent>& step) {
  std::vector<uint64_t> sizes;
  for (const PlayedEvent& event : step) {
    if (event.kind == EventKind::kAllocate) sizes.push_back(event.bytes);
  }
  return sizes;
}

// Chooses the steady step among those between two marks: 1 .. the last but one.
void FindSteady(RecordedSteps* recorded) {
  uint32_t last = 0;
  for (uint32_t i = 1; i + 1 < recorded->steps.size(); ++i) {
    if (recorded->requests[i] > 0) last = i;
  }
  if (last < 2) return;
  std::vector<uint64_t> sizes = SizesOf(recorded->steps[last]);
  uint32_t first = last;
  while (first > 1 && SizesOf(recorded->steps[first - 1]) == sizes) --first;
  if (first == last) return;
  recorded->steady = last;
  recorded->reach = last - first;
}

}  // namespace

RecordedSteps CutIntoSteps(const Trace& trace) {
  RecordedSteps recorded;
  recorded.steps.emplace_back();
  recorded.requests.push_back(0);
  std::unordered_map<uint64_t, RecordedBlock> live;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kMark) {
      recorded.steps.emplace_back();
      recorded.requests.push_back(0);
      continue;
    }
    PlayedEvent played = {event.kind, event.stream, event.bytes, {}};
    if (event.kind == EventKind::kAllocate) {
      auto step = static_cast<uint32_t>(recorded.steps.size() - 1);
      played.block = {step, recorded.requests.back()++};
      live[event.id] = played.block;
    } else if (event.kind == EventKind::kRelease) {
      auto block = live.find(event.id);
      played.block = block->second;
      live.erase(block);
    }
    recorded.steps.back().push_back(played);
  }
  FindSteady(&recorded);
  return recorded;
}

}  // namespace hotpack
