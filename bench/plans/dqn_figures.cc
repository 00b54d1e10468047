// The deep Q-network's plans and those of the planners with which its paper compares it (Chen, "GPU memory management
// for neural networks using deep Q-network", section 5): overhead at several budgets. The paper has only plots, so
// there are orderings and no numbers to compare.
//
//   dqn_figures [--smoke] [--episodes N]      one JSON object: rows {case, what, ours, published, unit, note},
//                                             orderings {says, holds, figures}
//
// Terms:
//  - Networks are those of section 5, for CIFAR-10 where the paper has it. They have feature maps alone, because
//    weights, gradients and momentum are given, kept and the same for all planners. The LSTM is unrolled into its
//    operators, where the paper has one call of cuDNN per layer.
//  - Budgets are parts of the live peak of the unmodified program, in place where the layers allow it.
//  - Costs are a roofline of the paper's card, a GeForce GTX 1080 Ti: 11.3 TFLOP/s and 484 GB/s by its data sheet, with
//    the parts of remat/networks/device.h. Transfers run at 12 GB/s each way, as with PCI Express 3.0 with 16 lanes.
//  - Every planner is judged by remat/core/simulator.h. memonger, SuperNeurons and TFLMS are the fastest over their
//    parameters (remat/baselines), which is more than a user would try.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "remat/baselines/memonger.h"
#include "remat/baselines/superneurons.h"
#include "remat/baselines/tflms.h"
#include "remat/core/verifier.h"
#include "remat/dqn/dqn.h"
#include "remat/networks/generator.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::json;

constexpr Device kCard = {.flops_per_ns = 11'340, .bytes_per_ns = 484};

enum Planner { kDqn, kMemonger, kSuperNeurons, kTflms, kPlanners };
constexpr const char* kNames[] = {"DQN", "memonger", "SuperNeurons", "TFLMS"};

struct Case {
  std::string name;
  std::string spec;
  bool recompute;  // memonger and SuperNeurons run it too; not so "on such architecture" as cuDNN's LSTM (section 5.1)
};

// Overheads in per cent, by budget and planner; nullopt: no plan.
using Overheads = std::vector<std::array<std::optional<double>, kPlanners>>;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "dqn_figures: %s\n", what.c_str());
  std::exit(1);
}

struct Program {
  Graph graph;
  Values values;
  Outcome outcome;
};

Program Make(const std::string& spec) {
  TrainingOptions options;
  const absl::StatusOr<Network> network = GenerateNetwork(spec, &options);
  if (!network.ok()) Fail(network.status().ToString());
  options.device = kCard;
  absl::StatusOr<Graph> graph = TrainingGraph(*network, options);
  if (!graph.ok()) Fail(graph.status().ToString());
  Program program = {*std::move(graph), {}, {}};
  program.values = ValuesOf(program.graph);
  const std::vector<GapAction> hold(program.values.gaps.size(), GapAction::kKeep);
  program.outcome = *Simulate(program.graph, BuildSchedule(program.graph, program.values, hold).schedule);
  return program;
}

absl::StatusOr<Schedule> Plan(const Program& program, Planner planner, Bytes budget, int episodes) {
  switch (planner) {
    case kMemonger:
      return ScheduleByMemonger(program.graph, program.values, budget);
    case kSuperNeurons:
      return ScheduleBySuperNeurons(program.graph, program.values, budget);
    case kTflms:
      return ScheduleByTflms(program.graph, program.values, budget);
    default:
      break;
  }
  absl::StatusOr<DqnPlan> plan = PlanByDqn(program.graph, program.values, budget, {.learning = {.episodes = episodes}});
  if (!plan.ok()) return plan.status();
  return std::move(plan->schedule);
}

class Figures {
 public:
  explicit Figures(int episodes) : episodes_(episodes) {}

  Overheads Compare(const Case& of, const std::vector<int>& percents) {
    const Program program = Make(of.spec);
    Overheads overheads;
    for (const int percent : percents) {
      overheads.emplace_back();
      const Bytes budget = program.outcome.live_peak / 100 * percent;
      const std::string name = of.name + ", " + std::to_string(percent) + " % of " +
                               std::to_string(program.outcome.live_peak / 1'000'000) + " MB";
      for (int p = 0; p < kPlanners; ++p) {
        const auto planner = static_cast<Planner>(p);
        if (!of.recompute && (planner == kMemonger || planner == kSuperNeurons)) continue;
        overheads.back()[static_cast<size_t>(p)] = Row(program, name, planner, budget);
      }
    }
    return overheads;
  }
  void Ordering(const std::string& says, const std::vector<double>& figures, bool holds) {
    orderings_.push_back({{"says", says}, {"holds", holds}, {"figures", figures}});
  }
  Json Take() const { return {{"section", "DQN"}, {"rows", rows_}, {"orderings", orderings_}}; }

 private:
  std::optional<double> Row(const Program& program, const std::string& name, Planner planner, Bytes budget) {
    const absl::StatusOr<Schedule> schedule = Plan(program, planner, budget, episodes_);
    const std::string what = kNames[planner];
    if (!schedule.ok()) {
      if (!absl::IsResourceExhausted(schedule.status())) Fail(schedule.status().ToString());
      rows_.push_back({{"case", name},
                       {"what", what + ", overhead"},
                       {"ours", nullptr},
                       {"published", nullptr},
                       {"unit", "%"},
                       {"note", schedule.status().message()}});
      return std::nullopt;
    }
    const absl::StatusOr<Outcome> outcome = Simulate(program.graph, *schedule);
    if (!outcome.ok()) Fail(outcome.status().ToString());
    if (const std::string fault = Verify(program.graph, *schedule); !fault.empty()) Fail(fault);
    if (outcome->live_peak > budget) Fail(what + " is above its budget");
    const double overhead = 100 * (static_cast<double>(outcome->time) / static_cast<double>(program.outcome.time) - 1);
    const std::string note = std::to_string(outcome->runs_again) + " runs again, " + std::to_string(outcome->copies) +
                             " copies; published as a plot alone";
    rows_.push_back({{"case", name},
                     {"what", what + ", overhead"},
                     {"ours", overhead},
                     {"published", nullptr},
                     {"unit", "%"},
                     {"note", note}});
    return overhead;
  }

  const int episodes_;
  Json rows_ = Json::array(), orderings_ = Json::array();
};

// Each pair of figures is the DQN's overhead and the other's, at a budget for which one of them has a plan. A missing
// plan counts as the highest overhead (-1).
void Below(Figures* figures, const Case& of, const Overheads& overheads, Planner other) {
  std::vector<double> pairs;
  bool holds = true;
  for (const auto& at : overheads) {
    const std::optional<double> ours = at[kDqn], theirs = at[static_cast<size_t>(other)];
    if (!ours && !theirs) continue;
    pairs.push_back(ours.value_or(-1));
    pairs.push_back(theirs.value_or(-1));
    if (!ours || (theirs && *ours >= *theirs && *ours > 0.005)) holds = false;
  }
  figures->Ordering(
      of.name + ": DQN's overhead below " + kNames[other] + "'s, or both none, wherever one of them has a plan", pairs,
      holds && !pairs.empty());
}

// Returns the means of the DQN's overheads at the budgets for which both networks have a plan. By the roofline they
// depend on a network's computation per byte of its feature maps. The paper explains that convolutions take longer, so
// that transfers hide behind them. That holds only for suitable sizes.
std::pair<double, double> Means(const Overheads& a, const Overheads& b) {
  double sum_a = 0, sum_b = 0;
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i][kDqn] || !b[i][kDqn]) continue;
    sum_a += *a[i][kDqn];
    sum_b += *b[i][kDqn];
    ++count;
  }
  return {sum_a / std::max(1, count), sum_b / std::max(1, count)};
}

int Main(int argc, char** argv) {
  CLI::App app("The deep Q-network's plans, and memonger's, SuperNeurons' and TFLMS'");
  bool smoke = false;
  int episodes = 100;
  app.add_flag("--smoke", smoke, "tiny networks and few episodes, as a test runs it");
  app.add_option("--episodes", episodes, "of each training")->check(CLI::Range(1, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  if (smoke) episodes = 5;
  std::vector<Case> cases = {{"ResNet", "resnet:47,batch=128,image=32,classes=10,weights=0", true},
                             {"VGG", "vgg:16,batch=128,image=32,classes=10,weights=0", true},
                             {"UNet", "unet:batch=8,image=128,weights=0", true},
                             {"LSTM", "lstm:1x512,steps=8,inputs=65,classes=65,weights=0", false}};
  if (smoke) {
    cases = {{"ResNet", "resnet:20,batch=8,image=32,classes=10,weights=0", true},
             {"VGG", "vgg:11,batch=8,image=32,classes=10,weights=0", true},
             {"UNet", "unet:batch=1,image=32,weights=0", true},
             {"LSTM", "lstm:1x64,steps=3,weights=0", false}};
  }
  const std::vector<int> percents = smoke ? std::vector<int>{80} : std::vector<int>{90, 80, 70, 60, 50};
  Figures figures(episodes);
  std::vector<Overheads> overheads;
  for (const Case& each : cases) overheads.push_back(figures.Compare(each, percents));
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].recompute)
      Below(&figures, cases[i], overheads[i], kMemonger), Below(&figures, cases[i], overheads[i], kSuperNeurons);
    Below(&figures, cases[i], overheads[i], kTflms);
  }
  for (const auto& [high, low] : std::vector<std::pair<size_t, size_t>>{{2, 0}, {2, 1}, {3, 0}, {3, 1}}) {
    const auto [mean_high, mean_low] = Means(overheads[high], overheads[low]);
    figures.Ordering("DQN's mean overhead of " + cases[high].name + " above that of " + cases[low].name,
                     {mean_high, mean_low}, mean_high > mean_low);
  }
  std::printf("%s\n", figures.Take().dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace hotpack::remat

int main(int argc, char** argv) { return hotpack::remat::Main(argc, argv); }
