#include "tools/need/need_facts.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "nlohmann/json.hpp"
#include "packer/block_unit.h"
#include "tools/need/cards.h"

namespace hotpack {
namespace {

using Json = nlohmann::json;

// The sizes that one step requests, in order.
struct MarkedStep {
  NeedStep step;
  std::vector<uint64_t> sizes;
};

std::vector<MarkedStep> StepsOf(const Trace& trace) {
  std::vector<MarkedStep> steps;
  absl::flat_hash_map<uint64_t, uint64_t> live_blocks;
  uint64_t live = 0;
  MarkedStep now;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kAllocate) {
      const uint64_t bytes = UnitsOf(event.bytes) * kBlockUnit;
      live_blocks[event.id] = bytes;
      live += bytes;
      now.step.live_peak = std::max(now.step.live_peak, live);
      now.sizes.push_back(event.bytes);
    } else if (event.kind == EventKind::kRelease) {
      const auto block = live_blocks.find(event.id);
      if (block == live_blocks.end()) continue;
      live -= block->second;
      live_blocks.erase(block);
    } else if (event.kind == EventKind::kMark) {
      now.step.live_end = live;
      steps.push_back(std::move(now));
      now = {};
      now.step.live_peak = live;
    }
  }
  return steps;
}

// Returns true if the step `before` requests what `last` does. `longer`: it begins with the program, so only its end is
// compared.
bool EndsAs(const std::vector<uint64_t>& before, const std::vector<uint64_t>& last, bool longer) {
  if (last.empty() || before.size() < last.size() || (!longer && before.size() != last.size())) return false;
  return std::equal(last.begin(), last.end(), before.end() - static_cast<ptrdiff_t>(last.size()));
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t NumberOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::vector<std::pair<std::string, uint64_t>> KindsOf(const Json& kinds) {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const auto& [name, bytes] : kinds.items()) {
    if (bytes.is_number_unsigned()) all.emplace_back(name, bytes.get<uint64_t>());
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

// `list`: an array of objects with the part's name under `key`.
std::vector<PeakPart> PartsOf(const Json& peak, const char* list, const char* key) {
  std::vector<PeakPart> parts;
  for (const Json& entry : peak.value(list, Json::array())) {
    if (!entry.is_object()) continue;
    parts.push_back({TextOf(entry, key), NumberOf(entry, "bytes"), KindsOf(entry.value("kinds", Json::object()))});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const PeakPart& a, const PeakPart& b) { return a.bytes > b.bytes; });
  return parts;
}

}  // namespace

std::optional<NeedPeak> ReadPeak(const std::string& graph) {
  const Json object = Json::parse(graph, nullptr, false);
  if (!object.is_object() || !object.contains("peak") || !object["peak"].is_object()) return std::nullopt;
  const Json& peak = object["peak"];
  NeedPeak result;
  result.bytes = NumberOf(peak, "bytes");
  result.step = NumberOf(peak, "step");
  result.phase = TextOf(peak, "phase");
  result.operation = TextOf(peak, "operator");
  result.line = TextOf(peak, "line");
  result.module = TextOf(peak, "module");
  for (auto& [name, bytes] : KindsOf(peak.value("by_kind", Json::object()))) {
    result.by_kind.push_back({std::move(name), bytes, {}});
  }
  result.by_module = PartsOf(peak, "by_module", "module");
  result.by_line = PartsOf(peak, "by_line", "line");
  return result;
}

std::vector<NeedStep> ReadSteps(const std::string& graph) {
  const Json object = Json::parse(graph, nullptr, false);
  std::vector<NeedStep> steps;
  if (!object.is_object()) return steps;
  for (const Json& step : object.value("steps", Json::array())) {
    const bool known = step.is_object() && step.contains("peak") && step["peak"].is_number_unsigned() &&
                       step.contains("end") && step["end"].is_number_unsigned();
    if (!known) break;
    steps.push_back({step["peak"].get<uint64_t>(), step["end"].get<uint64_t>()});
  }
  return steps;
}

Need NeedOf(const SimulatedRun& run, bool smallest) {
  Need need;
  need.comparison = Compare(run.recording->trace, {"pytorch", "pytorch-expandable"}, 0, smallest);
  const std::vector<MarkedStep> steps = StepsOf(run.recording->trace);
  need.steps = ReadSteps(run.graph);
  if (need.steps.size() < steps.size()) {
    need.steps.clear();
    for (const MarkedStep& marked : steps) need.steps.push_back(marked.step);
  }
  need.repeats_known = steps.size() >= 2;
  if (need.repeats_known) {
    need.same_requests = EndsAs(steps[steps.size() - 2].sizes, steps.back().sizes, steps.size() == 2);
  }
  need.growth_known = need.steps.size() >= 2;
  if (need.growth_known) {
    const NeedStep &last = need.steps.back(), &before = need.steps[need.steps.size() - 2];
    need.growth = static_cast<int64_t>(last.live_end) - static_cast<int64_t>(before.live_end);
  }
  const RunCourse course = CourseOf(*run.recording);
  need.long_growth_known = course.marked && course.growth_known;
  need.long_growth = need.long_growth_known ? course.growth : std::nullopt;
  need.peak = ReadPeak(run.graph);
  return need;
}

uint64_t NeededWithContext(const Need& need) {
  const uint64_t bytes = need.comparison.hotpack.smallest.bytes;
  return bytes == 0 ? 0 : bytes + UnsimulatedBytes(need.communicates);
}

}  // namespace hotpack
