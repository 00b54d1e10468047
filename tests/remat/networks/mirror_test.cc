#include "remat/networks/mirror.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/plans/binarise.h"
#include "remat/core/schedule.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"
#include "remat/networks/declarations.h"
#include "remat/networks/generator.h"

namespace hotpack::remat {
namespace {

constexpr int64_t kRows = 1000;

// Z = tanh(X + Y), both from products of matrices, and a classifier of Z.
Network Figure7() {
  NetworkBuilder net;
  const TensorId x = net.Data("x", {kRows, 8}), y = net.Data("y", {kRows, 8});
  const TensorId z = net.Tanh(net.Sum(net.FullyConnected(x, 100, false), net.FullyConnected(y, 100, false)));
  net.Result(net.FullyConnected(z, 3, false));
  return *net.Finish();
}

std::vector<bool> AllOf(const Network& network, const std::vector<std::string>& kinds) {
  std::vector<bool> mirrored;
  for (const Layer& layer : network.layers)
    mirrored.push_back(std::find(kinds.begin(), kinds.end(), layer.kind) != kinds.end());
  return mirrored;
}

Bytes PeakOf(const Graph& graph) { return Simulate(graph, Baseline(graph))->live_peak; }

// The program keeps Z alone; the mirrors need X and Y, and Z stays for the classifier: this is how mirroring takes
// more.
TEST(MirrorTest, Figure7) {
  const Network network = Figure7();
  const Training training = *MakeTraining(network);
  const Graph mirrored = Mirror(network, training, AllOf(network, {"sum", "tanh"}));
  ASSERT_TRUE(Check(mirrored).ok()) << Check(mirrored);
  EXPECT_EQ(Verify(mirrored, Baseline(mirrored)), "");
  EXPECT_EQ(mirrored.operators.size(), training.graph.operators.size() + 2);
  std::vector<std::string> names;
  for (const Operator& op : mirrored.operators) names.push_back(op.name);
  const auto at = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(at("fully_connected3.backward"), at("sum1.mirror"));
  EXPECT_EQ(at("sum1.mirror") + 1, at("tanh1.mirror"));
  EXPECT_EQ(at("tanh1.mirror") + 1, at("tanh1.backward"));
  const Bytes z = kRows * 100 * kElement;
  EXPECT_GE(PeakOf(mirrored), PeakOf(training.graph) + z);
}

// Layers whose results no gradient reads have no mirror. Without a request no layer has one.
TEST(MirrorTest, OnlyWhatGradientsNeed) {
  const Network network = Figure7();
  const Training training = *MakeTraining(network);
  EXPECT_EQ(Mirror(network, training, AllOf(network, {"sum"})).operators.size(), training.graph.operators.size());
  EXPECT_EQ(Mirror(network, training, AllOf(network, {"tanh"})).operators.size(), training.graph.operators.size() + 1);
  EXPECT_EQ(Mirror(network, training, AllOf(network, {})).operators.size(), training.graph.operators.size());
}

TEST(MirrorTest, NetworksAreSound) {
  for (const char* spec : {"resnet:17,image=32", "lstm:2x8,steps=9", "nmt:2,hidden=8,steps=9",
                           "deepspeech2:1x8,frames=60", "transformer:2,steps=8", "inception:image=75"}) {
    Network network = *GenerateNetwork(spec);
    DeclareAsMxnet(&network);
    const Training training = *MakeTraining(network);
    const Graph mirrored = Mirror(network, training,
                                  AllOf(network, {"batch_norm", "relu", "sum", "sigmoid", "tanh", "multiply", "slice",
                                                  "split", "layer_norm", "softmax"}));
    ASSERT_TRUE(Check(mirrored).ok()) << spec << Check(mirrored);
    EXPECT_EQ(Verify(mirrored, Baseline(mirrored)), "") << spec;
    EXPECT_GT(mirrored.operators.size(), training.graph.operators.size()) << spec;
  }
}

TEST(DeclarationsTest, AsMxnetDeclares) {
  NetworkBuilder net;
  const TensorId x = net.FullyConnected(net.Data("x", {4, 4}), 4);
  const TensorId y = net.Relu(x);
  const TensorId z = net.Dropout(y);
  net.Result(net.FullyConnected(z, 2));
  Network network = *net.Finish();
  EXPECT_EQ(network.layers[1].gradient_reads, std::vector<TensorId>{y});
  DeclareAsMxnet(&network);
  DeclareAsMxnet(&network);
  EXPECT_EQ(network.layers[1].gradient_reads, (std::vector<TensorId>{y, x}));
  const TensorId mask = network.layers[2].outputs[1];
  EXPECT_EQ(network.tensors[static_cast<size_t>(mask)].bytes, 4 * 4 * 4);
  Training training = *MakeTraining(network);
  MarkMasks(network, &training);
  const auto masks = [&](size_t layer) {
    return training.graph.operators[static_cast<size_t>(training.backward_of[layer])].masks;
  };
  const auto storage = [&](TensorId tensor) { return training.storage_of[static_cast<size_t>(tensor)]; };
  EXPECT_EQ(masks(1), (std::vector<StorageId>{storage(y), storage(x)}));
  EXPECT_EQ(masks(2), std::vector<StorageId>{storage(mask)});
  EXPECT_TRUE(masks(0).empty() && masks(3).empty());
  EXPECT_TRUE(Check(training.graph).ok());
  EXPECT_EQ(Binarise(training.graph, ValuesOf(training.graph)).encoded, 3);
}

// The last softmax and the loss are one: the gradient is where the result was.
TEST(DeclarationsTest, SoftmaxOutputWorksInPlace) {
  Network network = *GenerateNetwork("vgg:11,image=32,classes=5");
  const int64_t layers = static_cast<int64_t>(network.layers.size());
  DeclareSoftmaxOutput(&network);
  EXPECT_EQ(static_cast<int64_t>(network.layers.size()), layers - 1);
  Training training = *MakeTraining(network);
  DeclareSoftmaxOutput(network, &training);
  ASSERT_TRUE(Check(training.graph).ok()) << Check(training.graph);
  int in_place = 0;
  for (const Action& action :
       BuildSchedule(training.graph, ValuesOf(training.graph),
                     std::vector<GapAction>(ValuesOf(training.graph).gaps.size(), GapAction::kKeep))
           .schedule.actions) {
    if (action.kind != ActionKind::kRun || action.in_place.empty()) continue;
    in_place += training.graph.operators[static_cast<size_t>(action.target)].name.starts_with("loss") ? 1 : 0;
  }
  EXPECT_EQ(in_place, 1);
  DeclareSoftmaxOutput(&network);  // there is none any more
  EXPECT_EQ(static_cast<int64_t>(network.layers.size()), layers - 1);
}

// A mask of a byte an element is not 32 bits.
TEST(DeclarationsTest, MasksOfBytesAreNotMarked) {
  NetworkBuilder net;
  net.Result(net.Dropout(net.FullyConnected(net.Data("x", {4, 4}), 4)));
  const Network network = *net.Finish();
  Training training = *MakeTraining(network);
  MarkMasks(network, &training);
  for (const Operator& op : training.graph.operators) EXPECT_TRUE(op.masks.empty());
}

// Echo's promise on what networks train, with and without bits; no product of matrices or convolution runs again.
TEST(EchoOfNetworksTest, NeverMoreThanTheProgram) {
  for (const char* spec :
       {"resnet:50,image=64", "resnet:17,image=32", "vgg:11,image=64", "unet:image=64", "inception:image=75",
        "lstm:2x16,steps=20", "lstm:4x8,steps=3", "nmt:2,hidden=32,steps=24", "nmt:1,hidden=32,steps=2",
        "deepspeech2:2x16,frames=100", "transformer:2,steps=16,vocabulary=50"}) {
    for (const bool mxnet : {false, true}) {
      Network network = *GenerateNetwork(spec);
      if (mxnet) DeclareAsMxnet(&network);
      Training training = *MakeTraining(network);
      MarkMasks(network, &training);
      const BinarisedPlan plan = PlanByEchoWithBits(training.graph);
      const Graph& graph = plan.binarised.graph;
      const Schedule schedule = BuildSchedule(graph, plan.values, plan.plan.ways, {}, &plan.plan.again).schedule;
      ASSERT_EQ(Verify(graph, schedule), "") << spec;
      const Values values = ValuesOf(training.graph);
      const Schedule program =
          BuildSchedule(training.graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule;
      EXPECT_LE(Simulate(graph, schedule)->live_peak, Simulate(training.graph, program)->live_peak) << spec;
      std::vector<int> runs(graph.operators.size());
      for (const Action& action : schedule.actions) {
        if (action.kind == ActionKind::kRun) ++runs[static_cast<size_t>(action.target)];
      }
      for (size_t op = 0; op < runs.size(); ++op)
        EXPECT_LE(runs[op], graph.operators[op].heavy ? 1 : 2) << spec << " " << graph.operators[op].name;
    }
  }
}

// A state kept here and there: less is there at once.
TEST(EchoOfNetworksTest, PathsAreParted) {
  const Graph graph = *Generate("lstm:2x64,steps=80,batch=8,classes=2,weights=0");
  const Values values = ValuesOf(graph);
  const EchoPlan whole = PlanByEcho(graph, values);
  for (const int64_t longest : {1, 4, 16, 64}) {
    const EchoPlan parted = PlanByEcho(graph, values, {}, {.longest_path = longest});
    EXPECT_EQ(Verify(graph, BuildSchedule(graph, values, parted.ways, {}, &parted.again).schedule), "");
    EXPECT_TRUE(longest == 1 || parted.outcome.live_peak < whole.outcome.live_peak) << longest;
    std::vector<int64_t> path(graph.operators.size());
    for (size_t op = 0; op < path.size(); ++op) {
      if (!parted.again[op]) continue;
      for (ValueId input : values.inputs[op]) {
        const OperatorId maker = values.values[static_cast<size_t>(input)].maker;
        if (maker >= 0) path[op] = std::max(path[op], path[static_cast<size_t>(maker)]);
      }
      EXPECT_LE(++path[op], longest);
    }
  }
}

// What attention makes of T words is T² times a word's size; with Echo twice T times.
TEST(EchoOfNetworksTest, AttentionGrowsWithTheWordsNotWithTheirSquare) {
  const auto peak = [](int64_t steps, bool echo) {
    const absl::StatusOr<Graph> graph =
        Generate("nmt:1,hidden=64,embedding=8,source=10,target=10,batch=16,weights=0,steps=" + std::to_string(steps));
    const Values values = ValuesOf(*graph);
    const auto hold =
        BuildSchedule(*graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule;
    return static_cast<double>(echo ? PlanByEcho(*graph, values).outcome.live_peak : Simulate(*graph, hold)->live_peak);
  };
  EXPECT_GT(peak(128, false) / peak(64, false), 3);
  EXPECT_LT(peak(128, true) / peak(64, true), 2.2);
}

}  // namespace
}  // namespace hotpack::remat
