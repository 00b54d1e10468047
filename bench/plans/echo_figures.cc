// Echo's plans of the models that its paper trains (Zheng et al. 2020, section VI), compared with the paper's numbers.
//
//   echo_figures [--smoke]        one JSON object: rows {case, what, ours, published, unit, note},
//                                 orderings {says, holds, figures}
//
// Terms:
//  - baseline: the program, in place where the layers allow it, each storage dropped after its last use, packed into
//    one arena. It has no CUDA context and no allocator's losses. The paper's numbers are the driver's and include
//    both.
//  - Chen: MXNet's mirroring, with which the paper compares (remat/networks/mirror.h), of everything except
//    convolutions, fully connected layers, concatenations, softmax outputs and dropouts. Later versions also exclude
//    batch normalisations, in another row.
//  - Echo: remat/baselines/echo.h. Dropouts run once, as in MXNet, which saves no generator's state. Masks are bits
//    where that is smaller.
//  - Gradients read the operands that MXNet 0.12 with cuDNN declares (remat/networks/declarations.h).
//  - Costs are a roofline of the paper's card, a GeForce RTX 2080 Ti: 13.4 TFLOP/s and 616 GB/s by its data sheet, with
//    the parts of remat/networks/device.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/plans/binarise.h"
#include "packer/pack.h"
#include "remat/baselines/echo.h"
#include "remat/chen/segments.h"
#include "remat/core/verifier.h"
#include "remat/networks/declarations.h"
#include "remat/networks/mirror.h"
#include "remat/networks/residual.h"
#include "remat/networks/speech.h"
#include "remat/networks/training_graph.h"
#include "remat/networks/transformer_translation.h"
#include "remat/networks/translation.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::json;

constexpr Device kCard = {.flops_per_ns = 13'400, .bytes_per_ns = 616};
constexpr double kGB = 1e9;
constexpr const char* kNmt = "NMT, batch 128";

// The paper's numbers, from section VI and the figures named here.
constexpr double kNmtBaseline = 10.0, kNmtChen = 7.4, kNmtEcho = 3.0, kNmtRatio = 3.13;  // GB; Table I, VI-B1
constexpr double kNmtEchoTime = 1, kNmtChenTime = 18;                                    // % over the baseline; VI-B1
constexpr double kRecurrentAlone = 21.1, kAttentionAlone = 70.2, kHeavyMore = 1.8, kHeavyTime = 20.2;  // %; Figure 17
constexpr double kTransformerRatio = 1.59, kSpeechRatio = 1.56, kResNetRatio = 2.13, kResNetOverChen = 1.57;  // VI-C
constexpr double kTransformerBits = 38;  // % of the saving; VI-C2
constexpr double kNmtTimes = 18, kTransformerTimes = 3.0, kSpeechTimes = 5,
                 kResNetTimes = 1.67;  // Chen's overhead over Echo's; VI-B1, VI-C
constexpr double kSpeechTime = 2;      // %, "within"; VI-C1
constexpr int64_t kLongestPath = 128;
constexpr const char* kParted =
    "not in the paper: states are kept here and there, so that at most 128 operators follow each other on the path";

constexpr double kPlanMs = 300, kPlanOperators = 15'900;  // V-A

struct Model {
  Network network;
  Training training;
  std::vector<TranslationPart> parts;  // by layer; empty but for translation
};

struct Measured {
  Bytes arena = 0;
  Nanoseconds time = 0;
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "echo_figures: %s\n", what.c_str());
  std::exit(1);
}

Model Make(absl::StatusOr<Network> network, int optimizer_states, bool activations_read_both = true) {
  if (!network.ok()) Fail(network.status().ToString());
  Model model = {*std::move(network), {}, {}};
  if (activations_read_both) DeclareAsMxnet(&model.network);
  DeclareSoftmaxOutput(&model.network);
  TrainingOptions options;
  options.device = kCard;
  options.optimizer_states = optimizer_states;
  absl::StatusOr<Training> training = MakeTraining(model.network, options);
  if (!training.ok()) Fail(training.status().ToString());
  model.training = *std::move(training);
  DeclareSoftmaxOutput(model.network, &model.training);
  MarkMasks(model.network, &model.training);
  return model;
}

Measured Judge(const Graph& graph, const Schedule& schedule) {
  const absl::StatusOr<Outcome> outcome = Simulate(graph, schedule);
  if (!outcome.ok()) Fail(outcome.status().ToString());
  if (const std::string fault = Verify(graph, schedule); !fault.empty()) Fail(fault);
  const PackResult packed = Pack(ToInstance(outcome->residencies), {.time_limit_ns = 2'000'000'000});
  return {packed.placement.height, outcome->time};
}

// Measures the program: each operator once, in place where possible.
Measured Program(const Graph& graph) {
  const Values values = ValuesOf(graph);
  return Judge(graph,
               BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule);
}

// Returns by operator whether its layer passes `may` and it is not random.
std::vector<bool> Allowed(const Model& model, const std::function<bool(size_t layer)>& may) {
  std::vector<bool> allowed(model.training.graph.operators.size());
  for (size_t layer = 0; layer < model.network.layers.size(); ++layer) {
    const OperatorId op = model.training.forward_of[layer];
    if (op >= 0) allowed[static_cast<size_t>(op)] = !model.network.layers[layer].random && may(layer);
  }
  return allowed;
}

Measured Chen(const Model& model, bool batch_norms = true) {
  std::vector<bool> mirrored;
  for (const Layer& layer : model.network.layers) {
    const bool product = layer.kind == "convolution" || layer.kind == "fully_connected";
    mirrored.push_back(!product && !layer.random && layer.kind != "concat" &&
                       (batch_norms || layer.kind != "batch_norm"));
  }
  return Program(Mirror(model.network, model.training, mirrored));
}

Measured Echo(const Model& model, const std::vector<bool>& allowed, int64_t longest_path = 0) {
  const BinarisedPlan plan =
      PlanByEchoWithBits(model.training.graph, {}, {.allowed = &allowed, .longest_path = longest_path});
  return Judge(plan.binarised.graph,
               BuildSchedule(plan.binarised.graph, plan.values, plan.plan.ways, {}, &plan.plan.again).schedule);
}

Measured Echo(const Model& model, int64_t longest_path = 0) {
  return Echo(model, Allowed(model, [](size_t) { return true; }), longest_path);
}

Measured WithoutBits(const Model& model) {
  const Graph& graph = model.training.graph;
  const Values values = ValuesOf(graph);
  const std::vector<bool> allowed = Allowed(model, [](size_t) { return true; });
  const EchoPlan plan = PlanByEcho(graph, values, {}, {.allowed = &allowed});
  return Judge(graph, BuildSchedule(graph, values, plan.ways, {}, &plan.again).schedule);
}

// Echo's path with the fully connected layers added.
Measured WithProducts(const Model& model) {
  const Graph& graph = model.training.graph;
  const Values values = ValuesOf(graph);
  EchoPlan plan = PlanByEcho(graph, values);
  for (size_t layer = 0; layer < model.network.layers.size(); ++layer) {
    if (model.network.layers[layer].kind == "fully_connected")
      plan.again[static_cast<size_t>(model.training.forward_of[layer])] = true;
  }
  return Judge(graph, BuildSchedule(graph, values, DropForward(graph, values, plan.again), {}, &plan.again).schedule);
}

class Figures {
 public:
  void Row(const std::string& of, const std::string& what, double ours, Json published, const std::string& unit,
           const std::string& note = "") {
    std::string said = note;
    if (published.is_number() && published.get<double>() != 0) {
      char apart[64];
      std::snprintf(apart, sizeof apart, "%+.0f %% from it", 100 * (ours / published.get<double>() - 1));
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
  Json Take() const { return {{"section", "Echo"}, {"rows", rows_}, {"orderings", orderings_}}; }

 private:
  Json rows_ = Json::array(), orderings_ = Json::array();
};

double GB(const Measured& of) { return static_cast<double>(of.arena) / kGB; }
double Over(const Measured& of, const Measured& base) {
  return 100 * (static_cast<double>(of.time) / static_cast<double>(base.time) - 1);
}
double Ratio(const Measured& base, const Measured& of) {
  return static_cast<double>(base.arena) / static_cast<double>(of.arena);
}

// Measures the planning time alone.
void OfPlanning(Figures* figures, const Model& model) {
  const Values values = ValuesOf(model.training.graph);
  const auto begin = std::chrono::steady_clock::now();
  PlanByEcho(model.training.graph, values);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  figures->Row(kNmt, "operators", static_cast<double>(model.training.graph.operators.size()), kPlanOperators,
               "operators");
  figures->Row(kNmt, "time of the plan", ms, kPlanMs, "ms",
               "below, in the paper; schedules made, simulated and packed, one thread");
  figures->Ordering("planning takes less than 300 ms", {ms}, ms < kPlanMs);
}

void OfTranslation(Figures* figures, bool smoke) {
  TranslationOptions options;
  if (smoke)
    options = {
        .layers = 2, .hidden = 64, .embedding = 64, .steps = 8, .batch = 8, .source_words = 100, .target_words = 50};
  absl::StatusOr<TranslationNetwork> made = Translation(options);
  if (!made.ok()) Fail(made.status().ToString());
  Model model = Make(std::move(made->network), 2);
  model.parts = std::move(made->part_of);
  const Measured base = Program(model.training.graph), chen = Chen(model), echo = Echo(model);
  const auto alone = [&](TranslationPart part) {
    return Echo(model, Allowed(model, [&](size_t layer) { return model.parts[layer] == part; }));
  };
  const auto share = [&](const Measured& of) { return 100 * (GB(base) - GB(of)) / (GB(base) - GB(echo)); };
  figures->Row(kNmt, "baseline", GB(base), kNmtBaseline, "GB",
               "the driver's number has CUDA's context and the pool's losses");
  figures->Row(kNmt, "Chen", GB(chen), kNmtChen, "GB");
  figures->Row(kNmt, "Echo", GB(echo), kNmtEcho, "GB");
  figures->Row(kNmt, "baseline / Echo", Ratio(base, echo), kNmtRatio, "ratio",
               "what both have and is not counted here makes the paper's smaller");
  figures->Row(kNmt, "baseline / Echo, paths parted", Ratio(base, Echo(model, kLongestPath)), kNmtRatio, "ratio",
               kParted);
  figures->Row(kNmt, "Chen's time over the baseline / Echo's", Over(chen, base) / Over(echo, base), kNmtTimes, "ratio");
  figures->Row(kNmt, "Chen's saving", GB(base) - GB(chen), kNmtBaseline - kNmtChen, "GB");
  figures->Row(kNmt, "Echo's saving", GB(base) - GB(echo), kNmtBaseline - kNmtEcho, "GB");
  figures->Row(kNmt, "Echo's time over the baseline", Over(echo, base), kNmtEchoTime, "%");
  figures->Row(kNmt, "Chen's time over the baseline", Over(chen, base), kNmtChenTime, "%");
  const Measured recurrent = alone(TranslationPart::kRecurrent), attention = alone(TranslationPart::kAttention);
  figures->Row(kNmt, "recurrent layers alone, part of the saving", share(recurrent), kRecurrentAlone, "%");
  figures->Row(kNmt, "attention alone, part of the saving", share(attention), kAttentionAlone, "%");
  const Measured more = WithProducts(model);
  figures->Row(kNmt, "fully connected layers as well, more saving", share(more) - 100, kHeavyMore, "%");
  figures->Row(kNmt, "fully connected layers as well, time over the baseline", Over(more, base), kHeavyTime, "%");
  figures->Ordering("translation: Echo below Chen below the baseline", {GB(echo), GB(chen), GB(base)},
                    GB(echo) < GB(chen) && GB(chen) < GB(base));
  figures->Ordering("translation: attention alone saves more than the recurrent layers alone",
                    {share(attention), share(recurrent)}, share(attention) > share(recurrent));
  figures->Ordering("translation: Echo takes less time than Chen", {Over(echo, base), Over(chen, base)},
                    Over(echo, base) < Over(chen, base));
  OfPlanning(figures, model);
}

void OfModel(Figures* figures, const std::string& name, const Model& model, double ratio, double times,
             const std::string& note) {
  const Measured base = Program(model.training.graph), chen = Chen(model), echo = Echo(model);
  figures->Row(name, "baseline", GB(base), nullptr, "GB");
  figures->Row(name, "Chen", GB(chen), nullptr, "GB");
  if (CountOf(model.network, "batch_norm") > 0)
    figures->Row(name, "Chen, normalisations not mirrored", GB(Chen(model, false)), nullptr, "GB");
  figures->Row(name, "Echo", GB(echo), nullptr, "GB");
  figures->Row(name, "baseline / Echo", Ratio(base, echo), ratio, "ratio", note);
  const Measured parted = Echo(model, kLongestPath);
  figures->Row(name, "baseline / Echo, paths parted", Ratio(base, parted), ratio, "ratio", kParted);
  figures->Row(name, "Echo's time over the baseline", Over(echo, base),
               name.starts_with("DeepSpeech2") ? Json(kSpeechTime) : Json(nullptr), "%");
  figures->Row(name, "Chen's time over the baseline", Over(chen, base), nullptr, "%");
  figures->Row(name, "Chen's time over the baseline / Echo's", Over(chen, base) / Over(echo, base), times, "ratio");
  figures->Ordering(name + ": Echo below Chen", {GB(echo), GB(chen)}, GB(echo) < GB(chen));
  if (name.starts_with("DeepSpeech2"))
    figures->Ordering(name + ": Chen above the baseline", {GB(chen), GB(base)}, GB(chen) > GB(base));
  if (name.starts_with("Transformer")) {
    const double without = GB(base) - GB(WithoutBits(model));
    figures->Row(name, "dropouts' masks as bits, part of the saving", 100 * (1 - without / (GB(base) - GB(echo))),
                 kTransformerBits, "%");
  }
  if (name.starts_with("ResNet")) figures->Row(name, "Chen / Echo", Ratio(chen, echo), kResNetOverChen, "ratio");
}

int Main(int argc, char** argv) {
  CLI::App app("Echo's plans, and its paper's numbers");
  bool smoke = false;
  app.add_flag("--smoke", smoke, "tiny models, as a test runs it");
  CLI11_PARSE(app, argc, argv);
  Figures figures;
  OfTranslation(&figures, smoke);
  TransformerTranslationOptions transformer;
  if (smoke)
    transformer = {.layers = 2,
                   .width = 32,
                   .heads = 2,
                   .hidden = 64,
                   .steps = 8,
                   .batch = 4,
                   .source_words = 100,
                   .target_words = 100};
  OfModel(&figures, "Transformer, 6 layers, 4096 words", Make(TransformerTranslation(transformer), 2),
          kTransformerRatio, kTransformerTimes, "the paper does not give its batch");
  SpeechOptions speech;
  if (smoke) speech = {.layers = 1, .hidden = 32, .frames = 40, .bands = 161, .batch = 4, .classes = 29};
  OfModel(&figures, "DeepSpeech2, batch 24", Make(Speech(speech), 1), kSpeechRatio, kSpeechTimes,
          "the paper does not give the length of its longest bucket");
  OfModel(&figures, "DeepSpeech2, batch 24, activations' gradients read the output alone",
          Make(Speech(speech), 1, false), kSpeechRatio, kSpeechTimes, "as without cuDNN, and in the paper's Figure 7");
  ResNetOptions resnet = {.stages = {3, 8, 36, 3}};
  if (smoke) resnet = {.stages = {1, 1, 1, 1}, .batch = 2, .image = 32, .classes = 10};
  OfModel(&figures, "ResNet-152, batch 32", Make(ResNet(resnet), 1), kResNetRatio, kResNetTimes, "");
  std::printf("%s\n", figures.Take().dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace hotpack::remat

int main(int argc, char** argv) { return hotpack::remat::Main(argc, argv); }
