#include <algorithm>
#include <array>
#include <numeric>

#include "tools/cli/count_text.h"
#include "tools/recording/peak_lines.h"
#include "tools/recording/trace_facts.h"
#include "tools/report/columns.h"
#include "tools/report/page.h"
#include "tools/report/palette.h"
#include "tools/report/show_plan.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRunColumns = 2000;       // of the curve along the run
constexpr size_t kRunIterations = 20'000;  // of the list of iterations

double Area(const Block& block) {
  double ticks = 0;
  for (const Residency& residency : block.residency) ticks += static_cast<double>(residency.end - residency.begin);
  return ticks * static_cast<double>(block.size);
}

// Returns the blocks of the page, by their first tick.
std::vector<uint32_t> ShownBlocks(const Instance& instance, size_t limit) {
  std::vector<uint32_t> shown(instance.blocks.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() > limit) {
    std::vector<double> areas;
    for (const Block& block : instance.blocks) areas.push_back(Area(block));
    std::nth_element(shown.begin(), shown.begin() + static_cast<ptrdiff_t>(limit), shown.end(),
                     [&](uint32_t a, uint32_t b) { return areas[a] > areas[b]; });
    shown.resize(limit);
  }
  std::sort(shown.begin(), shown.end(), [&](uint32_t a, uint32_t b) {
    const Clock begin_a = instance.blocks[a].residency[0].begin, begin_b = instance.blocks[b].residency[0].begin;
    return begin_a != begin_b ? begin_a < begin_b : a < b;
  });
  return shown;
}

// Returns the greatest common divisor of all sizes and offsets, which is the page's unit.
uint64_t CommonUnit(const ReportModel& model) {
  uint64_t unit = 0;
  for (const Block& block : model.instance.blocks) unit = std::gcd(unit, static_cast<uint64_t>(block.size));
  for (Offset offset : model.packed.placement.offsets) unit = std::gcd(unit, static_cast<uint64_t>(offset));
  return std::max<uint64_t>(unit, 1);
}

// Returns one column of the shown blocks.
template <typename Value>
Json BlockColumn(const std::vector<uint32_t>& shown, Value value) {
  std::vector<uint64_t> values;
  values.reserve(shown.size());
  for (uint32_t i : shown) values.push_back(static_cast<uint64_t>(value(i)));
  return Column(values);
}

template <typename T>
Json NumberColumn(const std::vector<T>& numbers, uint64_t unit = 1) {
  std::vector<uint64_t> values;
  values.reserve(numbers.size());
  for (T number : numbers) values.push_back(static_cast<uint64_t>(number) / unit);
  return Column(values);
}

// Omits residencies beyond the second (no recording has them), which only the load curve shows. A name is its ordinal +
// 1, 0 for none.
Json BlockColumns(const ReportModel& model, const std::vector<uint32_t>& shown, uint64_t unit) {
  const auto& instance = model.instance.blocks;
  const auto& facts = model.blocks;
  auto second = [&](uint32_t i) {
    return instance[i].residency.size() > 1 ? instance[i].residency[1] : Residency{0, 0};
  };
  auto name = [](NameOrdinal ordinal) { return ordinal == kNoName ? uint64_t{0} : uint64_t{ordinal} + 1; };
  return {
      {"index", BlockColumn(shown, [&](uint32_t i) { return i; })},
      {"begin", BlockColumn(shown, [&](uint32_t i) { return instance[i].residency[0].begin; })},
      {"end", BlockColumn(shown, [&](uint32_t i) { return instance[i].residency[0].end; })},
      {"begin2", BlockColumn(shown, [&](uint32_t i) { return second(i).begin; })},
      {"end2", BlockColumn(shown, [&](uint32_t i) { return second(i).end; })},
      {"offset",
       BlockColumn(shown, [&](uint32_t i) { return static_cast<uint64_t>(model.packed.placement.offsets[i]) / unit; })},
      {"size", BlockColumn(shown, [&](uint32_t i) { return static_cast<uint64_t>(instance[i].size) / unit; })},
      {"asked", BlockColumn(shown, [&](uint32_t i) { return facts[i].asked; })},
      {"request", BlockColumn(shown, [&](uint32_t i) { return facts[i].request; })},
      {"kind", BlockColumn(shown, [&](uint32_t i) { return static_cast<uint64_t>(facts[i].kind); })},
      {"stream", BlockColumn(shown, [&](uint32_t i) { return facts[i].stream; })},
      {"thread", BlockColumn(shown, [&](uint32_t i) { return facts[i].thread; })},
      {"range", BlockColumn(shown, [&](uint32_t i) { return name(facts[i].notes.range); })},
      {"first_kernel", BlockColumn(shown, [&](uint32_t i) { return name(facts[i].notes.first_kernel); })},
      {"last_kernel", BlockColumn(shown, [&](uint32_t i) { return name(facts[i].notes.last_kernel); })},
      {"launches", BlockColumn(shown, [&](uint32_t i) { return facts[i].notes.launches; })},
      {"stack", BlockColumn(shown, [&](uint32_t i) { return name(facts[i].notes.stack); })},
  };
}

bool IsResident(const Block& block, Clock at) {
  return std::any_of(block.residency.begin(), block.residency.end(),
                     [at](const Residency& residency) { return residency.begin <= at && at < residency.end; });
}

// Returns what is live at the iteration's peak, by kind: bytes of packed, carried, kept blocks, and not in the plan.
Json PeakByKind(const ReportModel& model) {
  const LiveMoment peak = PeakMoment(model.curves, model.unplanned);
  std::array<Bytes, 3> kinds = {};
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    const Block& block = model.instance.blocks[i];
    if (IsResident(block, peak.at)) kinds[static_cast<size_t>(model.blocks[i].kind)] += block.size;
  }
  return {kinds[0], kinds[1], kinds[2], peak.unplanned};
}

// Returns the sums that the page states in words.
Json Figures(const ReportModel& model, const std::vector<uint32_t>& shown) {
  const auto& edges = model.stream_edges;
  Bytes sizes = 0, asked = 0, carried_bytes = 0, kept_bytes = 0;
  uint64_t carried = 0, kept = 0;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    const Bytes size = model.instance.blocks[i].size;
    sizes += size;
    asked += model.blocks[i].asked;
    carried += model.blocks[i].kind == BlockKind::kCarried;
    carried_bytes += model.blocks[i].kind == BlockKind::kCarried ? size : 0;
    kept += model.blocks[i].kind == BlockKind::kKept;
    kept_bytes += model.blocks[i].kind == BlockKind::kKept ? size : 0;
  }
  double area = 0, shown_area = 0;
  for (const Block& block : model.instance.blocks) area += Area(block);
  for (uint32_t i : shown) shown_area += Area(model.instance.blocks[i]);
  return {
      {"what", model.what},
      {"period", model.period},
      {"unroll", model.unroll},
      {"clock_end", model.curves.end},
      {"blocks", model.blocks.size()},
      {"shown", shown.size()},
      {"shown_area", area > 0 ? shown_area / area : 1.0},
      {"bytes", sizes},
      {"asked", asked},
      {"carried_blocks", carried},
      {"carried_bytes", carried_bytes},
      {"kept_blocks", kept},
      {"kept_bytes", kept_bytes},
      {"beside_blocks", model.unplanned.blocks},
      {"beside_bytes", model.unplanned.most},
      {"beside_least", model.unplanned.least},
      {"live_peak", model.live_peak},
      {"peak_by_kind", PeakByKind(model)},
      {"unplanned_requests", model.unplanned_requests},
      {"lower_bound", model.packed.lower_bound},
      {"height", model.packed.placement.height},
      {"peak", model.curves.load.empty() ? 0 : *std::max_element(model.curves.load.begin(), model.curves.load.end())},
      {"proven_optimal", model.packed.proven_optimal},
      {"stream_edges", edges ? Json(edges->after) : Json()},
      {"stream_edges_avoided", edges ? Json(edges->before - edges->after) : Json()},
      {"algorithm", model.packed.algorithm},  // but not its duration: the same recording gives the same page
  };
}

Json RunFacts(const PageInput& input) {
  const TraceFacts facts = CountFacts(input.file->trace);
  const TraceOrigin& origin = input.file->origin;
  Json run = {{"program", origin.program},
              {"process", origin.process},
              {"created", origin.created_ns > 0 ? UtcText(origin.created_ns) : ""},
              {"cut", origin.end != TraceOrigin::End::kClosed},
              {"requests", facts.requests},
              {"releases", facts.releases},
              {"marks", facts.marks},
              {"streams", facts.streams},
              {"threads", facts.threads},
              {"live_peak", facts.live_peak},
              {"live_end", facts.live_end},
              {"seconds", static_cast<double>(facts.duration_ns) / 1e9},
              {"launches", input.file->notes.launches.size()},
              {"ranges", input.file->notes.ranges.size()}};
  const RunCurve curve = CurveOfRun(input.file->trace, kRunColumns);
  run["events"] = curve.events;
  run["least"] = NumberColumn(curve.least, kBlockUnit);
  run["most"] = NumberColumn(curve.most, kBlockUnit);
  run["unit"] = kBlockUnit;
  return run;
}

// As `hotpack compare` has them; empty: none were simulated.
Json PeerRows(const PageInput& input) {
  Json rows = Json::array();
  auto add = [&rows](const PeerResult& peer) {
    rows.push_back({{"name", peer.name},
                    {"title", peer.title},
                    {"peak", peer.reserved_peak},
                    {"steady", peer.reserved_steady},
                    {"calls", peer.device_calls},
                    {"smallest", peer.smallest.bytes > 0 ? Json(peer.smallest.bytes) : Json()}});
  };
  if (input.comparison.requests > 0) add(input.comparison.hotpack);
  for (const PeerResult& peer : input.comparison.peers) add(peer);
  return rows;
}

// The lines with most live memory at the peak; what the rest have is one row. Empty: there are no stacks.
Json LineRows(const PageInput& input) {
  constexpr size_t kMaxLines = 40;
  Json rows = Json::array();
  if (input.file == nullptr) return rows;
  std::vector<PeakLine> lines = PeakByLine(*input.file);
  for (size_t i = kMaxLines; i < lines.size(); ++i) {
    PeakLine& last = lines[kMaxLines - 1];
    last.line = CountText(lines.size() - kMaxLines + 1, "other line");
    last.stack.clear();
    last.blocks += lines[i].blocks;
    last.bytes += lines[i].bytes;
  }
  if (lines.size() > kMaxLines) lines.resize(kMaxLines);
  for (const PeakLine& line : lines) {
    rows.push_back({{"line", line.line}, {"stack", line.stack}, {"blocks", line.blocks}, {"bytes", line.bytes}});
  }
  return rows;
}

Json IterationColumns(const std::vector<RunIteration>& iterations) {
  std::vector<uint64_t> requests, first_request, first_event, live_peak, state, longer;
  for (size_t k = 0; k < iterations.size() && k < kRunIterations; ++k) {
    requests.push_back(iterations[k].requests);
    first_request.push_back(iterations[k].first_request);
    first_event.push_back(iterations[k].first_event);
    live_peak.push_back(iterations[k].live_peak);
    state.push_back(static_cast<uint64_t>(iterations[k].state));
    longer.push_back(iterations[k].longer_lives);
  }
  return {{"count", iterations.size()},     {"first_request", Column(first_request)},
          {"requests", Column(requests)},   {"first_event", Column(first_event)},
          {"live_peak", Column(live_peak)}, {"state", Column(state)},
          {"longer_lives", Column(longer)}};
}

}  // namespace

Json PageData(const PageInput& input) {
  const ReportModel& model = *input.model;
  const std::vector<uint32_t> shown = ShownBlocks(model.instance, input.block_limit);
  const uint64_t unit = CommonUnit(model);
  Json data = {{"name", input.name}, {"command", input.command}, {"unit", unit}, {"figures", Figures(model, shown)}};
  data["blocks"] = BlockColumns(model, shown, unit);
  data["names"] = model.names;
  if (!model.ids.empty()) {
    for (uint32_t i : shown) data["ids"].push_back(model.ids[i]);
  }
  data["curves"] = {{"at", NumberColumn(model.curves.at)},
                    {"load", NumberColumn(model.curves.load, unit)},
                    {"top", NumberColumn(model.curves.top, unit)},
                    {"beside_at", NumberColumn(model.unplanned.at)},
                    {"beside", NumberColumn(model.unplanned.bytes, kBlockUnit)},
                    {"beside_unit", kBlockUnit}};
  data["lines"] = LineRows(input);
  data["peers"] = PeerRows(input);
  data["peers_note"] = input.peers_note;
  data["live_steady"] = input.comparison.live_steady;
  data["held_while_served"] =
      input.comparison.held_while_served > 0 ? Json(input.comparison.held_while_served) : Json();
  data["run"] = input.file != nullptr ? RunFacts(input) : Json();
  data["iterations"] = IterationColumns(model.iterations);
  data["stats"] = input.stats;
  data["ramp"] = kRamp;
  data["kinds"] = kKinds;
  return data;
}

}  // namespace hotpack
