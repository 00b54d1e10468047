#include "tools/recording/run_course.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "packer/block_unit.h"
#include "profiler/history.h"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/recording/hot_iteration.h"
#include "tools/recording/stack_text.h"

namespace hotpack {
namespace {

constexpr size_t kMinForGrowth = 8, kMinForSpike = 4, kWarmUp = 2;
constexpr uint64_t kMinGrowth = 64 << 10;  // in all; less is a counter or a kept loss
constexpr uint64_t kMinSpike = 1 << 20;

uint64_t BytesOf(const Event& event) { return uint64_t{UnitsOf(event.bytes)} * kBlockUnit; }

// Returns the ordinals (of requests that are not interrupted) at which iterations begin; the last one ends the last.
std::vector<uint64_t> Bounds(const Trace& trace, bool* marked) {
  std::vector<uint64_t> bounds = MarkedIterations(trace);
  *marked = !bounds.empty();
  if (*marked) return bounds;
  const std::optional<HotIteration> found = DetectedIteration(trace);
  if (!found) return {};
  const uint64_t length = found->period.length, least = found->end - std::min(found->end, length + found->period.run);
  for (uint64_t end = found->end; end >= least; end -= length) {
    bounds.push_back(end);
    if (end < length) break;
  }
  std::reverse(bounds.begin(), bounds.end());
  return bounds.size() < 2 ? std::vector<uint64_t>() : bounds;
}

// Returns the event of each bound: its mark, or the request with that ordinal. Of one that is not there, the
// recording's end. A mark is earlier than the next request: what is released in between, as at the program's end, comes
// after it.
std::vector<uint64_t> EventsOf(const Trace& trace, const std::vector<uint64_t>& bounds, bool marked) {
  std::vector<uint64_t> events;
  uint64_t ordinal = 0;
  int interrupted = 0;
  for (uint64_t i = 0; i < trace.events.size() && events.size() < bounds.size(); ++i) {
    const EventKind kind = trace.events[i].kind;
    if (kind == EventKind::kInterrupt) ++interrupted;
    if (kind == EventKind::kResume && interrupted > 0) --interrupted;
    const bool is_request = kind == EventKind::kAllocate && interrupted == 0;
    if ((marked ? kind == EventKind::kMark : is_request) && ordinal == bounds[events.size()]) events.push_back(i);
    ordinal += is_request ? 1 : 0;
  }
  events.resize(bounds.size(), trace.events.size());
  return events;
}

// Cuts at `cuts`, ascending: the first stretch is what comes before, the last what comes after.
std::vector<RunStretch> Cut(const Trace& trace, const std::vector<uint64_t>& cuts) {
  std::vector<RunStretch> stretches(cuts.size() + 1);
  size_t current = 0;
  uint64_t live = 0;
  const auto enter = [&](uint64_t event) {
    stretches[current].first_event = event;
    stretches[current].live_begin = stretches[current].live_peak = live;
  };
  for (uint64_t i = 0; i < trace.events.size(); ++i) {
    while (current < cuts.size() && cuts[current] == i) {
      stretches[current++].end_event = i;
      enter(i);
    }
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kAllocate) live += BytesOf(event);
    if (event.kind == EventKind::kRelease) live -= BytesOf(event);
    stretches[current].requests += event.kind == EventKind::kAllocate ? 1 : 0;
    stretches[current].live_peak = std::max(stretches[current].live_peak, live);
  }
  for (; current < cuts.size(); enter(trace.events.size())) stretches[current++].end_event = trace.events.size();
  stretches.back().end_event = trace.events.size();
  return stretches;
}

template <typename T>
T Median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Returns the most frequent number of requests; 0 if less than half of the iterations have it.
uint64_t UsualLength(const std::vector<RunStretch>& iterations) {
  std::map<uint64_t, size_t> times;
  uint64_t usual = 0;
  for (const RunStretch& iteration : iterations) {
    if (++times[iteration.requests] * 2 > iterations.size()) usual = iteration.requests;
  }
  return usual;
}

void AddPhase(const char* name, bool is_iteration, const RunStretch& stretch, std::vector<RunPhase>* phases) {
  if (stretch.requests == 0) return;
  auto phase = std::find_if(phases->begin(), phases->end(), [&](const RunPhase& own) { return own.name == name; });
  if (phase == phases->end()) phase = phases->insert(phase, RunPhase{name, 0, 0});
  phase->iterations += is_iteration ? 1 : 0;
  phase->live_peak = std::max(phase->live_peak, stretch.live_peak);
}

std::vector<RunPhase> PhasesOf(const RunStretch& before, const std::vector<RunStretch>& iterations,
                               const RunStretch& after) {
  const uint64_t usual = UsualLength(iterations);
  std::vector<RunPhase> phases;
  AddPhase("before the first mark", false, before, &phases);
  for (size_t i = 0; i < iterations.size(); ++i) {
    const bool is_usual = usual == 0 || iterations[i].requests == usual;
    AddPhase(i == 0 ? "first iteration" : is_usual ? "training" : "others", true, iterations[i], &phases);
  }
  AddPhase("after the last mark", false, after, &phases);
  return phases;
}

// The blocks that an iteration has left behind.
struct LeftBehind {
  std::vector<uint64_t> blocks;                 // of each iteration
  absl::flat_hash_map<uint64_t, uint64_t> ids;  // of all of them: bytes by id
  uint64_t bytes = 0;
};

// Of the iterations [from, until): blocks requested in one and live where the last of all ends.
LeftBehind FindLeftBehind(const Trace& trace, const std::vector<RunStretch>& iterations, size_t from, size_t until) {
  absl::flat_hash_map<uint64_t, std::pair<size_t, uint64_t>> live;  // by id: iteration, bytes
  for (size_t k = from; k < iterations.size(); ++k) {
    for (uint64_t i = iterations[k].first_event; i < iterations[k].end_event; ++i) {
      const Event& event = trace.events[i];
      if (event.kind == EventKind::kAllocate && k < until) live[event.id] = {k, BytesOf(event)};
      if (event.kind == EventKind::kRelease) live.erase(event.id);
    }
  }
  LeftBehind left;
  left.blocks.resize(until - from);
  for (const auto& [id, block] : live) {
    ++left.blocks[block.first - from];
    left.ids[id] = block.second;
    left.bytes += block.second;
  }
  return left;
}

std::string WhereMost(const Notes& notes, const LeftBehind& left) {
  std::map<std::string, uint64_t> bytes;
  for (const BlockStack& stack : notes.stacks) {
    const auto block = left.ids.find(stack.id);
    if (block == left.ids.end() || stack.stack >= notes.names.size()) continue;
    bytes[SourceLine(notes.names[stack.stack])] += block->second;
  }
  std::string most;
  uint64_t least = 0;
  for (const auto& [line, sum] : bytes) {
    if (sum <= least) continue;
    least = sum;
    most = line;
  }
  return most;
}

// Growth: at the ends of the last third more is live than at any of the first third, and it rises in at least two of
// five iterations, twice as often as it falls. A single rise (an optimizer's state, a larger batch) is none. Needs
// kMinForGrowth + kWarmUp iterations.
std::optional<MemoryGrowth> GrowthOf(const TraceFile& file, const std::vector<RunStretch>& iterations,
                                     const RunStretch& after) {
  std::vector<uint64_t> ends;
  for (size_t i = kWarmUp; i < iterations.size(); ++i) ends.push_back(iterations[i].live_begin);
  ends.push_back(after.live_begin);
  const auto third = static_cast<ptrdiff_t>(ends.size() / 3);
  const uint64_t early = *std::max_element(ends.begin(), ends.begin() + third);
  const uint64_t late = *std::min_element(ends.end() - third, ends.end());
  size_t up = 0, down = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    up += ends[i] > ends[i - 1] ? 1 : 0;
    down += ends[i] < ends[i - 1] ? 1 : 0;
  }
  if (late <= early || 5 * up < 2 * (ends.size() - 1) || up < 2 * down) return std::nullopt;
  if (ends.back() < ends.front() + kMinGrowth) return std::nullopt;
  MemoryGrowth growth;
  growth.iterations = ends.size() - 1;
  growth.bytes = (ends.back() - ends.front()) / growth.iterations;
  // The last two iterations still use what they asked for.
  const LeftBehind left = FindLeftBehind(file.trace, iterations, kWarmUp, iterations.size() - kWarmUp);
  if (2 * left.bytes >= growth.bytes * left.blocks.size()) growth.blocks = Median(left.blocks);
  if (growth.blocks > 0) growth.where = WhereMost(file.notes, left);
  return growth;
}

// `slope`: bytes that an iteration takes more than the one before, which is no spike.
std::optional<MemorySpike> SpikeOf(const RunStretch& before, const std::vector<RunStretch>& iterations,
                                   const RunStretch& after, uint64_t slope) {
  if (iterations.size() < kMinForSpike) return std::nullopt;
  const auto level = [&](const RunStretch& stretch, size_t i) {
    return stretch.live_peak - std::min(stretch.live_peak, slope * i);
  };
  std::vector<uint64_t> peaks;
  for (size_t i = 0; i < iterations.size(); ++i) peaks.push_back(level(iterations[i], i));
  MemorySpike spike;
  spike.usual = Median(peaks);
  const auto is_above = [&](uint64_t peak) { return peak > spike.usual + std::max(kMinSpike, spike.usual / 20); };
  uint64_t highest = 0;
  const auto consider = [&](const RunStretch& stretch, uint64_t peak, const std::string& where) {
    if (!is_above(peak) || peak <= highest) return;
    highest = peak;
    spike.live_peak = stretch.live_peak;
    spike.where = where;
  };
  consider(before, level(before, 0), "the part before the first iteration");
  for (size_t i = 0; i < iterations.size(); ++i) consider(iterations[i], peaks[i], absl::StrCat("iteration ", i + 1));
  consider(after, level(after, iterations.size()), "the part after the last iteration");
  if (spike.where.empty()) return std::nullopt;
  spike.others = static_cast<uint64_t>(std::count_if(peaks.begin(), peaks.end(), is_above));
  if (spike.others > 0 && spike.where.front() == 'i') --spike.others;
  return spike;
}

}  // namespace

RunCourse CourseOf(const TraceFile& file) {
  RunCourse course;
  const std::vector<uint64_t> bounds = Bounds(file.trace, &course.marked);
  if (bounds.empty()) return course;
  std::vector<RunStretch> stretches = Cut(file.trace, EventsOf(file.trace, bounds, course.marked));
  const RunStretch before = stretches.front(), after = stretches.back();
  course.iterations.assign(stretches.begin() + 1, stretches.end() - 1);
  if (course.marked) course.phases = PhasesOf(before, course.iterations, after);
  std::vector<RunStretch> complete = course.iterations;
  if (!course.marked) complete.pop_back();  // its end may be the recording's, where the program releases everything
  course.growth_known = complete.size() >= kMinForGrowth + kWarmUp;
  if (course.growth_known) course.growth = GrowthOf(file, complete, course.marked ? after : course.iterations.back());
  course.spike = SpikeOf(before, course.iterations, after, course.growth ? course.growth->bytes : 0);
  return course;
}

std::vector<std::string> CourseSentences(const RunCourse& course) {
  std::vector<std::string> sentences;
  if (course.growth) {
    const MemoryGrowth& growth = *course.growth;
    std::string text = absl::StrCat("Memory grows by ", FormatSize(growth.bytes), " an iteration, over ",
                                    CountText(growth.iterations, "iteration"));
    if (growth.blocks > 0) {
      absl::StrAppend(&text, ": ", CountText(growth.blocks, "block"), " of each that nothing releases",
                      growth.where.empty() ? "" : ", most of it asked for in " + growth.where);
    }
    sentences.push_back(text + ".");
  }
  if (course.spike) {
    const MemorySpike& spike = *course.spike;
    std::string text = absl::StrCat("The peak is in ", spike.where, " (", FormatSize(spike.live_peak), "); the ",
                                    course.marked ? "usual iterations need " : "iterations that repeat need ",
                                    FormatSize(spike.usual));
    if (spike.others > 0) absl::StrAppend(&text, ", and ", CountText(spike.others, "other one"), " more than that");
    sentences.push_back(text + ".");
  }
  return sentences;
}

}  // namespace hotpack
