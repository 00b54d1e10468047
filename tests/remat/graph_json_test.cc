#include "remat/files/graph_json.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

constexpr const char* kDocument = R"({"format": "hotpack-graph", "version": 1,
  "storages": [{"name": "x", "bytes": 4096, "given": true, "kind": "other"},)"
                                  R"( {"name": "w", "bytes": 8, "given": true, "kept": true, "kind": "weight"},
               {"name": "y", "bytes": 512}, {"name": "z", "bytes": 512, "kept": true}],
  "operators": [{"name": "conv", "cost_ns": 100, "reads": ["x", "w"], "writes": ["y"], "workspace": 77},
                {"name": "relu", "cost_ns": 5, "reads": ["y"], "writes": ["z"], "in_place": [["y", "z"]],)"
                                  R"( "masks": ["y"], "phase": "backward"},
                {"name": "sgd", "cost_ns": 1, "updates": ["w"], "phase": "update",)"
                                  R"( "collective": true, "random": true}]})";

TEST(GraphJsonTest, WhatADocumentSays) {
  const absl::StatusOr<Graph> graph = ParseGraphJson(kDocument, "g.json");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->operators.size(), 3u);
  EXPECT_EQ(graph->operators[0].reads, (std::vector<StorageId>{0, 1}));
  EXPECT_EQ(graph->operators[0].workspace, 77);
  EXPECT_EQ(graph->operators[1].in_place.size(), 1u);
  EXPECT_EQ(graph->operators[1].masks, (std::vector<StorageId>{2}));
  EXPECT_EQ(graph->operators[1].phase, Phase::kBackward);
  EXPECT_TRUE(graph->operators[2].once && graph->operators[2].random);
  EXPECT_EQ(graph->storages[1].kind, StorageKind::kWeight);
  EXPECT_TRUE(graph->storages[1].kept);
  EXPECT_EQ(graph->storages[3].bytes, 512);
}

TEST(GraphJsonTest, ThereAndBack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = RandomGraph(random, 1 + i % 30);
    if (!Check(graph).ok()) continue;
    const std::string text = FormatGraphJson(graph);
    const absl::StatusOr<Graph> read = ParseGraphJson(text, "text");
    ASSERT_TRUE(read.ok()) << read.status() << text;
    EXPECT_EQ(FormatGraphJson(*read), text);
  }
}

TEST(GraphJsonTest, OperatorsMayBeListedInAnyOrder) {
  const std::string turned = R"({"format": "hotpack-graph", "version": 1,
    "storages": [{"name": "x", "bytes": 1, "given": true}, {"name": "y", "bytes": 1}, {"name": "z", "bytes": 1}],
    "operators": [{"name": "second", "cost_ns": 1, "reads": ["y"], "writes": ["z"]},)"
                             R"( {"name": "first", "cost_ns": 1, "reads": ["x"], "writes": ["y"]}]})";
  const absl::StatusOr<Graph> graph = ParseGraphJson(turned, "g");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->operators[0].name, "first");
}

// A step of PyTorch: x is used last by operator 0 and freed after operator 1.
constexpr const char* kRecorded = R"({"format": "hotpack-step", "version": 1, "torch": "2.15.0", "peak": {"bytes": 9},
  "storages": [{"name": "w", "bytes": 8, "kind": "parameter", "given": true, "kept": true, "released": null},
               {"name": "x", "bytes": 8, "kind": "temporary", "held": true, "born": 0, "released": 1, "line": "a.py:1"},
               {"name": "y", "bytes": 8, "kind": "saved", "saved": [{"by": 1}], "born": 1, "released": 2}],
  "operators": [{"name": "aten::mm", "cost_ns": 1, "reads": ["w"], "writes": ["x"], "module": "fc", "line": "a.py:1"},
                {"name": "aten::relu", "cost_ns": 1, "reads": ["w"], "writes": ["y"], "line": "a.py:2", "call": {}},
                {"name": "aten::add", "cost_ns": 1, "reads": ["y"], "updates": ["w"], "unrepeatable": true}],
  "steps": []})";

TEST(GraphJsonTest, ARecordedStep) {
  const absl::StatusOr<Graph> graph = ParseGraphJson(kRecorded, "step.json");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->operators.size(), 4u);
  EXPECT_EQ(graph->operators[0].name, "aten::mm (fc, a.py:1)");
  EXPECT_EQ(graph->operators[1].name, "aten::relu (a.py:2)");
  EXPECT_EQ(graph->operators[2].name, "release");
  EXPECT_EQ(graph->operators[2].reads, std::vector<StorageId>{1});
  EXPECT_EQ(graph->operators[2].cost, 0);
  EXPECT_TRUE(graph->operators[2].once && graph->operators[3].once);
  EXPECT_EQ(graph->released_after, (std::vector<OperatorId>{kNever, 2, 3}));
  EXPECT_FALSE(graph->storages[0].held || graph->storages[2].held);
  EXPECT_TRUE(graph->storages[1].held);
  EXPECT_EQ(graph->storages[0].kind, StorageKind::kWeight);
  EXPECT_EQ(graph->storages[2].kind, StorageKind::kFeatureMap);
}

TEST(GraphJsonTest, FaultsOfARecordedStep) {
  const auto fault = [](const char* text, const char* instead) {
    return std::string(ParseGraphJson(absl::StrReplaceAll(kRecorded, {{text, instead}}), "g").status().message());
  };
  EXPECT_EQ(fault("\"released\": 2", "\"released\": 3"),
            "g: storage 'y': released after operator 3, which is not there");
  EXPECT_EQ(fault("\"released\": 2", "\"released\": -2"), "g: y: released is no operator's number");
  EXPECT_EQ(fault("\"released\": 2", "\"released\": 99999999999"), "g: y: released is no operator's number");
  EXPECT_EQ(fault("\"released\": 2", "\"released\": 1"), "g: storage 'y' is released before its last use");
  EXPECT_EQ(fault("\"version\": 1", "\"version\": 2"), "g: not of format hotpack-step, version 1");
  EXPECT_EQ(fault("hotpack-step", "hotpack-graph"), "g: w: 'released' is not known");
}

// Two parameters, the update of both in one call, and a scalar that both parts read.
constexpr const char* kUpdate = R"({"format": "hotpack-step", "version": 1,
  "storages": [{"name": "a", "bytes": 8, "kind": "parameter", "given": true, "kept": true, "held": true},
               {"name": "b", "bytes": 8, "kind": "parameter", "given": true, "kept": true, "held": true},
               {"name": "a.grad", "bytes": 8, "kind": "gradient", "kept": true, "held": true},
               {"name": "b.grad", "bytes": 8, "kind": "gradient", "given": true, "kept": true, "held": true},
               {"name": "t", "bytes": 8, "kind": "temporary", "held": true, "released": 3},
               {"name": "u", "bytes": 8, "kind": "temporary", "held": true, "released": 3},
               {"name": "rate", "bytes": 4, "kind": "input"}],
  "operators": [{"name": "mm", "cost_ns": 5, "reads": ["a", "b"], "writes": ["a.grad", "b.grad"]},
                {"name": "input", "cost_ns": 0, "writes": ["rate"]},
                {"name": "add", "cost_ns": 2, "reads": ["a", "b", "a.grad", "b.grad"], "writes": ["t", "u"],
                 "call": {"args": [[{"t": 0}, {"t": 1}], [{"t": 2}, {"t": 3}]], "results": [[{"t": 4}, {"t": 5}]]}},
                {"name": "mul_", "cost_ns": 2, "reads": ["t", "u", "rate"], "updates": ["a", "b"],
                 "call": {"args": [[{"t": 0}, {"t": 1}], [{"t": 4}, {"t": 5}], {"t": 6}], "results": [null]}}],
  "tensors": [["a"], ["b"], ["a.grad"], ["b.grad"], ["t"], ["u"], ["rate"]],
  "optimizers": [{"class": "SGD", "operators": [1, 4], "whole": null, "slices": [
                   {"group": 0, "parameter": "a", "gradient": "a.grad", "state": []},
                   {"group": 0, "parameter": "b", "gradient": "b.grad", "state": []}]}]})";

TEST(GraphJsonTest, ThePartsOfAnUpdate) {
  const absl::StatusOr<Graph> graph = ParseGraphJson(kUpdate, "step.json");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->updates.size(), 1u);
  EXPECT_EQ(graph->updates[0].begin, 1);
  EXPECT_EQ(graph->updates[0].end, 4);
  EXPECT_EQ(graph->updates[0].parts, 2);
  EXPECT_EQ(graph->updates[0].part_of, (std::vector<int32_t>{0, 1, 0, 1, 0, 1, -1}));
  EXPECT_TRUE(graph->storages[0].movable && graph->storages[2].movable);
  EXPECT_FALSE(graph->storages[4].movable || graph->storages[6].movable);
  // What is held stays until it is overwritten.
  EXPECT_EQ(graph->operators[0].writes, std::vector<StorageId>{2});
  EXPECT_EQ(graph->operators[0].updates, std::vector<StorageId>{3});
}

TEST(GraphJsonTest, UpdatesThatStayWhole) {
  const auto updates = [](const char* text, const char* instead) {
    const std::string changed = absl::StrReplaceAll(kUpdate, {{text, instead}});
    EXPECT_NE(changed, kUpdate) << text;
    const absl::StatusOr<Graph> graph = ParseGraphJson(changed, "g");
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->updates.size() : 99;
  };
  EXPECT_EQ(updates("\"class\"", "\"Class\""), 1u);
  EXPECT_EQ(updates("\"whole\": null", "\"whole\": \"clips\""), 0u);
  EXPECT_EQ(updates("\"whole\": null", "\"hole\": null"), 0u);
  EXPECT_EQ(updates("[1, 4]", "[1, 9]"), 0u);
  EXPECT_EQ(updates("[1, 4]", "[3, 1]"), 0u);
  EXPECT_EQ(updates("[1, 4]", "7"), 0u);
  EXPECT_EQ(updates("\"call\": {\"args\": [[{\"t\": 0}, {\"t\": 1}], [{\"t\": 4}", "\"c\": {\"args\": [[{\"t\": 4}"),
            0u);
  EXPECT_EQ(updates("{\"t\": 5}], {\"t\": 6}]", "{\"t\": 4}], {\"t\": 6}]"), 0u);  // both parts read t
  EXPECT_EQ(updates("\"parameter\": \"b\"", "\"parameter\": \"c\""), 0u);
}

TEST(GraphJsonTest, FaultsAreOneLine) {
  const struct {
    const char* from;
    const char* to;
    const char* error;
  } cases[] = {
      {"{\"format\"", "{{", "g: no JSON"},
      {"hotpack-graph", "other", "g: not of format hotpack-graph, version 1"},
      {"\"version\": 1", "\"version\": 2", "g: not of format hotpack-graph, version 1"},
      {"\"bytes\": 4096, ", "", "g: x: no bytes"},
      {"\"bytes\": 4096", "\"bytes\": -1", "g: x: bytes is no whole number from 0 on"},
      {"\"bytes\": 4096", "\"bytes\": 1.5", "g: x: bytes is no whole number from 0 on"},
      {"\"bytes\": 4096", "\"bytes\": 18446744073709551615", "g: x: bytes is no whole number from 0 on"},
      {"\"cost_ns\": 100", "\"cost_ns\": -100", "g: conv: cost_ns is no whole number from 0 on"},
      {"\"cost_ns\": 100", "\"cost\": 100", "g: conv: no cost_ns"},
      {"\"workspace\"", "\"workspaec\"", "g: conv: 'workspaec' is not known"},
      {"\"kind\": \"other\"", "\"kind\": \"odd\"", "g: x: 'odd' is not known"},
      {"\"given\": true, \"kind\"", "\"given\": 1, \"kind\"", "g: x: given is neither true nor false"},
      {"\"reads\": [\"y\"]", "\"reads\": [\"q\"]", "g: relu: there is no storage \"q\""},
      {"\"reads\": [\"y\"]", "\"reads\": \"y\"", "g: relu: reads: no list"},
      {"{\"name\": \"y\"", "{\"name\": \"x\"", "g: storage 'x' is there twice"},
      {"\"reads\": [\"x\", \"w\"]", "\"reads\": [\"x\", \"z\"]",
       "g: a cycle: each of these operators needs the next, and the last the first: conv, relu"},
      {"\"masks\": [\"y\"]", "\"masks\": [\"z\"]", "g: operator 1 (relu): masks: not a storage that it reads"},
      {"\"given\": true, \"kind\": \"other\"", "\"kind\": \"other\"",
       "g: operator 0 (conv): uses 'x', which nothing has made"},
  };
  for (const auto& each : cases) {
    const std::string text = absl::StrReplaceAll(kDocument, {{each.from, each.to}});
    ASSERT_NE(text, kDocument) << each.from;
    EXPECT_EQ(ParseGraphJson(text, "g").status().message(), each.error);
  }
}

}  // namespace
}  // namespace hotpack::remat
