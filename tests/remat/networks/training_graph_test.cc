#include "remat/networks/training_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "remat/core/schedule.h"
#include "remat/core/schedule_builder.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"
#include "remat/core/verifier.h"
#include "remat/networks/builder.h"

namespace hotpack::remat {
namespace {

using Names = std::set<std::string>;

Names NamesOf(const Graph& graph, const std::vector<StorageId>& ids) {
  Names names;
  for (StorageId id : ids) names.insert(graph.storages[static_cast<size_t>(id)].name);
  return names;
}

const Operator* Find(const Graph& graph, const std::string& name) {
  for (const Operator& op : graph.operators) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

const Storage* FindStorage(const Graph& graph, const std::string& name) {
  for (const Storage& storage : graph.storages) {
    if (storage.name == name) return &storage;
  }
  return nullptr;
}

std::vector<std::string> OperatorNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operator& op : graph.operators) names.push_back(op.name);
  return names;
}

// images ─ conv ─ bn ─┬─ relu ─ conv ─ (+) ─ global pool ─ fully connected ─ softmax
//                     └─────────────────┘
Network SmallNetwork() {
  NetworkBuilder net;
  const TensorId labels = net.Data("labels", {2});
  const TensorId images = net.Data("images", {2, 3, 8, 8});
  const TensorId norm = net.BatchNorm(net.Convolution(images, 4, Square(3)));
  const TensorId sum = net.Sum(net.Convolution(net.Relu(norm), 4, Square(1)), norm);
  net.Result(net.Softmax(net.FullyConnected(net.Flatten(net.GlobalPool(sum)), 10)), labels);
  return *net.Finish();
}

TEST(TrainingGraphTest, WhatTheOperatorsOfASmallNetworkAre) {
  const absl::StatusOr<Graph> graph = TrainingGraph(SmallNetwork());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<std::string> forward = {"convolution1", "batch_norm1",      "relu1",   "convolution2", "sum1",
                                            "global_pool1", "fully_connected1", "softmax1"};
  std::vector<std::string> expected = forward;
  expected.push_back("loss of softmax1");
  for (size_t i = forward.size(); i-- > 0;) expected.push_back(forward[i] + ".backward");
  for (const char* weight : {"convolution1.weight", "batch_norm1.scale", "convolution2.weight",
                             "fully_connected1.weight", "fully_connected1.bias"}) {
    expected.push_back(std::string("update ") + weight);
  }
  EXPECT_EQ(OperatorNames(*graph), expected);

  const Operator& conv = *Find(*graph, "convolution1.backward");
  EXPECT_EQ(NamesOf(*graph, conv.reads), (Names{"convolution1.gradient", "images", "convolution1.weight"}));
  EXPECT_EQ(NamesOf(*graph, conv.updates), (Names{"convolution1.weight.gradient"}));  // none of the images
  EXPECT_TRUE(conv.writes.empty());
  EXPECT_TRUE(conv.heavy);
  const Operator& norm = *Find(*graph, "batch_norm1.backward");
  EXPECT_EQ(NamesOf(*graph, norm.reads),
            (Names{"batch_norm1.gradient", "convolution1", "batch_norm1.scale", "batch_norm1.statistics"}));
  EXPECT_FALSE(norm.heavy);
  const Operator& sum = *Find(*graph, "sum1.backward");
  EXPECT_EQ(NamesOf(*graph, sum.reads), (Names{"sum1.gradient"}));
  EXPECT_EQ(NamesOf(*graph, sum.writes), (Names{"convolution2.gradient", "batch_norm1.gradient"}));
  EXPECT_EQ(sum.in_place.size(), 2u);
  // The second gradient of the sum's other operand is added to the first.
  const Operator& relu = *Find(*graph, "relu1.backward");
  EXPECT_EQ(NamesOf(*graph, relu.reads), (Names{"relu1.gradient", "relu1"}));
  EXPECT_EQ(NamesOf(*graph, relu.updates), (Names{"batch_norm1.gradient"}));
  EXPECT_TRUE(relu.writes.empty() && relu.in_place.empty());
  EXPECT_EQ(Find(*graph, "relu1")->in_place.size(), 1u);
  EXPECT_EQ(NamesOf(*graph, Find(*graph, "update batch_norm1.scale")->updates),
            (Names{"batch_norm1.scale", "batch_norm1.scale.state1"}));
  EXPECT_EQ(FindStorage(*graph, "convolution1")->bytes, 2 * 4 * 8 * 8 * 4);
  EXPECT_EQ(FindStorage(*graph, "convolution1.weight")->bytes, 4 * 3 * 3 * 3 * 4);
  for (const Operator& op : graph->operators) {
    const bool update = op.name.starts_with("update"),
               backward = op.name.ends_with(".backward") || op.name.starts_with("loss");
    EXPECT_EQ(op.phase, update ? Phase::kUpdate : backward ? Phase::kBackward : Phase::kForward) << op.name;
  }
}

TEST(TrainingGraphTest, OptionsChangeWhatIsThere) {
  const Network network = SmallNetwork();
  const Graph all = *TrainingGraph(network);
  const Graph maps = *TrainingGraph(network, {.weights = false});
  EXPECT_TRUE(std::none_of(maps.storages.begin(), maps.storages.end(),
                           [](const Storage& each) { return each.kind == StorageKind::kWeight; }));
  EXPECT_EQ(maps.operators.size() + 5, all.operators.size());
  for (size_t i = 0; i < maps.operators.size(); ++i)
    EXPECT_EQ(maps.operators[i].cost, all.operators[i].cost) << all.operators[i].name;
  Bytes feature_maps = 0, weights = 0;
  for (const Storage& storage : all.storages) {
    feature_maps += storage.kind == StorageKind::kFeatureMap ? storage.bytes : 0;
    weights += storage.kind == StorageKind::kWeight ? storage.bytes : 0;
  }
  EXPECT_EQ(feature_maps, 2 * FeatureMapBytes(network));
  EXPECT_EQ(weights, 3 * WeightBytes(network));  // weight, gradient, momentum

  const Graph passing = *TrainingGraph(network, {.gradients_stay = false});
  EXPECT_FALSE(FindStorage(passing, "convolution1.weight.gradient")->kept ||
               FindStorage(passing, "convolution1.weight.gradient")->given);
  EXPECT_TRUE(FindStorage(all, "convolution1.weight.gradient")->kept &&
              FindStorage(all, "convolution1.weight.gradient")->given);
  EXPECT_EQ(NamesOf(passing, Find(passing, "convolution1.backward")->writes), (Names{"convolution1.weight.gradient"}));
  const Graph kept = *TrainingGraph(network, {.updates = false, .gradients_stay = false});
  EXPECT_TRUE(FindStorage(kept, "convolution1.weight.gradient")->kept);
  EXPECT_EQ(Find(kept, "update convolution1.weight"), nullptr);
  EXPECT_EQ(FindStorage(*TrainingGraph(network, {.optimizer_states = 0}), "convolution1.weight.state1"), nullptr);
  EXPECT_NE(FindStorage(*TrainingGraph(network, {.optimizer_states = 2}), "convolution1.weight.state2"), nullptr);
}

TEST(TrainingGraphTest, GradientsAreAddedByAnOperatorOfTheirOwn) {
  const absl::StatusOr<Graph> graph = TrainingGraph(SmallNetwork(), {.accumulation = Accumulation::kOperator});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Operator& relu = *Find(*graph, "relu1.backward");
  EXPECT_EQ(NamesOf(*graph, relu.writes), (Names{"batch_norm1.gradient.1"}));
  const Operator* add = &relu + 1;
  EXPECT_EQ(NamesOf(*graph, add->reads), (Names{"batch_norm1.gradient.1"}));
  EXPECT_EQ(NamesOf(*graph, add->updates), (Names{"batch_norm1.gradient"}));
  EXPECT_EQ(Verify(*graph, Baseline(*graph)), "");
}

// Weights that several layers share have one gradient and one update; what no result follows from, and what follows
// from no weight, none.
TEST(TrainingGraphTest, SharedWeightsAndLayersBesideTheWay) {
  NetworkBuilder net;
  const TensorId data = net.Data("x", {4, 8});
  const TensorId scaled = net.Tanh(data);  // follows from no weight
  const TensorId weight = net.Weight({8, 8}, "shared");
  const TensorId first = net.FullyConnected(scaled, 8, false, weight);
  const TensorId second = net.FullyConnected(net.Tanh(first), 8, false, weight);
  net.Sigmoid(first);  // to nowhere
  net.Result(second);
  const absl::StatusOr<Training> training = MakeTraining(*net.Finish());
  ASSERT_TRUE(training.ok()) << training.status();
  const Graph& graph = training->graph;
  EXPECT_EQ(NamesOf(graph, Find(graph, "fully_connected2.backward")->writes), (Names{"tanh2.gradient"}));
  EXPECT_EQ(NamesOf(graph, Find(graph, "fully_connected2.backward")->updates), (Names{"shared.gradient"}));
  EXPECT_EQ(NamesOf(graph, Find(graph, "fully_connected1.backward")->updates), (Names{"shared.gradient"}));
  EXPECT_TRUE(Find(graph, "tanh1")->in_place.empty());  // not in the memory of given contents
  EXPECT_EQ(Find(graph, "tanh2")->in_place.size(), 1u);
  EXPECT_EQ(Find(graph, "tanh1.backward"), nullptr);
  EXPECT_EQ(Find(graph, "sigmoid1.backward"), nullptr);
  EXPECT_EQ(training->backward_of[0], -1);
  EXPECT_EQ(training->gradient_of[static_cast<size_t>(scaled)], -1);
  EXPECT_EQ(graph.operators[static_cast<size_t>(training->backward_of[1])].name, "fully_connected1.backward");
  EXPECT_EQ(Find(graph, "fully_connected1.backward")->writes.size(), 0u);
  int updates = 0;
  for (const Operator& op : graph.operators) updates += op.phase == Phase::kUpdate ? 1 : 0;
  EXPECT_EQ(updates, 1);
}

// Weights, gradients and states have memory from the beginning to the end of every plan that copies nothing to the
// host.
TEST(TrainingGraphTest, GradientsThatStayAreInEveryPlan) {
  const Network network = SmallNetwork();
  for (const bool stay : {true, false}) {
    const Graph graph = *TrainingGraph(network, {.gradients_stay = stay});
    const Values values = ValuesOf(graph);
    const Schedule held =
        BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule;
    const Outcome outcome = *Simulate(graph, held);
    Clock last = 0;
    Bytes throughout = 0;
    for (const StorageResidency& each : outcome.residencies) last = std::max(last, each.end);
    for (const StorageResidency& each : outcome.residencies)
      throughout += each.begin == 0 && each.end == last ? each.bytes : 0;
    EXPECT_EQ(throughout, (stay ? 3 : 2) * WeightBytes(network));
  }
}

// Nothing wants what batch normalisation makes but relu: it is not held between the passes.
TEST(TrainingGraphTest, WhatNoGradientReadsIsLetGo) {
  NetworkBuilder net;
  TensorId x = net.Data("x", {1, 16, 32, 32});
  for (int i = 0; i < 20; ++i) x = net.Relu(net.BatchNorm(net.Convolution(x, 16, Square(3))));
  net.Result(x);
  const Graph graph = *TrainingGraph(*net.Finish(), {.weights = false});
  const Values values = ValuesOf(graph);
  const Schedule held =
      BuildSchedule(graph, values, std::vector<GapAction>(values.gaps.size(), GapAction::kKeep)).schedule;
  EXPECT_EQ(Verify(graph, held), "");
  const Bytes map = 16 * 32 * 32 * 4;
  // x, and of each layer the results of the convolution and of relu; in addition the gradient.
  EXPECT_NEAR(static_cast<double>(Simulate(graph, held)->live_peak) / static_cast<double>(map), 1 + 2 * 20 + 1, 1.1);
}

TEST(TrainingGraphTest, DropoutDrawsOnceAndItsGradientReadsTheMask) {
  NetworkBuilder net;
  net.Result(net.Dropout(net.FullyConnected(net.Data("x", {4, 8}), 16)));
  const Graph graph = *TrainingGraph(*net.Finish());
  EXPECT_TRUE(Find(graph, "dropout1")->random);
  EXPECT_FALSE(Find(graph, "dropout1.backward")->random);
  EXPECT_EQ(NamesOf(graph, Find(graph, "dropout1")->writes), (Names{"dropout1", "dropout1.mask"}));
  EXPECT_EQ(NamesOf(graph, Find(graph, "dropout1.backward")->reads), (Names{"dropout1.gradient", "dropout1.mask"}));
  EXPECT_EQ(FindStorage(graph, "dropout1.mask")->bytes, 4 * 16);
  EXPECT_EQ(FindStorage(graph, "dropout1.mask")->kind, StorageKind::kFeatureMap);
}

// Layers declared to work in place do so only where it fits.
TEST(TrainingGraphTest, NothingTakesOverLessThanItNeeds) {
  NetworkBuilder net;
  const TensorId small = net.FullyConnected(net.Data("x", {4, 8}), 8);
  const TensorId large = net.NewTensor("large", {4, 16}, TensorRole::kFeatureMap);
  net.Add({.name = "wider",
           .kind = "wider",
           .inputs = {small},
           .outputs = {large},
           .in_place = {{small, large}},
           .gradient_in_place = {{large, small}}});
  net.Result(large);
  const absl::StatusOr<Graph> graph = TrainingGraph(*net.Finish());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Find(*graph, "wider")->in_place.empty());
  EXPECT_EQ(Find(*graph, "wider.backward")->in_place.size(), 1u);
}

TEST(TrainingGraphTest, CostsFollowTheRoofline) {
  const Device device = {.flops_per_ns = 1000, .bytes_per_ns = 100, .flops_part = 0.5, .bytes_part = 0.5, .launch = 7};
  EXPECT_EQ(CostOf(device, 0, 0), 7);
  EXPECT_EQ(CostOf(device, 5e6, 0), 10'007);
  EXPECT_EQ(CostOf(device, 5e6, 1e6), 20'007);
  EXPECT_GT(CostOf(device, 1e300, 1e300), 0);
  const Graph graph = *TrainingGraph(SmallNetwork(), {.device = device});
  // 2 · 27 multiplications and additions for 2 · 4 · 64 outputs, 500 a ns, against 1,536 + 432 + 2,048 bytes, 50 a ns.
  EXPECT_EQ(Find(graph, "convolution1")->cost, 7 + 80);
  EXPECT_EQ(Find(graph, "relu1")->cost, 7 + 82);  // 4,096 bytes
}

TEST(TrainingGraphTest, FaultsAreOneLine) {
  Network network = SmallNetwork();
  network.results.clear();
  EXPECT_EQ(TrainingGraph(network).status().message(), "the network has no result to take a loss from");
  network = SmallNetwork();
  network.layers[2].inputs = {99};
  EXPECT_EQ(TrainingGraph(network).status().message(), "layer relu1: no such tensor");
  network = SmallNetwork();
  network.results[0].labels = 99;
  EXPECT_EQ(TrainingGraph(network).status().message(), "no such result");
  network = SmallNetwork();
  std::swap(network.layers[0], network.layers[1]);
  EXPECT_EQ(TrainingGraph(network).status().message(),
            "operator 0 (batch_norm1): uses 'convolution1', which nothing has made");
}

TEST(BuilderTest, TheFirstFaultIsTheAnswer) {
  const auto fault = [](auto build) {
    NetworkBuilder net;
    build(&net);
    return std::string(net.Finish().status().message());
  };
  EXPECT_EQ(fault([](NetworkBuilder* net) { net->Data("x", {1 << 30, 1 << 30, 4}); }), "x: more than 2^62 bytes");
  EXPECT_EQ(fault([](NetworkBuilder* net) {
              net->MaxPool(net->Data("x", {1, 1, 2, 2}), Square(3, 1, false));
            }),
            "max_pool1: nothing is left of it (a size below 1)");
  EXPECT_EQ(fault([](NetworkBuilder* net) { net->Sum(net->Data("a", {2}), net->Data("b", {3})); }),
            "a sum of tensors of different shapes");
  EXPECT_EQ(fault([](NetworkBuilder* net) { net->Convolution(net->Data("a", {2}), 4, Square(1)); }), "a: not an image");
  EXPECT_EQ(fault([](NetworkBuilder* net) {
              const TensorId x = net->Data("x", {1});
              for (size_t i = 0; i <= kMaxLayers; ++i) net->Relu(x);
            }),
            "more than 1000000 layers");
}

}  // namespace
}  // namespace hotpack::remat
