// The distance of plans from provable bounds: bounds on the time at a budget, Checkmate's model by CBC, and hotpack's
// search.
//
//   exact_figures [--smoke] [--shared DIR] [--time-limit SECONDS] [--solver-limit SECONDS]
//                                 one JSON object: rows {case, what, ours, published, unit, note},
//                                 orderings {says, holds, figures}
//
//  - Graphs are the DTR prototype's operator logs (DIR/dtr), if present, and generated networks. For the model there is
//    VGG16 as a chain of 45 operators, since Checkmate's form grows with the square of the operators.
//  - Budgets are parts of the live peak of the program, which drops each storage after its last use.
//  - The search's plans keep to the budget with their packed arena. The bounds hold for live bytes. The gap includes
//    both.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "remat/core/verifier.h"
#include "remat/exact/bounds.h"
#include "remat/exact/checkmate.h"
#include "remat/files/dtr_log.h"
#include "remat/networks/generator.h"
#include "remat/remat_plan.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::ordered_json;

// Measured for Checkmate's form with CBC on VGG16's 45 operators.
constexpr double kPublishedBinaries = 3499, kPublishedSeconds = 11;

struct Options {
  bool smoke = false;
  std::string shared;
  double time_limit = 6;     // seconds for a search
  double solver_limit = 60;  // seconds for CBC
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "exact_figures: %s\n", what.c_str());
  std::exit(1);
}

struct Named {
  std::string name;
  Graph graph;
};

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Named> Graphs(const Options& options) {
  std::vector<Named> graphs;
  const auto add = [&](const std::string& name, absl::StatusOr<Graph> graph) {
    if (!graph.ok()) Fail(name + ": " + std::string(graph.status().message()));
    graphs.push_back({name, *std::move(graph)});
  };
  if (options.smoke) {
    add("vgg:11,batch=16,image=32,weights=0", Generate("vgg:11,batch=16,image=32,weights=0"));
    return graphs;
  }
  for (const char* log : {"lstm-128", "resnet32-56", "transformer-10", "unet-6"}) {
    const std::filesystem::path path = std::filesystem::path(options.shared) / "dtr" / (std::string(log) + ".log");
    if (!options.shared.empty() && std::filesystem::exists(path)) add(log, ParseDtrLog(ReadText(path), path.string()));
  }
  for (const char* spec : {"vgg:16", "unet", "resnet:50"}) add(spec, Generate(spec));
  return graphs;
}

// VGG16 (Simonyan, Zisserman 2014) at batch 64 as one chain: 13 convolutions with their rectifiers, 5 poolings, a
// flattening and 3 fully connected layers; a loss; and for each layer one operator that reads its input and the
// gradient of its output. Weights are left out. Costs are in ns at 1 flop per ps, twice that for the backward pass. A
// layer without products costs its bytes at 500 per ns.
Graph VggChain(bool small) {
  struct Layer {
    Bytes bytes;  // of its result
    Nanoseconds cost;
  };
  std::vector<Layer> layers;
  const int64_t batch = small ? 1 : 64;
  int64_t side = small ? 8 : 224, channels = 3;
  const auto size = [&] { return batch * side * side * channels * 4; };
  for (const auto& [convolutions, width] :
       std::vector<std::pair<int, int64_t>>{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    if (small && layers.size() >= 6) break;
    for (int i = 0; i < convolutions; ++i) {
      const int64_t flops = 2 * batch * side * side * channels * width * 9;
      channels = width;
      layers.push_back({size(), flops / 1000});
    }
    side /= 2;
    layers.push_back({size(), size() / 500});
  }
  if (!small) {
    int64_t inputs = side * side * channels;
    layers.push_back({size(), size() / 500});
    for (int64_t outputs : {4096, 4096, 1000}) {
      layers.push_back({batch * outputs * 4, 2 * batch * inputs * outputs / 1000});
      inputs = outputs;
    }
  }
  Graph graph;
  const auto count = static_cast<StorageId>(layers.size());
  const auto bytes = [&](StorageId i) {
    return i == 0 ? batch * (small ? 8 * 8 : 224 * 224) * 3 * 4 : layers[static_cast<size_t>(i) - 1].bytes;
  };
  for (StorageId i = 0; i <= count; ++i)
    graph.storages.push_back({.name = "x" + std::to_string(i), .bytes = bytes(i), .given = i == 0});
  for (StorageId i = count; i >= 1; --i) graph.storages.push_back({.name = "g" + std::to_string(i), .bytes = bytes(i)});
  const auto gradient = [count](StorageId i) { return 2 * count + 1 - i; };
  const auto add = [&](const std::string& name, Nanoseconds cost, std::vector<StorageId> reads,
                       std::vector<StorageId> writes, Phase phase) {
    graph.operators.push_back(
        {.name = name, .cost = cost, .reads = std::move(reads), .writes = std::move(writes), .phase = phase});
  };
  for (StorageId i = 1; i <= count; ++i)
    add("f" + std::to_string(i), layers[static_cast<size_t>(i) - 1].cost, {i - 1}, {i}, Phase::kForward);
  add("loss", 1000, {count}, {gradient(count)}, Phase::kBackward);
  for (StorageId i = count; i >= 1; --i) {  // the first layer makes only its weights' gradient
    add("b" + std::to_string(i), 2 * layers[static_cast<size_t>(i) - 1].cost, {i - 1, gradient(i)},
        i > 1 ? std::vector<StorageId>{gradient(i - 1)} : std::vector<StorageId>{}, Phase::kBackward);
  }
  return graph;
}

class Figures {
 public:
  explicit Figures(const Options& options) : options_(options) {}

  void Bounds(const Named& named) {
    const Values values = ValuesOf(named.graph);
    const absl::StatusOr<Outcome> whole = Simulate(named.graph, Baseline(named.graph));
    if (!whole.ok()) Fail(named.name + ": " + std::string(whole.status().message()));
    std::vector<Bytes> budgets;
    for (int part : {80, 60, 40, 20}) budgets.push_back(whole->live_peak / 100 * part);
    PlanOptions plan;
    plan.algorithm = RematAlgorithm::kSearch;
    plan.time_limit_ns = static_cast<int64_t>((options_.smoke ? 0.05 : options_.time_limit) * 1e9);
    const std::vector<absl::StatusOr<RematPlan>> answers = MakePlans(named.graph, plan, budgets);
    const auto total = static_cast<double>(whole->time);
    Row(named.name, "least memory of any plan, of the program's",
        100.0 * static_cast<double>(LeastBytes(named.graph, values)) / static_cast<double>(whole->live_peak), "%", "");
    for (size_t b = 0; b < budgets.size(); ++b) {
      const std::string at = named.name + " at " + std::to_string(80 - 20 * b) + " %";
      const auto begin = std::chrono::steady_clock::now();
      const absl::StatusOr<TimeBound> any = LeastTime(named.graph, values, budgets[b]);
      const absl::StatusOr<TimeBound> ordered = LeastTime(named.graph, values, budgets[b], {.keeps_order = true});
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const std::string note =
          std::to_string(budgets[b]) + " bytes; both bounds in " + std::to_string(seconds).substr(0, 5) + " s";
      Row(at, "least time of any plan", Ratio(any, total), "times",
          note + (any.ok() ? "" : "; " + std::string(any.status().message())));
      Row(at, "least time in the program's order", Ratio(ordered, total), "times",
          ordered.ok() ? "" : std::string(ordered.status().message()));
      if (!answers[b].ok()) {
        Row(at, "hotpack's search", std::nullopt, "times", std::string(answers[b].status().message()));
        continue;
      }
      const auto time = static_cast<double>(answers[b]->outcome.time);
      Row(at, "hotpack's search", time / total, "times",
          std::to_string(plan.time_limit_ns / 1'000'000) + " ms for a budget");
      if (!any.ok() || !ordered.ok()) {
        broken_.push_back(at);  // a plan below the bound of every plan
        continue;
      }
      // The search keeps the program's order, so the higher bound applies.
      Row(at, "gap of the search to the bound in order", 100 * (time / static_cast<double>(ordered->time) - 1), "%",
          "");
      if (any->time > ordered->time || ordered->time > answers[b]->outcome.time) broken_.push_back(at);
    }
  }

  void Model(int percent) {
    const Graph graph = VggChain(options_.smoke);
    const Values values = ValuesOf(graph);
    const absl::StatusOr<Outcome> whole = Simulate(graph, Baseline(graph));
    const Bytes budget = whole->live_peak / 100 * percent;
    const std::string at =
        "VGG16, " + std::to_string(graph.operators.size()) + " operators at " + std::to_string(percent) + " %";
    const auto total = static_cast<double>(whole->time);
    const absl::StatusOr<TimeBound> bound = LeastTime(graph, values, budget, {.keeps_order = true});
    Row(at, "least time in the program's order", Ratio(bound, total), "times",
        bound.ok() ? "" : std::string(bound.status().message()));
    for (const bool as_published : {true, false}) {
      const absl::StatusOr<CheckmateModel> model =
          BuildCheckmate(graph, values, budget, {.as_published = as_published});
      if (!model.ok()) Fail(at + ": " + std::string(model.status().message()));
      const auto integers = std::count_if(model->program.columns.begin(), model->program.columns.end(),
                                          [](const Column& column) { return column.integer; });
      const std::string form = as_published ? "Checkmate's model as published" : "Checkmate's model, a row a factor";
      Row(at, form + ": binaries", static_cast<double>(integers), "",
          as_published ? "the published 45 operators are not given: another chain; columns that are certain from the "
                         "start are left out"
                       : "F is not integer",
          as_published && !options_.smoke ? std::optional(kPublishedBinaries) : std::nullopt);
      Solve(at, form + " relaxed", Relaxed(model->program), nullptr, graph, values, total, as_published, percent);
      Solve(at, form, model->program, &*model, graph, values, total, as_published, percent);
    }
    PlanOptions plan;
    plan.algorithm = RematAlgorithm::kSearch;
    plan.budget = budget;
    plan.time_limit_ns = static_cast<int64_t>((options_.smoke ? 0.05 : options_.time_limit) * 1e9);
    const absl::StatusOr<RematPlan> answer = MakeRematPlan(graph, plan);
    Row(at, "hotpack's search",
        answer.ok() ? std::optional(static_cast<double>(answer->outcome.time) / total) : std::nullopt, "times",
        answer.ok() ? "" : std::string(answer.status().message()));
  }

  void Print() {
    const Json orderings = Json::array(
        {{{"says", "no plan is faster than its bound, and no bound of any plan above that of plans in order"},
          {"holds", broken_.empty()},
          {"figures", broken_}}});
    std::printf("%s\n",
                Json{{"section", "How far plans are from what is provable"}, {"rows", rows_}, {"orderings", orderings}}
                    .dump(1)
                    .c_str());
  }
  bool holds() const { return broken_.empty(); }

 private:
  void Row(const std::string& name, const std::string& what, std::optional<double> ours, const std::string& unit,
           const std::string& note, std::optional<double> published = std::nullopt) {
    rows_.push_back({{"case", name},
                     {"what", what},
                     {"ours", ours ? Json(*ours) : Json()},
                     {"published", published ? Json(*published) : Json()},
                     {"unit", unit},
                     {"note", note}});
  }
  static std::optional<double> Ratio(const absl::StatusOr<TimeBound>& bound, double total) {
    return bound.ok() ? std::optional(static_cast<double>(bound->time) / total) : std::nullopt;
  }

  // Solves the program with CBC. `model`, if not null: makes a plan of the solution.
  void Solve(const std::string& at, const std::string& what, const LinearProgram& program, const CheckmateModel* model,
             const Graph& graph, const Values& values, double total, bool as_published, int percent) {
    if (std::system("command -v cbc >/dev/null 2>&1") != 0)
      return Row(at, what, std::nullopt, "times", "cbc is not installed");
    std::string folder = (std::filesystem::temp_directory_path() / "exact_figures.XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) Fail("no temporary directory");
    std::ofstream(folder + "/model.lp") << FormatProgram(program, ProgramFormat::kLp);
    const std::string limit = std::to_string(static_cast<int>(options_.solver_limit));
    const auto begin = std::chrono::steady_clock::now();
    const int code = std::system(("cbc " + folder + "/model.lp sec " + limit +
                                  " ratioGap 0 allowableGap 0 solve solution " + folder + "/solution >/dev/null 2>&1")
                                     .c_str());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const absl::StatusOr<SolverValues> solution = ParseSolverValues(ReadText(folder + "/solution"), "cbc");
    std::filesystem::remove_all(folder);
    if (code != 0 || !solution.ok()) return Row(at, what, std::nullopt, "times", "cbc failed");
    Row(at, what, solution->has_solution ? std::optional(solution->objective / total) : std::nullopt, "times",
        solution->status);
    if (model == nullptr) return;
    Row(at, what + ": CBC's time", seconds, "s", solution->status,
        as_published && percent == 75 && !options_.smoke ? std::optional(kPublishedSeconds) : std::nullopt);
    if (!solution->has_solution) return;
    const absl::StatusOr<Schedule> schedule = ScheduleOfSolution(graph, values, *model, *solution);
    const absl::StatusOr<Outcome> outcome =
        schedule.ok() ? Simulate(graph, *schedule) : absl::StatusOr<Outcome>(schedule.status());
    if (!outcome.ok() || !Verify(graph, *schedule).empty()) Fail(at + ": CBC's solution is no plan");
    const absl::StatusOr<TimeBound> bound = LeastTime(graph, values, outcome->live_peak, {.keeps_order = true});
    if (!bound.ok() || bound->time > outcome->time) broken_.push_back(at);
  }

  const Options& options_;
  Json rows_ = Json::array();
  std::vector<std::string> broken_;
};

}  // namespace
}  // namespace hotpack::remat

int main(int argc, char** argv) {
  hotpack::remat::Options options;
  if (const char* shared = std::getenv("HOTPACK_SHARED")) options.shared = shared;
  CLI::App app("How far plans are from what is provable");
  app.add_flag("--smoke", options.smoke, "Small graphs, short searches");
  app.add_option("--shared", options.shared, "The folder above dtr/ (else HOTPACK_SHARED)");
  app.add_option("--time-limit", options.time_limit, "Seconds for a search and a budget")->capture_default_str();
  app.add_option("--solver-limit", options.solver_limit, "Seconds for a solver")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  hotpack::remat::Figures figures(options);
  for (const auto& graph : hotpack::remat::Graphs(options)) figures.Bounds(graph);
  for (int percent : options.smoke ? std::vector{90, 80} : std::vector{75, 66}) figures.Model(percent);
  figures.Print();
  return figures.holds() ? 0 : 1;
}
