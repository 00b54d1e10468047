#include "runtime/node_pool.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/node_reserve.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

// Every node is the caller's alone: filled with its own number, and found so at the end.
TEST(NodePool, NodesDoNotOverlap) {
  struct Node {
    unsigned char* memory;
    size_t bytes;
    unsigned char mark;
  };
  NodePool pool;
  std::mt19937_64 random(TestSeed());
  std::vector<Node> nodes;
  for (int i = 0; i < 50000; ++i) {
    if (nodes.size() > 500 || (random() % 3 == 0 && !nodes.empty())) {
      std::swap(nodes[random() % nodes.size()], nodes.back());
      const Node node = nodes.back();
      nodes.pop_back();
      for (size_t k = 0; k < node.bytes; ++k) ASSERT_EQ(node.memory[k], node.mark);
      pool.deallocate(node.memory, node.bytes, 16);
      continue;
    }
    const size_t bytes = 1 + random() % 400;  // larger than a class too
    const auto mark = static_cast<unsigned char>(random());
    auto* memory = static_cast<unsigned char*>(pool.allocate(bytes, 16));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 16, 0u);
    std::memset(memory, mark, bytes);
    nodes.push_back({memory, bytes, mark});
  }
  for (const Node& node : nodes) pool.deallocate(node.memory, node.bytes, 16);
}

TEST(NodePool, WhatWasReservedIsGivenOutAgain) {
  NodePool pool;
  ReserveNodes(&pool, 48, 1000);
  void* first = pool.allocate(48, 8);
  pool.deallocate(first, 48, 8);
  EXPECT_EQ(pool.allocate(40, 8), first) << "of the same class, the last one given back";
  pool.deallocate(first, 40, 8);
  std::pmr::map<int, int> map(&pool);
  for (int i = 0; i < 1000; ++i) map[i] = i;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(map[i], i);
}

}  // namespace
}  // namespace hotpack
