#include "runtime/base/node_pool.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/node_reserve.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

TEST(NodePool, NodesOfAllSizesAreApartAndAligned) {
  std::mt19937_64 random(TestSeed());
  NodePool pool;
  struct Node {
    unsigned char* memory;
    size_t bytes, alignment;
    unsigned char mark;
  };
  std::vector<Node> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      Node node{nullptr, 1 + random() % 400, size_t{1} << random() % 7, static_cast<unsigned char>(i)};
      node.memory = static_cast<unsigned char*>(pool.allocate(node.bytes, node.alignment));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(node.memory) % node.alignment, 0u);
      std::memset(node.memory, node.mark, node.bytes);
      live.push_back(node);
      continue;
    }
    std::swap(live[random() % live.size()], live.back());
    const Node& node = live.back();
    for (size_t k = 0; k < node.bytes; ++k) ASSERT_EQ(node.memory[k], node.mark);
    pool.deallocate(node.memory, node.bytes, node.alignment);
    live.pop_back();
  }
  for (const Node& node : live) pool.deallocate(node.memory, node.bytes, node.alignment);
}

TEST(NodePool, WhatIsReservedIsThere) {
  NodePool pool;
  constexpr size_t kNode = 4 * sizeof(void*) + 2 * sizeof(uint64_t);
  ReserveNodes(&pool, kNode, 1000);
  std::set<void*> reserved;
  for (int i = 0; i < 1000; ++i) reserved.insert(pool.allocate(kNode, 16));
  for (void* node : reserved) pool.deallocate(node, kNode, 16);
  std::pmr::map<uint64_t, uint64_t> map(&pool);  // its nodes are of that size
  for (uint64_t i = 0; i < 1000; ++i) {
    map.emplace(i, i);
    EXPECT_LE(reinterpret_cast<void*>(*reserved.begin()), reinterpret_cast<const void*>(&map.find(i)->first));
    EXPECT_GE(reinterpret_cast<char*>(*reserved.rbegin()) + kNode, reinterpret_cast<const char*>(&map.find(i)->first));
  }
}

}  // namespace
}  // namespace hotpack
