// Smaller cases of a recorded step, with the best of all their plans and the bound.
//
//   coarse_figures GRAPH --budget BYTES --bandwidth GB/s --slices N --host-slices N [--states N]
//                        one JSON object: cases, smallest first, each {operators, storages, baseline, bound, fastest};
//                        times in ns
//
// A case that needs more than the budget is left out. The first one whose plans cannot all be visited within that many
// states ends the list.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench/plans/coarsen.h"
#include "remat/core/update_slices.h"
#include "remat/exact/all_plans.h"
#include "remat/exact/bounds.h"
#include "remat/files/graph_json.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string graph;
  Bytes budget = 0;
  double bandwidth = 12;
  int slices = 4, host_slices = 0;
  int64_t states = 50'000;
};

absl::StatusOr<Graph> ReadStep(const Options& options) {
  std::ifstream in(options.graph);
  if (!in) return absl::NotFoundError(options.graph + ": cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  absl::StatusOr<Graph> graph = ParseGraphJson(text.str(), options.graph);
  if (!graph.ok() || graph->updates.empty() || options.slices == 0) return graph;
  SlicedGraph sliced = SliceUpdates(*graph, std::max<Bytes>(1, SliceBytes(*graph, options.slices)));
  SendStateAway(sliced.slices, static_cast<size_t>(options.host_slices), &sliced.graph);
  return std::move(sliced.graph);
}

// Empty: it needs more than the budget. Null: not all plans could be visited.
Json CaseOf(const Graph& graph, const Options& options) {
  const Machine machine = {.bytes_per_ns_to_host = options.bandwidth, .bytes_per_ns_to_device = options.bandwidth};
  const absl::StatusOr<TimeBound> bound =
      LeastTime(graph, ValuesOf(graph), options.budget, {.keeps_order = true, .swap = true, .machine = machine});
  if (!bound.ok()) return Json::object();
  const AllPlansAnswer all = SearchAllPlans(
      graph, {.budget = options.budget, .machine = machine, .swap = true, .most_states = options.states});
  if (!all.complete) return nullptr;
  if (!all.schedule) return Json::object();
  return {{"operators", graph.operators.size()},
          {"storages", graph.storages.size()},
          {"baseline", TotalCost(graph)},
          {"bound", bound->time},
          {"fastest", all.time}};
}

int Print(const Options& options) {
  const absl::StatusOr<Graph> step = ReadStep(options);
  if (!step.ok()) {
    std::fprintf(stderr, "coarse_figures: %s\n", std::string(step.status().message()).c_str());
    return 2;
  }
  constexpr size_t kFewest = 6, kMost = 24, kMore = 2, kStorages = 4;  // so many more storages than operators
  Json cases = Json::array();
  for (size_t operators = kFewest; operators <= kMost; operators += kMore) {
    const Graph coarse = Coarsen(*step, operators, operators + kStorages);
    Json found = CaseOf(coarse, options);
    if (found.is_null()) break;
    if (!found.empty()) cases.push_back(std::move(found));
  }
  std::printf("%s\n", Json{{"cases", cases}}.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace hotpack::remat

int main(int argc, char** argv) {
  hotpack::remat::Options options;
  CLI::App app("Smaller cases of a recorded step, with the best of all their plans.");
  app.add_option("graph", options.graph, "a recorded step")->required();
  app.add_option("--budget", options.budget, "bytes")->required()->check(CLI::PositiveNumber);
  app.add_option("--bandwidth", options.bandwidth, "GB/s each way")->check(CLI::PositiveNumber);
  app.add_option("--slices", options.slices, "of the optimizer's update")->check(CLI::NonNegativeNumber);
  app.add_option("--host-slices", options.host_slices, "the state of so many is on the host")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--states", options.states, "visited at most, of a case")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return hotpack::remat::Print(options);
}
