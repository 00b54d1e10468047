// Chen et al. 2016's plans of the models that the paper trains, compared with its numbers and with an independent
// simulation.
//
//   chen_figures [--smoke]        one JSON object: rows {case, what, ours, published, unit, note},
//                                 orderings {says, holds, figures}
//
// Terms:
//  - tags: the static allocation of section 3 (remat/chen/allocation.h), for feature maps and their gradients alone, as
//    in section 5.1.
//  - arena: the same plan's blocks packed by hotpack's packer. It includes images, labels and statistics, which are
//    given or small.
//  - "additions as declared there": the simulation keeps an addition's operands for its gradient and does not add in
//    place. An addition's gradient needs neither, so the lines without this are lower.
//  - The unrolled LSTM has its output layer at each step. The softmax and its loss are one operator that runs just
//    before the gradient of its step. Its gradient may take its input's memory, as in MXNet's SoftmaxOutput.
//  - Costs are the roofline of remat/networks/device.h: a Titan X of 2016, as in the paper.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "packer/pack.h"
#include "remat/chen/plans.h"
#include "remat/chen/recursion.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"
#include "remat/networks/recurrent.h"
#include "remat/networks/residual.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::json;

constexpr double kGiB = 1 << 30, kGB = 1e9;
constexpr int64_t kPackNs = 10'000'000'000;  // it ends at once where the arena is the live peak

// GiB of ResNet-1007's feature maps at batch 32, by the independent simulation: each with its own memory, shared,
// section 4.2, section 4.3.
constexpr double kNone = 126.7, kSharing = 46.0, kDropped = 28.7, kSublinear = 2.70;
constexpr double kSharingGB = 48, kWholeRunGB = 7;  // abstract: "from 48G to 7G"
constexpr double kMoreTime = 30;                    // %, section 5.4
constexpr double kMinFactor = 4;                    // section 5.3: "more than 4x reduction"
// GiB of the LSTM, by the simulation, at 64 and at 1000 steps.
constexpr double kLstmNone = 3.31, kLstmSharing = 0.53, kLstmSublinear = 0.057;
constexpr double kLongSharing = 8.27, kLongSublinear = 0.245;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "chen_figures: %s\n", what.c_str());
  std::exit(1);
}

class Figures {
 public:
  void Row(const std::string& of, const std::string& what, double ours, Json published, const std::string& unit,
           const std::string& note = "") {
    std::string said = note;
    if (published.is_number() && published.get<double>() != 0) {
      char apart[64];
      std::snprintf(apart, sizeof apart, "%+.1f %% from it", 100 * (ours / published.get<double>() - 1));
      said = note.empty() ? apart : std::string(apart) + "; " + note;
    }
    rows_.push_back({{"case", of},
                     {"what", what},
                     {"ours", ours},
                     {"published", std::move(published)},
                     {"unit", unit},
                     {"note", said}});
  }
  void Ordering(const std::string& says, const std::vector<double>& figures, bool holds) {
    orderings_.push_back({{"says", says}, {"holds", holds}, {"figures", figures}});
  }
  Json Take() const { return {{"section", "Chen 2016"}, {"rows", rows_}, {"orderings", orderings_}}; }

 private:
  Json rows_ = Json::array(), orderings_ = Json::array();
};

// Section 5.1's lines, by tags, and the search's plan of least live peak, packed.
struct Lines {
  Bytes none, in_place, sharing, dropped, sublinear;
  Bytes sharing_arena, sublinear_arena;
  Nanoseconds base_time, sublinear_time, arena_time;
  double seconds;  // of Appendix A's search
};

Bytes ArenaOf(const Graph& graph, const Schedule& schedule) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
  if (!outcome.ok()) Fail(outcome.status().ToString());
  if (const std::string fault = Verify(graph, schedule); !fault.empty()) Fail(fault);
  const PackResult packed = Pack(ToInstance(outcome->residencies), {.time_limit_ns = kPackNs});
  if (packed.status != PackStatus::kOk) Fail(PackStatusText(packed.status));
  return packed.placement.height;
}

struct Packed {
  Bytes arena = INT64_MAX;
  Nanoseconds time = 0;
};

// Returns the search's plan of least live peak.
Packed LeastArena(const Graph& graph, const Values& values, const std::vector<MirrorPlan>& plans) {
  Schedule least;
  Packed packed;
  Bytes least_peak = INT64_MAX;
  for (const MirrorPlan& plan : plans) {
    absl::StatusOr<Schedule> schedule = ScheduleOf(graph, values, plan.mirrored);
    if (!schedule.ok()) continue;
    const absl::StatusOr<Outcome> outcome = Simulate(graph, *schedule);
    if (!outcome.ok()) Fail(outcome.status().ToString());
    if (outcome->live_peak >= least_peak) continue;
    least_peak = outcome->live_peak;
    packed.time = outcome->time;
    least = *std::move(schedule);
  }
  packed.arena = ArenaOf(graph, least);
  return packed;
}

Lines LinesOf(const Graph& graph) {
  const Values values = ValuesOf(graph);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<MirrorPlan> plans = SearchMirrors(graph, values);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Graph dropped = MirrorGraph(graph, values, CountsOf(CheapOperators(graph))).graph;
  const Packed packed = LeastArena(graph, values, plans);
  const Schedule program =
      BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule;
  return {.none = Allocate(graph, Sharing::kNone).bytes,
          .in_place = Allocate(graph, Sharing::kInPlace).bytes,
          .sharing = Allocate(graph, Sharing::kAll).bytes,
          .dropped = Allocate(dropped, Sharing::kAll).bytes,
          .sublinear = LeastOf(plans).bytes,
          .sharing_arena = ArenaOf(graph, program),
          .sublinear_arena = packed.arena,
          .base_time = TotalCost(graph),
          .sublinear_time = LeastOf(plans).cost,
          .arena_time = packed.time,
          .seconds = seconds};
}

Network MakeResNet(const std::array<int64_t, 4>& stages, bool smoke, bool as_there) {
  ResNetOptions options;
  options.stages = stages;
  if (smoke) options.batch = 2, options.image = 32;
  absl::StatusOr<Network> network = ResNet(options);
  if (!network.ok()) Fail(network.status().ToString());
  for (Layer& layer : network->layers) {
    if (!as_there || layer.kind != "sum") continue;
    layer.in_place.clear();
    layer.gradient_reads = layer.inputs;
  }
  return *std::move(network);
}

Graph Step(const Network& network, bool weights) {
  TrainingOptions options;
  options.weights = weights;
  absl::StatusOr<Graph> graph = TrainingGraph(network, options);
  if (!graph.ok()) Fail(graph.status().ToString());
  return *std::move(graph);
}

double GiB(Bytes bytes) { return static_cast<double>(bytes) / kGiB; }
double More(Nanoseconds time, Nanoseconds base) {
  return 100 * (static_cast<double>(time) / static_cast<double>(base) - 1);
}

// Returns the published number, which is for the whole model.
Json Published(double number, bool smoke) { return smoke ? Json(nullptr) : Json(number); }

void OfLines(Figures* figures, const std::string& name, const Lines& lines, bool smoke, const std::string& note) {
  figures->Row(name, "no optimization, tags", GiB(lines.none), Published(kNone, smoke), "GiB", note);
  figures->Row(name, "in place, tags", GiB(lines.in_place), nullptr, "GiB", note);
  figures->Row(name, "sharing, tags", GiB(lines.sharing), Published(kSharing, smoke), "GiB", note);
  figures->Row(name, "sharing, arena", GiB(lines.sharing_arena), Published(kSharing, smoke), "GiB", note);
  figures->Row(name, "drop bn-relu, tags", GiB(lines.dropped), Published(kDropped, smoke), "GiB", note);
  figures->Row(name, "sublinear plan, tags", GiB(lines.sublinear), Published(kSublinear, smoke), "GiB",
               "a tag holds one size at a time: what a stage has left is not taken apart for another");
  figures->Row(name, "sublinear plan, arena", GiB(lines.sublinear_arena), Published(kSublinear, smoke), "GiB", note);
  figures->Row(name, "sublinear plan, more time", More(lines.arena_time, lines.base_time), Published(kMoreTime, smoke),
               "%", "one forward pass more; what part it is of a step is the roofline's");
}

void OfOrderings(Figures* figures, const Lines& lines) {
  const double all[] = {GiB(lines.none), GiB(lines.in_place), GiB(lines.sharing), GiB(lines.dropped),
                        GiB(lines.sublinear)};
  figures->Ordering("each of the five lines is below the one before it", {all[0], all[1], all[2], all[3], all[4]},
                    std::is_sorted(std::begin(all), std::end(all), [](double a, double b) { return a > b; }));
}

// Section 5.2's whole run: it includes parameters, their gradients and momentum.
void OfWholeRun(Figures* figures, const std::string& name, const Network& network, const Lines& lines, bool smoke) {
  const Graph graph = Step(network, true);
  const Values values = ValuesOf(graph);
  const double sharing = static_cast<double>(lines.sharing) / kGB;
  const double weights = 3 * static_cast<double>(WeightBytes(network)) / kGB;
  const Packed packed = LeastArena(graph, values, SearchMirrors(graph, values));
  const double whole = static_cast<double>(packed.arena) / kGB;
  figures->Row(name, "sharing, tags", sharing, Published(kSharingGB, smoke), "GB",
               "the abstract's 48G are this line: feature maps alone");
  figures->Row(name, "parameters, gradients, momentum", weights, nullptr, "GB");
  figures->Row(name, "sublinear plan with them, arena", whole, Published(kWholeRunGB, smoke), "GB",
               "the driver's number has the convolutions' workspace and CUDA's context");
  if (!smoke) figures->Ordering("the step of 1007 convolutions fits 7 GB", {whole}, whole < kWholeRunGB);
}

// Returns the slope of log(bytes) over log(depth), by least squares.
double Exponent(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [depth, bytes] : points) {
    const double a = std::log(depth), b = std::log(bytes);
    n += 1, x += a, y += b, xx += a * a, xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

void OfDepth(Figures* figures, bool smoke) {
  const std::vector<int64_t> depths =
      smoke ? std::vector<int64_t>{50, 98} : std::vector<int64_t>{125, 251, 503, 1007, 2015};
  std::vector<std::pair<double, double>> none, sharing, dropped, sublinear, arenas;
  std::vector<double> more;
  for (int64_t n : depths) {
    const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(n);
    if (!stages.ok()) Fail(stages.status().ToString());
    const Network network = MakeResNet(*stages, smoke, false);
    const auto depth = static_cast<double>(CountOf(network, "convolution"));
    const Lines lines = LinesOf(Step(network, false));
    none.emplace_back(depth, GiB(lines.none));
    sharing.emplace_back(depth, GiB(lines.sharing));
    dropped.emplace_back(depth, GiB(lines.dropped));
    sublinear.emplace_back(depth, GiB(lines.sublinear));
    arenas.emplace_back(depth, GiB(lines.sublinear_arena));
    more.push_back(More(lines.sublinear_time, lines.base_time));
    const std::string name = "ResNet, " + std::to_string(static_cast<int64_t>(depth)) + " convolutions";
    figures->Row(name, "sharing, tags", sharing.back().second, nullptr, "GiB");
    figures->Row(name, "drop bn-relu, tags", dropped.back().second, nullptr, "GiB");
    figures->Row(name, "sublinear plan, tags", sublinear.back().second, nullptr, "GiB");
    figures->Row(name, "sublinear plan, arena", arenas.back().second, nullptr, "GiB");
    figures->Row(name, "sublinear plan, more time", more.back(), nullptr, "%");
    figures->Row(name, "time of the search", lines.seconds, nullptr, "s", "the paper's took a few seconds in Python");
  }
  const std::string of = "ResNet by depth, slope in the logarithms";
  const std::string linear = "1 is linear",
                    root = "0.5 is the square root, which equation 1 gives where layers are equal";
  figures->Row(of, "no optimization", Exponent(none), nullptr, "exponent", linear);
  figures->Row(of, "sharing", Exponent(sharing), nullptr, "exponent", linear);
  figures->Row(of, "drop bn-relu", Exponent(dropped), nullptr, "exponent", linear);
  figures->Row(of, "sublinear plan, tags", Exponent(sublinear), nullptr, "exponent", root);
  figures->Row(of, "sublinear plan, arena", Exponent(arenas), nullptr, "exponent", root);
  if (smoke) return;
  const double slopes[] = {Exponent(sharing), Exponent(sublinear), Exponent(arenas)};
  figures->Ordering("sharing grows with the depth, the sublinear plan with its square root",
                    {slopes[0], slopes[1], slopes[2]}, slopes[0] > 0.9 && slopes[1] < 0.6 && slopes[2] < 0.6);
  figures->Ordering("the additional time is the same part at every depth", more,
                    *std::max_element(more.begin(), more.end()) - *std::min_element(more.begin(), more.end()) < 5);
}

// Moves losses to just before the operator that reads their gradients, and lets the gradients take their operands'
// memory.
Graph WithLateLosses(Graph graph) {
  std::vector<Operator> order, late;
  for (Operator& op : graph.operators) {
    if (op.phase == Phase::kBackward && op.name.starts_with("loss of")) {
      op.in_place = {{op.reads[0], op.writes.back()}};
      late.push_back(std::move(op));
      continue;
    }
    for (auto loss = late.begin(); loss != late.end();) {
      const bool read = std::find(op.reads.begin(), op.reads.end(), loss->writes.back()) != op.reads.end();
      if (read) order.push_back(std::move(*loss));
      loss = read ? late.erase(loss) : loss + 1;
    }
    order.push_back(std::move(op));
  }
  graph.operators = std::move(order);
  return graph;
}

// Section 5.3: four layers of 1024, batch 64, inputs of 50, a softmax over 5000 classes at each step.
Graph LongSequence(int64_t steps, bool smoke) {
  const int64_t layers = smoke ? 2 : 4, hidden = smoke ? 32 : 1024, batch = smoke ? 4 : 64, inputs = 50,
                classes = smoke ? 50 : 5000;
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {steps, batch});
  const std::vector<TensorId> sequence =
      Split(&net, net.Data("inputs", {steps, batch, inputs}), steps, {batch, inputs});
  std::vector<CellWeights> weights;
  std::vector<CellState> states;
  for (int64_t layer = 0; layer < layers; ++layer) {
    weights.push_back(MakeLstmWeights(&net, layer == 0 ? inputs : hidden, hidden));
    states.push_back(ZeroState(&net, batch, hidden));
  }
  const TensorId to_classes = net.Weight({classes, hidden});
  for (TensorId x : sequence) {
    for (size_t layer = 0; layer < weights.size(); ++layer) {
      states[layer] = LstmStep(&net, weights[layer], x, states[layer]);
      x = states[layer].h;
    }
    net.Result(net.FullyConnected(x, classes, false, to_classes), labels);
  }
  absl::StatusOr<Network> network = net.Finish();
  if (!network.ok()) Fail(network.status().ToString());
  return WithLateLosses(Step(*network, false));
}

void OfLstm(Figures* figures, bool smoke) {
  const int64_t steps = smoke ? 4 : 64, long_steps = smoke ? 8 : 1000;
  const auto named = [smoke](int64_t of) {
    return (smoke ? "LSTM, tiny, " : "LSTM 4x1024, ") + std::to_string(of) + " steps";
  };
  const std::string name = named(steps), long_name = named(long_steps);
  const std::string note = "cut between the cells, where several states go over";
  const Lines lines = LinesOf(LongSequence(steps, smoke));
  figures->Row(name, "no optimization, tags", GiB(lines.none), Published(kLstmNone, smoke), "GiB");
  figures->Row(name, "in place, tags", GiB(lines.in_place), nullptr, "GiB");
  figures->Row(name, "sharing, tags", GiB(lines.sharing), Published(kLstmSharing, smoke), "GiB",
               "a quarter MiB less at each step than there, as much as one layer's h");
  figures->Row(name, "sublinear plan, tags", GiB(lines.sublinear), Published(kLstmSublinear, smoke), "GiB", note);
  figures->Row(name, "sublinear plan, arena", GiB(lines.sublinear_arena), Published(kLstmSublinear, smoke), "GiB",
               note);
  figures->Row(name, "sublinear plan, more time", More(lines.sublinear_time, lines.base_time), nullptr, "%");
  const Lines longer = LinesOf(LongSequence(long_steps, smoke));
  figures->Row(long_name, "sharing, tags", GiB(longer.sharing), Published(kLongSharing, smoke), "GiB");
  figures->Row(long_name, "sublinear plan, tags", GiB(longer.sublinear), Published(kLongSublinear, smoke), "GiB", note);
  figures->Row(long_name, "sublinear plan, more time", More(longer.sublinear_time, longer.base_time),
               Published(kMoreTime, smoke), "%");
  figures->Row(long_name, "time of the search", longer.seconds, nullptr, "s");
  if (smoke) return;
  const double factors[] = {GiB(lines.sharing) / GiB(lines.sublinear), GiB(longer.sharing) / GiB(longer.sublinear)};
  figures->Row(name, "sharing / sublinear plan", factors[0], nullptr, "ratio", "section 5.3 says more than 4");
  figures->Row(long_name, "sharing / sublinear plan", factors[1], nullptr, "ratio", "section 5.3 says more than 4");
  figures->Ordering("the LSTM's memory is reduced more than 4 times", {factors[0], factors[1]},
                    factors[0] > kMinFactor && factors[1] > kMinFactor);
}

// Section 4.4 compared with section 4.3: each level costs a part of a forward pass.
void OfRecursion(Figures* figures, const std::string& name, const Graph& graph, int levels) {
  const Values values = ValuesOf(graph);
  const std::vector<Cut> cuts = CutsAt(CandidatesOf(graph, values));
  for (int level = 1; level <= levels; ++level) {
    const Graph mirrored = MirrorGraph(graph, values, RecursiveCounts(graph, cuts, 3, level)).graph;
    const Bytes bytes = Allocate(mirrored, Sharing::kAll).bytes;
    const std::string of = "recursion, k = 3, levels " + std::to_string(level);
    figures->Row(name, of + ", tags", GiB(bytes), nullptr, "GiB", "the paper has no experiment of it");
    figures->Row(name, of + ", more time", More(TotalCost(mirrored), TotalCost(graph)), nullptr, "%");
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Chen's plans, and published numbers");
  bool smoke = false;
  app.add_flag("--smoke", smoke, "tiny models, as a test runs it");
  CLI11_PARSE(app, argc, argv);
  Figures figures;
  const absl::StatusOr<std::array<int64_t, 4>> stages = ResNetStages(smoke ? 50 : 1007);
  if (!stages.ok()) Fail(stages.status().ToString());
  const std::string name = smoke ? "ResNet-50, tiny" : "ResNet, 1007 convolutions, batch 32";
  const Lines as_there = LinesOf(Step(MakeResNet(*stages, smoke, true), false));
  OfLines(&figures, name + ", additions as declared there", as_there, smoke, "");
  const Network network = MakeResNet(*stages, smoke, false);
  const Lines lines = LinesOf(Step(network, false));
  OfLines(&figures, name, lines, smoke, "an addition is made in place, and its gradient reads nothing");
  OfOrderings(&figures, lines);
  const double factor = GiB(as_there.none) / GiB(as_there.sharing);
  if (!smoke) {
    figures.Ordering("the system's optimizations reduce memory by a factor of two to three", {factor},
                     factor > 2 && factor < 3);
  }
  OfWholeRun(&figures, name + ", whole run", network, as_there, smoke);
  OfDepth(&figures, smoke);
  OfRecursion(&figures, name, Step(network, false), smoke ? 2 : 5);
  OfLstm(&figures, smoke);
  std::printf("%s\n", figures.Take().dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace hotpack::remat

int main(int argc, char** argv) { return hotpack::remat::Main(argc, argv); }
