// hotpack plan: the graph of a training step → what to recompute and what to offload, for a budget.
// See also plan_command.cc (options), plan_sweep.cc (--sweep) and plan_export.cc (its subcommands for solvers).
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "profiler/trace_file.h"
#include "remat/core/update_slices.h"
#include "remat/core/verifier.h"
#include "remat/files/schedule_json.h"
#include "remat/networks/generator.h"
#include "remat/remat_plan.h"
#include "remat/state_places.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_all.h"
#include "tools/cli/size_text.h"
#include "tools/remat/plan_commands.h"

namespace hotpack {
namespace {

using remat::Graph;
using remat::RematPlan;

int Fail(const std::string& message, int code = 2) {
  fprintf(stderr, "hotpack plan: %s\n", message.c_str());
  return code;
}

double Overhead(const RematPlan& answer) {
  if (answer.baseline_time == 0) return 1;
  return static_cast<double>(answer.outcome.time) / static_cast<double>(answer.baseline_time);
}

// Returns the peak of the program itself, which frees some storages later than after their last use. Null: it cannot
// run.
nlohmann::ordered_json ProgramPeak(const Graph& graph) {
  const absl::StatusOr<remat::Outcome> outcome = Simulate(graph, Baseline(graph, remat::Release::kAsTheProgram));
  return outcome.ok() ? nlohmann::ordered_json(outcome->live_peak) : nlohmann::ordered_json();
}

// What is computed again at one place of the program.
struct Place {
  std::string name;
  remat::Nanoseconds cost = 0;  // of all its runs
  uint64_t runs = 0;
};

// Of a recorded step, whose operators' names have their places: what is computed again, longest first.
std::vector<Place> PlacesComputedAgain(const Graph& graph, const remat::Schedule& schedule) {
  std::vector<bool> ran(graph.operators.size());
  std::map<std::string, Place> again;
  for (const remat::Action& action : schedule.actions) {
    if (action.kind != remat::ActionKind::kRun) continue;
    const auto number = static_cast<size_t>(action.target);
    const remat::Operator& op = graph.operators[number];
    if (ran[number] && op.name.ends_with(')')) {
      Place& place = again[op.name];
      place.name = op.name;
      place.cost += op.cost;
      ++place.runs;
    }
    ran[number] = true;
  }
  std::vector<Place> places;
  for (auto& [name, place] : again) places.push_back(std::move(place));
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.cost > b.cost; });
  return places;
}

void PrintPlaces(const std::vector<Place>& places) {
  constexpr size_t kMax = 5;
  for (size_t i = 0; i < std::min(places.size(), kMax); ++i) {
    printf("%s%s, %s, %.3f ms\n", i == 0 ? "again        " : "             ", places[i].name.c_str(),
           CountText(places[i].runs, "run").c_str(), static_cast<double>(places[i].cost) / 1e6);
  }
  if (places.size() > kMax) printf("             and %zu other places\n", places.size() - kMax);
}

void PrintJson(const PlanGraph& planned, const RematPlan& answer, Bytes budget) {
  const Graph& graph = planned.graph;
  nlohmann::ordered_json object = {
      {"algorithm", answer.algorithm},
      {"budget", budget},
      {"time", answer.outcome.time},
      {"baseline_time", answer.baseline_time},
      {"lower_bound_time", answer.lower_bound_time},
      {"live_peak", answer.outcome.live_peak},
      {"arena", answer.arena},
      {"recomputed", answer.recomputed},
      {"swapped", answer.swapped},
      {"host_peak", answer.outcome.host_peak},
      {"seconds", answer.seconds},
      {"operators", graph.operators.size()},
      {"program_peak", ProgramPeak(planned.program)},
      {"slices", planned.slices.size()},
      {"state_on_host", planned.host_slices > 0},
      {"host_slices", planned.host_slices},
  };
  object["again"] = nlohmann::ordered_json::array();
  for (const Place& place : PlacesComputedAgain(graph, answer.schedule)) {
    object["again"].push_back({{"operator", place.name}, {"runs", place.runs}, {"time", place.cost}});
  }
  printf("%s\n", object.dump(2).c_str());
}

std::string WhereStateIs(const PlanGraph& planned) {
  if (planned.host_slices == 0) return "";
  const bool all = planned.host_slices >= planned.slices.size();
  return absl::StrCat(", the state ", all ? "" : absl::StrCat("of ", planned.host_slices, " "),
                      "on the host between steps");
}

void Print(const PlanGraph& planned, const RematPlan& answer, Bytes budget) {
  const Graph& graph = planned.graph;
  printf("graph        %s, %s\n", CountText(graph.operators.size(), "operator").c_str(),
         CountText(graph.storages.size(), "storage").c_str());
  if (budget > 0)
    printf("budget       %lld (%s)\n", static_cast<long long>(budget),
           FormatSize(static_cast<uint64_t>(budget)).c_str());
  printf("arena        %lld (%s); live at once %s\n", static_cast<long long>(answer.arena),
         FormatSize(static_cast<uint64_t>(answer.arena)).c_str(),
         FormatSize(static_cast<uint64_t>(answer.outcome.live_peak)).c_str());
  printf("time         %.3f ms, %.4f times the program's\n", static_cast<double>(answer.outcome.time) / 1e6,
         Overhead(answer));
  if (budget > 0 && answer.baseline_time > 0) {
    printf("bound        %.4f times the program's: no plan%s%s takes less\n",
           static_cast<double>(answer.lower_bound_time) / static_cast<double>(answer.baseline_time),
           graph.released_after.empty() ? "" : " in its order",
           planned.host_slices > 0 ? " with this state on the host" : "");
  }
  printf("computed     %s again; %s copied to the host",
         CountText(static_cast<uint64_t>(answer.recomputed), "operator").c_str(),
         CountText(static_cast<uint64_t>(answer.swapped), "storage").c_str());
  if (answer.swapped > 0) {
    printf(", at most %s there", FormatSize(static_cast<uint64_t>(answer.outcome.host_peak)).c_str());
  }
  printf("\n");
  if (!planned.slices.empty()) {
    printf("update       %s%s\n", CountText(planned.slices.size(), "slice").c_str(), WhereStateIs(planned).c_str());
  }
  PrintPlaces(PlacesComputedAgain(graph, answer.schedule));
  printf("planned in   %.3f s by %s\n", answer.seconds, answer.algorithm.c_str());
}

remat::StatePlaces StatePlacesOf(const std::string& state) {
  if (state == "auto") return remat::StatePlaces::kAuto;
  return state == "host" ? remat::StatePlaces::kHost : remat::StatePlaces::kDevice;
}

std::vector<std::vector<remat::StorageId>> StateSlices(const PlanGraph& planned) {
  return planned.slices.empty() ? remat::WholeUpdates(planned.program.updates) : planned.slices;
}

double BandwidthOf(const PlanCommandOptions& options) {
  for (const PlanLink& link : kPlanLinks) {
    if (options.link == link.name) return link.bandwidth;
  }
  return options.bandwidth;
}

remat::PlanOptions PlanOptionsOf(const PlanCommandOptions& options) {
  remat::PlanOptions plan;
  plan.algorithm = *remat::PlanAlgorithmFromName(options.algorithm);
  plan.budget = options.budget.empty() ? 0 : *ParseSize(options.budget);
  plan.swap = options.swap;
  plan.machine.bytes_per_ns_to_host = plan.machine.bytes_per_ns_to_device = BandwidthOf(options);
  if (!options.host_memory.empty()) plan.machine.host_memory = *ParseSize(options.host_memory);
  plan.time_limit_ns = *ParseDuration(options.time_limit);
  plan.seed = options.seed;
  return plan;
}

}  // namespace

int RunPlan(const PlanCommandOptions& options) {
  if (options.list) {
    printf("%s", remat::GeneratorHelp().c_str());
    return 0;
  }
  if (options.graph.empty()) return Fail("GRAPH is required");
  const absl::Status writable = CheckOutput("--out", options.out, options.force, {options.graph});
  if (!writable.ok()) return Fail(std::string(writable.message()));
  const remat::PlanOptions plan = PlanOptionsOf(options);
  if (options.sweep) {
    return SweepPlans({.graph = options.graph,
                       .algorithm = options.algorithm,
                       .points = options.points,
                       .plot = options.plot,
                       .slices = options.slices,
                       .force = options.force},
                      plan);
  }
  absl::StatusOr<Graph> program = ReadPlanGraph(options.graph);
  if (!program.ok()) return Fail(std::string(program.status().message()));
  PlanGraph planned = InSlices(*std::move(program), plan.budget > 0 ? options.slices : 0);
  const absl::StatusOr<remat::PlanWithState> answer = [&] {
    const Progress progress(absl::StrCat("planning ", CountText(planned.graph.operators.size(), "operator"),
                                         ", at most ", options.time_limit));
    return MakePlanWithState(planned.graph, StateSlices(planned), StatePlacesOf(options.state), plan, RunAll);
  }();
  if (!answer.ok())
    return Fail(options.graph + ": " + std::string(answer.status().message()),
                absl::IsInternal(answer.status()) ? 1 : 2);
  planned.graph = answer->graph;
  planned.host_slices = answer->host_slices;
  if (!options.out.empty()) {
    const absl::Status written =
        WriteFile(options.out, FormatScheduleJson(planned.graph, answer->plan.schedule,
                                                  {planned.slice_bytes, planned.slices, planned.host_slices}));
    if (!written.ok()) return Fail(std::string(written.message()));
  }
  options.json ? PrintJson(planned, answer->plan, plan.budget) : Print(planned, answer->plan, plan.budget);
  return 0;
}

int RunPlanVerify(const PlanCommandOptions& options) {
  absl::StatusOr<Graph> graph = ReadPlanGraph(options.graph);
  if (!graph.ok()) return Fail(std::string(graph.status().message()));
  const absl::StatusOr<std::string> text = ReadWholeFile(options.plan);
  if (!text.ok()) return Fail(std::string(text.status().message()));
  const absl::StatusOr<remat::PlanSlices> slices = remat::SlicesOfPlan(*text, options.plan);
  if (!slices.ok()) return Fail(std::string(slices.status().message()));
  std::vector<std::vector<remat::StorageId>> storages = remat::WholeUpdates(graph->updates);
  if (slices->bytes > 0) {
    remat::SlicedGraph sliced = remat::SliceUpdates(*graph, slices->bytes);
    *graph = std::move(sliced.graph);
    storages = std::move(sliced.slices);
  }
  remat::SendStateAway(storages, slices->on_host, &*graph);
  const absl::StatusOr<remat::Schedule> schedule = remat::ParseScheduleJson(*text, options.plan, *graph);
  if (!schedule.ok()) return Fail(std::string(schedule.status().message()));
  if (const std::string fault = Verify(*graph, *schedule); !fault.empty())
    return Fail(options.plan + ": not valid: " + fault, 1);
  const absl::StatusOr<remat::Outcome> outcome = Simulate(*graph, *schedule);
  if (!outcome.ok()) return Fail(options.plan + ": not valid: " + std::string(outcome.status().message()), 1);
  printf("valid: %s again, %s; live at once %lld (%s)\n",
         CountText(static_cast<uint64_t>(outcome->runs_again), "operator").c_str(),
         CountText(static_cast<uint64_t>(outcome->copies), "copy").c_str(), static_cast<long long>(outcome->live_peak),
         FormatSize(static_cast<uint64_t>(outcome->live_peak)).c_str());
  return 0;
}

}  // namespace hotpack
