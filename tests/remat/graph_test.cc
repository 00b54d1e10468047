#include "remat/core/graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

TEST(GraphTest, AChainIsRight) {
  const Graph graph = Chain(3);
  EXPECT_TRUE(Check(graph).ok()) << Check(graph);
  EXPECT_EQ(TotalCost(graph), 70);
  // x1: made by f1, read by f2 and b2.
  EXPECT_EQ(UsesOf(graph)[1], (std::vector<OperatorId>{0, 1, 5}));
}

TEST(GraphTest, EachFaultIsNamed) {
  const struct {
    const char* what;
    std::function<void(Graph&)> break_it;
  } faults[] = {
      {"operator 1 (f2): there is no storage 99", [](Graph& graph) { graph.operators[1].reads = {99}; }},
      {"operator 1 (f2): there is no storage -1", [](Graph& graph) { graph.operators[1].writes = {-1}; }},
      {"operator 0 (f1): names 'x0' twice",
       [](Graph& graph) {
         graph.operators[0].reads = {0, 0};
       }},
      {"operator 0 (f1): names 'x1' twice", [](Graph& graph) { graph.operators[0].updates = {1}; }},
      {"operator 0 (f1): uses 'x2', which nothing has made", [](Graph& graph) { graph.operators[0].reads = {2}; }},
      {"operator 0 (f1): uses 'x0', which nothing has made", [](Graph& graph) { graph.storages[0].given = false; }},
      {"operator 2 (f3): a cost of -1 ns", [](Graph& graph) { graph.operators[2].cost = -1; }},
      {"operator 2 (f3): a workspace of -5 bytes", [](Graph& graph) { graph.operators[2].workspace = -5; }},
      {"storage 'x2': -7 bytes", [](Graph& graph) { graph.storages[2].bytes = -7; }},
      {"the storages add up to more than 2^62 bytes", [](Graph& graph) { graph.storages[2].bytes = int64_t{1} << 62; }},
      {"the costs add up to more than 2^62 ns", [](Graph& graph) { graph.operators[0].cost = int64_t{1} << 62; }},
      {"operator 0 (f1): in place: not a storage",
       [](Graph& graph) {
         graph.operators[0].in_place = {{1, 0}};
       }},
      {"operator 0 (f1): in place: 'x1' is larger than 'x0'",
       [](Graph& graph) {
         graph.storages[1].bytes = 101, graph.operators[0].in_place = {{0, 1}};
       }},
      {"storage 'more' is to be kept, and nothing makes it",
       [](Graph& graph) {
         graph.storages.push_back({"more", 1, StorageKind::kOther, false, true});
       }},
      {"released_after has not one entry a storage", [](Graph& graph) { graph.released_after = {kNever}; }},
      {"storage 'x1' is released before its last use",
       [](Graph& graph) { graph.released_after.assign(graph.storages.size(), kNever), graph.released_after[1] = 4; }},
      {"storage 'g0' is released before its last use",
       [](Graph& graph) {
         graph.released_after.assign(graph.storages.size(), kNever), graph.released_after.back() = 6;
       }},
  };
  for (const auto& fault : faults) {
    Graph graph = Chain(3);
    fault.break_it(graph);
    EXPECT_NE(std::string(Check(graph).message()).find(fault.what), std::string::npos) << fault.what << "\n"
                                                                                       << Check(graph);
  }
}

TEST(GraphTest, DrawnGraphsAreRight) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = RandomGraph(random, 1 + i % 40);
    EXPECT_TRUE(Check(graph).ok() || std::string(Check(graph).message()).find("to be kept") != std::string::npos)
        << Check(graph);
  }
}

}  // namespace
}  // namespace hotpack::remat
