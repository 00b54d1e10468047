#include "tools/remat/plan_command.h"

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "remat/planner_list.h"
#include "tools/cli/output_file.h"
#include "tools/cli/size_text.h"

namespace hotpack {
namespace {

constexpr const char* kPlanGraphHelp =
    "A graph as JSON (docs/plan.md), an operator log of the DTR prototype, a recording with launches, or a network "
    "such as resnet:50,batch=32 (--list-generators)";

// Empty: it is one.
std::string CheckAlgorithm(const std::string& name) {
  if (name == "auto") return "";
  for (const remat::PlannerTraits& planner : remat::kPlanners) {
    if (name == planner.name) return "";
  }
  return "'" + name + "' is none of " + remat::kRematAlgorithmNames;
}

CLI::Option* AddBudget(CLI::App* command, PlanModelOptions* options) {
  return command->add_option("--budget", options->budget, "Bytes that may be live at once")
      ->required()
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a budget is at least 1"; });
}

void AddModelCommands(CLI::App* plan, const PlanActions& actions, int* exit_code) {
  auto options = std::make_shared<PlanModelOptions>();
  CLI::App* command =
      plan->add_subcommand("export", "Writes Checkmate's mixed-integer program (Jain et al. 2020) for a solver");
  command->add_option("GRAPH", options->graph, kPlanGraphHelp)->required();
  AddBudget(command, options.get());
  command->add_option("--format", options->format, "lp or mps")
      ->check(CLI::IsMember({"lp", "mps"}))
      ->capture_default_str();
  command->add_flag("--relaxed", options->relaxed, "Without integers: its optimum is a bound");
  AddOutputOption(command, "-o,--out", &options->out, "Write to this file; else to standard output");
  AddForceFlag(command, &options->force);
  command->footer(
      "Example:\n  hotpack plan export graph.json --budget 6GiB --out model.lp\n  cbc model.lp solve solution "
      "model.sol\n"
      "  hotpack plan solved graph.json model.sol --budget 6GiB --out plan.json");
  command->callback([options, actions, exit_code] { *exit_code = actions.export_model(*options); });

  auto solved_options = std::make_shared<PlanModelOptions>();
  CLI::App* solved = plan->add_subcommand("solved", "Reads a solver's solution of an exported model as a plan");
  solved->add_option("GRAPH", solved_options->graph, "The graph that was exported")->required();
  solved->add_option("SOLUTION", solved_options->solution, "What cbc or HiGHS has written")->required();
  AddBudget(solved, solved_options.get());
  AddOutputOption(solved, "-o,--out", &solved_options->out, "Write the plan to this JSON file");
  AddForceFlag(solved, &solved_options->force);
  solved->footer("Example:\n  hotpack plan solved graph.json model.sol --budget 6GiB --out plan.json");
  solved->callback([solved_options, actions, exit_code] { *exit_code = actions.solved(*solved_options); });
}

}  // namespace

void AddPlanCommand(CLI::App& app, const PlanActions& actions, int* exit_code) {
  auto options = std::make_shared<PlanCommandOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Plans what to compute again or to move to the host, so that a step fits a budget");
  command->add_option("GRAPH", options->graph, kPlanGraphHelp);
  command
      ->add_option("--budget", options->budget,
                   "Bytes of the arena, weights and all (6GiB; GB is 10^9). Without: what the step needs as it is")
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a budget is at least 1"; });
  command->add_option("--algorithm", options->algorithm, std::string("One of ") + remat::kRematAlgorithmNames)
      ->check(CheckAlgorithm, "NAME")
      ->capture_default_str();
  command->add_flag("--swap", options->swap, "Copies to the host too, not only computing again (auto, search)");
  std::vector<std::string> links;
  for (const PlanLink& link : kPlanLinks) links.emplace_back(link.name);
  CLI::Option* by_name =
      command->add_option("--link", options->link, "Of copies, instead of --bandwidth")->check(CLI::IsMember(links));
  command->add_option("--bandwidth", options->bandwidth, "Of copies each way, 10^9 bytes a second")
      ->check(CLI::Range(0.001, 1e6))
      ->excludes(by_name)
      ->capture_default_str();
  command->add_option("--host-memory", options->host_memory, "For copies; without: no limit")->check(SizeOption());
  command
      ->add_option("--slices", options->slices,
                   "Into how many slices a recorded optimizer's update is divided; 0: it stays whole")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  command
      ->add_option(
          "--state", options->state,
          "Where a recorded optimizer's state is between steps, with --swap: device, host, or the part of it on the "
          "host that plans are fastest with (auto)")
      ->check(CLI::IsMember({"auto", "device", "host"}))
      ->capture_default_str();
  command->add_option("--time-limit", options->time_limit, "For the search")
      ->check(DurationOption())
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the search")->capture_default_str();
  AddOutputOption(command, "-o,--out", &options->out, "Write the plan to this JSON file");
  AddForceFlag(command, &options->force);
  CLI::Option* sweep =
      command->add_flag("--sweep", options->sweep, "Plans for many budgets, as CSV; of --algorithm, or of all");
  sweep->excludes("--budget")->excludes("--out")->excludes("--state");
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
      "at once in the program), slices (of optimizers' updates), state_on_host, host_slices (with state there "
      "between steps), again (places of a recorded step: operator, runs, "
      "time in ns)");
  command->footer(
      "Example:\n  hotpack plan unet.log --budget 6GB --out plan.json\n  hotpack plan verify unet.log plan.json");
  command->callback([command, options, actions, exit_code] {
    if (command->get_subcommands().empty()) *exit_code = actions.plan(*options);
  });
  CLI::App* verify =
      command->add_subcommand("verify", "Runs a plan step by step and looks at what every operator sees");
  AddModelCommands(command, actions, exit_code);
  verify->add_option("GRAPH", options->graph, "The graph it was made for")->required();
  verify->add_option("PLAN", options->plan, "What `hotpack plan --out` has written")->required();
  verify->callback([options, actions, exit_code] { *exit_code = actions.verify(*options); });
}

}  // namespace hotpack
