#include "remat/chen/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "remat/core/simulator.h"
#include "tests/remat/small_graphs.h"

namespace hotpack::remat {
namespace {

// Figure 2's kind of graph: g cannot work on b, which h reads too; h can, as b's last use.
Graph Figure2() {
  Graph graph;
  for (const char* name : {"x", "a", "b", "c", "d"}) {
    graph.storages.emplace_back().name = name;
    graph.storages.back().bytes = 100;
  }
  graph.storages[0].given = true;
  graph.storages[4].kept = true;
  const auto add = [&](const char* name, std::vector<StorageId> reads, StorageId made) {
    Operator& op = graph.operators.emplace_back();
    op.name = name;
    op.reads = std::move(reads);
    op.writes = {made};
    for (StorageId read : op.reads) {
      if (read != 0) op.in_place.push_back({read, made});
    }
  };
  add("e", {0}, 1);
  add("f", {1}, 2);
  add("g", {2}, 3);
  add("h", {2, 3}, 4);
  return graph;
}

TEST(AllocationTest, InPlaceOnlyWhereItIsTheLastUse) {
  const Graph graph = Figure2();
  const Allocation none = Allocate(graph, Sharing::kNone);
  EXPECT_EQ(none.bytes, 400);
  EXPECT_EQ(none.tag_of, (std::vector<int32_t>{-1, 0, 1, 2, 3}));
  const Allocation in_place = Allocate(graph, Sharing::kInPlace);
  EXPECT_EQ(in_place.bytes, 200);
  EXPECT_EQ(in_place.tag_of, (std::vector<int32_t>{-1, 0, 0, 1, 0})) << "f on a, not g on b, h on b";
}

TEST(AllocationTest, TagsAreTakenAgain) {
  Graph graph = Figure2();
  for (Operator& op : graph.operators) op.in_place.clear();
  EXPECT_EQ(Allocate(graph, Sharing::kInPlace).bytes, 400);
  const Allocation shared = Allocate(graph, Sharing::kAll);
  EXPECT_EQ(shared.bytes, 300);  // b and c are there for h
  EXPECT_EQ(shared.tag_of, (std::vector<int32_t>{-1, 0, 1, 0, 2}));
  graph.storages[1].kind = StorageKind::kWeight;
  EXPECT_EQ(Allocate(graph, Sharing::kAll).tag_of[1], -1);
}

// A chain: forward n + 1 results, backward two gradients at once, or one where gradients are made in place.
TEST(AllocationTest, Chain) {
  Graph graph = Chain(10, 100);
  EXPECT_EQ(Allocate(graph, Sharing::kNone).bytes, 2100);  // x1 to x10, g0 to g10
  EXPECT_EQ(Allocate(graph, Sharing::kAll).bytes, 1100);   // x10 is through when g9 is made
  for (Operator& op : graph.operators) {
    if (op.name[0] == 'b') op.in_place = {{op.reads[1], op.writes[0]}};
  }
  EXPECT_EQ(Allocate(graph, Sharing::kInPlace).bytes, 1100);
  EXPECT_EQ(Allocate(graph, Sharing::kAll).bytes, 1100);
}

// A tag that is too small grows, if that is less in all than one more.
TEST(AllocationTest, TagsGrow) {
  Graph graph = Chain(4, 100);
  graph.operators.resize(4);
  graph.storages.resize(5);
  graph.storages[4].kept = true;
  graph.storages[3].bytes = 150;
  const Allocation shared = Allocate(graph, Sharing::kAll);  // x1 | x1 x2 | x2 x3 | x3 x4
  EXPECT_EQ(shared.tag_of, (std::vector<int32_t>{-1, 0, 1, 0, 1}));
  EXPECT_EQ(shared.tags, (std::vector<Bytes>{150, 100}));
  graph.storages[3].bytes = 10'000;  // a result more than 16 times as large has its own tag
  EXPECT_EQ(Allocate(graph, Sharing::kAll).bytes, 10'200);
}

// Checks at every operator that its operands and results have separate memory.
void ExpectApart(const Graph& graph, const Allocation& allocation) {
  std::map<int32_t, StorageId> owner;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    const auto tag = [&](StorageId id) { return allocation.tag_of[static_cast<size_t>(id)]; };
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) {
        if (tag(id) < 0) continue;
        ASSERT_EQ(owner[tag(id)], id) << op.name << " finds other contents in "
                                      << graph.storages[static_cast<size_t>(id)].name;
      }
    }
    std::map<int32_t, StorageId> made;
    for (StorageId id : op.writes) {
      if (tag(id) < 0) continue;
      ASSERT_GE(allocation.tags[static_cast<size_t>(tag(id))], graph.storages[static_cast<size_t>(id)].bytes);
      ASSERT_TRUE(made.emplace(tag(id), id).second) << op.name;
      for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
        for (StorageId read : *used) {
          const bool in_place = std::any_of(op.in_place.begin(), op.in_place.end(),
                                            [&](const InPlace& pair) { return pair.read == read && pair.made == id; });
          ASSERT_TRUE(tag(read) != tag(id) || in_place) << op.name;
        }
      }
      owner[tag(id)] = id;
    }
  }
  for (size_t id = 0; id < graph.storages.size(); ++id) {
    if (!graph.storages[id].kept || allocation.tag_of[id] < 0) continue;
    ASSERT_EQ(owner[allocation.tag_of[id]], static_cast<StorageId>(id));
  }
}

TEST(AllocationTest, NothingIsOverwrittenThatIsReadLater) {
  std::mt19937_64 random(7);
  int64_t in_place = 0, shared = 0;
  for (int i = 0; i < 5000; ++i) {
    const Graph graph = RandomGraph(random, 2 + i % 40);
    if (!Check(graph).ok()) continue;
    const Allocation each[] = {Allocate(graph, Sharing::kNone), Allocate(graph, Sharing::kInPlace),
                               Allocate(graph, Sharing::kAll)};
    for (const Allocation& allocation : each) ExpectApart(graph, allocation);
    if (HasFatalFailure()) return;
    EXPECT_GE(each[0].bytes, each[1].bytes);
    EXPECT_GE(each[1].bytes, each[2].bytes);
    in_place += each[0].bytes > each[1].bytes ? 1 : 0;
    shared += each[1].bytes > each[2].bytes ? 1 : 0;
  }
  EXPECT_GT(in_place, 500);
  EXPECT_GT(shared, 500);
}

}  // namespace
}  // namespace hotpack::remat
