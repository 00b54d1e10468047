// hotpack plan: the graph of a training step → what to recompute and what to offload, for a budget.
// See also tools/remat/plan_sweep.cc (--sweep) and tools/remat/plan_export.cc (its subcommands for solvers).
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "profiler/trace_file.h"
#include "remat/core/verifier.h"
#include "remat/files/schedule_json.h"
#include "remat/networks/generator.h"
#include "remat/remat_plan.h"
#include "tools/cli/commands.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/remat/plan_commands.h"

namespace hotpack {
namespace {

using remat::Graph;
using remat::RematPlan;

struct Options {
  std::string graph;
  std::string plan;  // of verify
  std::string budget;
  std::string algorithm = "auto";
  bool swap = false;
  double bandwidth = 12.0;  // 10^9 bytes a second
  std::string host_memory;
  std::string time_limit = "10s";
  uint64_t seed = 1;
  std::string out;
  bool force = false;
  bool json = false;
  bool list = false;
  bool sweep = false;
  int points = 20;
  std::string plot;
};

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

void PrintJson(const Graph& graph, const RematPlan& answer, Bytes budget) {
  const nlohmann::ordered_json object = {
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
      {"program_peak", ProgramPeak(graph)},
  };
  printf("%s\n", object.dump(2).c_str());
}

void Print(const Graph& graph, const RematPlan& answer, Bytes budget) {
  printf("graph        %zu operators, %zu storages\n", graph.operators.size(), graph.storages.size());
  if (budget > 0)
    printf("budget       %lld (%s)\n", static_cast<long long>(budget),
           FormatSize(static_cast<uint64_t>(budget)).c_str());
  printf("arena        %lld (%s); live at once %s\n", static_cast<long long>(answer.arena),
         FormatSize(static_cast<uint64_t>(answer.arena)).c_str(),
         FormatSize(static_cast<uint64_t>(answer.outcome.live_peak)).c_str());
  printf("time         %.3f ms, %.4f times the program's\n", static_cast<double>(answer.outcome.time) / 1e6,
         Overhead(answer));
  printf("computed     %lld operators again; %lld storages copied to the host\n",
         static_cast<long long>(answer.recomputed), static_cast<long long>(answer.swapped));
  printf("planned in   %.3f s by %s\n", answer.seconds, answer.algorithm.c_str());
}

remat::PlanOptions PlanOptionsOf(const Options& options) {
  remat::PlanOptions plan;
  plan.algorithm = *remat::PlanAlgorithmFromName(options.algorithm);
  plan.budget = options.budget.empty() ? 0 : *ParseSize(options.budget);
  plan.swap = options.swap;
  plan.machine.bytes_per_ns_to_host = plan.machine.bytes_per_ns_to_device = options.bandwidth;
  if (!options.host_memory.empty()) plan.machine.host_memory = *ParseSize(options.host_memory);
  plan.time_limit_ns = *ParseDuration(options.time_limit);
  plan.seed = options.seed;
  return plan;
}

int RunPlan(const Options& options) {
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
                       .force = options.force},
                      plan);
  }
  const absl::StatusOr<Graph> graph = ReadPlanGraph(options.graph);
  if (!graph.ok()) return Fail(std::string(graph.status().message()));
  const absl::StatusOr<RematPlan> answer = [&] {
    const Progress progress(
        absl::StrCat("planning ", graph->operators.size(), " operators, at most ", options.time_limit));
    return MakeRematPlan(*graph, plan);
  }();
  if (!answer.ok())
    return Fail(options.graph + ": " + std::string(answer.status().message()),
                absl::IsInternal(answer.status()) ? 1 : 2);
  if (!options.out.empty()) {
    const absl::Status written = WriteFile(options.out, FormatScheduleJson(*graph, answer->schedule));
    if (!written.ok()) return Fail(std::string(written.message()));
  }
  options.json ? PrintJson(*graph, *answer, plan.budget) : Print(*graph, *answer, plan.budget);
  return 0;
}

int RunPlanVerify(const Options& options) {
  const absl::StatusOr<Graph> graph = ReadPlanGraph(options.graph);
  if (!graph.ok()) return Fail(std::string(graph.status().message()));
  const absl::StatusOr<std::string> text = ReadWholeFile(options.plan);
  if (!text.ok()) return Fail(std::string(text.status().message()));
  const absl::StatusOr<remat::Schedule> schedule = remat::ParseScheduleJson(*text, options.plan, *graph);
  if (!schedule.ok()) return Fail(std::string(schedule.status().message()));
  if (const std::string fault = Verify(*graph, *schedule); !fault.empty())
    return Fail(options.plan + ": not valid: " + fault, 1);
  const absl::StatusOr<remat::Outcome> outcome = Simulate(*graph, *schedule);
  if (!outcome.ok()) return Fail(options.plan + ": not valid: " + std::string(outcome.status().message()), 1);
  printf("valid: %lld operators again, %lld copies; live at once %lld (%s)\n",
         static_cast<long long>(outcome->runs_again), static_cast<long long>(outcome->copies),
         static_cast<long long>(outcome->live_peak), FormatSize(static_cast<uint64_t>(outcome->live_peak)).c_str());
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("plan", "Plans what to compute again or to move to the host, so that a step fits a budget");
  command->add_option("GRAPH", options->graph, kPlanGraphHelp);
  command
      ->add_option("--budget", options->budget,
                   "Bytes of the arena, weights and all (6GiB; GB is 10^9). Without: what the step needs as it is")
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a budget is at least 1"; });
  command->add_option("--algorithm", options->algorithm, std::string("One of ") + remat::kRematAlgorithmNames)
      ->check(
          [](const std::string& name) {
            return remat::PlanAlgorithmFromName(name) ? std::string()
                                                      : "'" + name + "' is none of " + remat::kRematAlgorithmNames;
          },
          "NAME")
      ->capture_default_str();
  command->add_flag("--swap", options->swap, "Copies to the host too, not only computing again (auto, search)");
  command->add_option("--bandwidth", options->bandwidth, "Of copies each way, 10^9 bytes a second")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command->add_option("--host-memory", options->host_memory, "For copies; without: no limit")->check(SizeOption());
  command->add_option("--time-limit", options->time_limit, "For the search")
      ->check(DurationOption())
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the search")->capture_default_str();
  AddOutputOption(command, "-o,--out", &options->out, "Write the plan to this JSON file");
  AddForceFlag(command, &options->force);
  CLI::Option* sweep =
      command->add_flag("--sweep", options->sweep, "Plans for many budgets, as CSV; of --algorithm, or of all");
  sweep->excludes("--budget")->excludes("--out");
  command->add_option("--points", options->points, "Budgets of --sweep")
      ->check(CLI::Range(1, 1000))
      ->needs(sweep)
      ->capture_default_str();
  AddOutputOption(command, "--plot", &options->plot, "Write what --sweep finds as a picture (SVG)")->needs(sweep);
  command->add_flag("--list-generators", options->list, "Print the networks that GRAPH may name, and their keys");
  command->add_flag(
      "--json", options->json,
      "Print one object: algorithm, budget, time, baseline_time, lower_bound_time (ns), live_peak, arena (bytes), "
      "recomputed, swapped (counts), host_peak (bytes), seconds; operators (of the graph), program_peak (bytes, live "
      "at once in the "
      "program)");
  command->footer(
      "Example:\n  hotpack plan unet.log --budget 6GB --out plan.json\n  hotpack plan verify unet.log plan.json");
  command->callback([command, options, exit_code] {
    if (command->get_subcommands().empty()) *exit_code = RunPlan(*options);
  });
  CLI::App* verify =
      command->add_subcommand("verify", "Runs a plan step by step and looks at what every operator sees");
  AddPlanExportCommand(command, exit_code);
  verify->add_option("GRAPH", options->graph, "The graph it was made for")->required();
  verify->add_option("PLAN", options->plan, "What `hotpack plan --out` has written")->required();
  verify->callback([options, exit_code] { *exit_code = RunPlanVerify(*options); });
}

}  // namespace hotpack
