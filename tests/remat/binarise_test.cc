#include "bench/plans/binarise.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "remat/core/verifier.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

constexpr Bytes kMap = 32 * 1024;

// x → fc1 → a → dropout → (b, mask) → fc2 → c → relu → d → pool → e, and back. b is read whole by fc2's gradient, the
// mask and d as bits.
Graph Layers(Bytes bytes = kMap) {
  Graph graph;
  const auto storage = [&graph, bytes](const std::string& name) {
    graph.storages.push_back({name, bytes, StorageKind::kFeatureMap, false, false});
    return static_cast<StorageId>(graph.storages.size() - 1);
  };
  const auto add = [&graph](const std::string& name, std::vector<StorageId> reads, std::vector<StorageId> writes,
                            Phase phase = Phase::kForward) {
    Operator op;
    op.name = name;
    op.cost = 10;
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    op.phase = phase;
    op.heavy = name.starts_with("fc");
    op.random = name == "dropout";
    graph.operators.push_back(std::move(op));
    return graph.operators.size() - 1;
  };
  const StorageId x = storage("x"), a = storage("a"), b = storage("b"), mask = storage("mask"), c = storage("c"),
                  d = storage("d"), e = storage("e");
  graph.storages[static_cast<size_t>(x)].given = true;
  add("fc1", {x}, {a});
  add("dropout", {a}, {b, mask});
  add("fc2", {b}, {c});
  add("relu", {c}, {d});
  add("pool", {d}, {e});
  const StorageId ge = storage("ge"), gd = storage("gd"), gc = storage("gc"), gb = storage("gb"), ga = storage("ga"),
                  gx = storage("gx");
  add("loss", {e}, {ge}, Phase::kBackward);
  add("pool'", {ge}, {gd}, Phase::kBackward);
  graph.operators[add("relu'", {gd, d}, {gc}, Phase::kBackward)].masks = {d};
  add("fc2'", {gc, b}, {gb}, Phase::kBackward);
  graph.operators[add("dropout'", {gb, mask}, {ga}, Phase::kBackward)].masks = {mask};
  add("fc1'", {ga, x}, {gx}, Phase::kBackward);
  graph.storages[static_cast<size_t>(gx)].kept = true;
  return graph;
}

std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operator& op : graph.operators) names.push_back(op.name);
  return names;
}

TEST(BinariseTest, MasksAreKeptAsBits) {
  const Graph graph = Layers();
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Binarised bits = Binarise(graph, ValuesOf(graph));
  ASSERT_TRUE(Check(bits.graph).ok()) << Check(bits.graph);
  EXPECT_EQ(bits.encoded, 2);
  EXPECT_EQ(Names(bits.graph),
            (std::vector<std::string>{"fc1", "dropout", "encode mask", "fc2", "relu", "encode d", "pool", "loss",
                                      "pool'", "relu'", "fc2'", "dropout'", "fc1'"}));
  EXPECT_EQ(bits.from, (std::vector<OperatorId>{0, 1, -1, 2, 3, -1, 4, 5, 6, 7, 8, 9, 10}));
  const StorageId d = bits.graph.operators[9].reads[1];
  EXPECT_EQ(bits.graph.storages[static_cast<size_t>(d)].name, "d.bits");
  EXPECT_EQ(bits.graph.storages[static_cast<size_t>(d)].bytes, kMap / 32);
  EXPECT_EQ(bits.graph.operators[9].masks, std::vector<StorageId>{d});
  EXPECT_EQ(bits.graph.operators[6].reads, graph.operators[4].reads);  // pool reads d whole
  EXPECT_EQ(Verify(bits.graph, Baseline(bits.graph)), "");
  // Both at relu', where x, b, gd and gc are there as well: the mask and d, or their bits.
  EXPECT_EQ(Simulate(graph, Baseline(graph))->live_peak, 4 * kMap + 2 * kMap);
  EXPECT_EQ(Simulate(bits.graph, Baseline(bits.graph))->live_peak, 4 * kMap + 2 * (kMap / 32));
}

TEST(BinariseTest, WhatIsLeftAlone) {
  const auto encoded = [](const Graph& graph) {
    EXPECT_TRUE(Check(graph).ok()) << Check(graph);
    return Binarise(graph, ValuesOf(graph)).encoded;
  };
  Graph whole = Layers();
  whole.operators[6].reads.push_back(5);  // pool' wants d whole
  EXPECT_EQ(encoded(whole), 1);
  Graph kept = Layers();
  kept.storages[5].kept = true;
  EXPECT_EQ(encoded(kept), 1);
  Graph changed = Layers();
  changed.operators[4].reads = {};
  changed.operators[4].updates = {5};
  EXPECT_EQ(encoded(changed), 1);
  Graph none = Layers();
  for (Operator& op : none.operators) op.masks.clear();
  EXPECT_EQ(encoded(none), 0);
  EXPECT_EQ(encoded(Layers(1)), 0);  // a byte stays a byte
  EXPECT_EQ(encoded(Layers(2)), 2);
}

TEST(BinariseTest, TheProgramLetsGoOfTheBitsWhereItLetGoOfTheWhole) {
  Graph graph = Layers();
  const std::vector<std::vector<OperatorId>> uses = UsesOf(graph);
  for (const auto& of : uses) graph.released_after.push_back(of.back());
  graph.released_after.back() = kNever;
  ASSERT_TRUE(Check(graph).ok()) << Check(graph);
  const Binarised bits = Binarise(graph, ValuesOf(graph));
  ASSERT_TRUE(Check(bits.graph).ok()) << Check(bits.graph);
  EXPECT_EQ(bits.graph.released_after[5], 6);    // d: after pool
  EXPECT_EQ(bits.graph.released_after[3], 2);    // mask: after it is encoded
  EXPECT_EQ(bits.graph.released_after[13], 11);  // its bits: after dropout'
  EXPECT_EQ(bits.graph.released_after[14], 9);   // those of d: after relu'
  EXPECT_EQ(Verify(bits.graph, Baseline(bits.graph, Release::kAsTheProgram)), "");
}

// Drawn graphs whose backward operators need bits here and there: plans verify and never take more than without.
TEST(BinariseTest, NeverMoreMemoryThanWithout) {
  std::mt19937_64 random(23);
  int taken = 0;
  for (int i = 0; i < 1500; ++i) {
    Graph graph = RandomGraph(random, 4 + i % 40);
    for (Operator& op : graph.operators) {
      if (op.phase == Phase::kForward && random() % 4 > 0) continue;
      for (StorageId id : op.reads) {
        if (random() % 4 > 0) op.masks.push_back(id);
      }
    }
    if (!Check(graph).ok()) continue;
    const Values values = ValuesOf(graph);
    const Binarised bits = Binarise(graph, values);
    ASSERT_TRUE(Check(bits.graph).ok()) << Check(bits.graph);
    ASSERT_EQ(bits.graph.operators.size(), bits.from.size());
    ASSERT_EQ(Verify(bits.graph, Baseline(bits.graph)), "") << i;
    const BinarisedPlan plan = PlanByEchoWithBits(graph);
    const BuiltSchedule rebuilt =
        BuildSchedule(plan.binarised.graph, plan.values, plan.plan.ways, {}, &plan.plan.again);
    ASSERT_EQ(Verify(plan.binarised.graph, rebuilt.schedule), "") << i;
    EXPECT_LE(plan.plan.outcome.live_peak, PlanByEcho(graph, values).outcome.live_peak);
    taken += plan.binarised.encoded > 0 ? 1 : 0;
  }
  EXPECT_GT(taken, 20);
}

}  // namespace
}  // namespace hotpack::remat
