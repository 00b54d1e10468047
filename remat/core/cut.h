// Least cuts of networks, with capacities that are sums and products of 64-bit numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hotpack::remat {

__extension__ typedef __int128 Wide;
inline constexpr Wide kUncut = Wide{1} << 120;  // no least cut goes through an arc of it, unless all do

// Nodes 0 (the source), 1 (the sink) and those that AddNode() has given. Not thread-safe.
class FlowNetwork {
 public:
  static constexpr int32_t kSource = 0, kSink = 1;

  int32_t AddNode();
  void AddArc(int32_t from, int32_t to, Wide capacity);  // ≥ 0; an arc of none is left out

  // Finds the largest flow by Dinic's algorithm (blocking flows over shortest paths), and with it a least cut. Once.
  // O(nodes² · arcs) at worst; on graphs of steps it is close to linear.
  void Cut();
  bool OnSourceSide(int32_t node) const { return level_[static_cast<size_t>(node)] >= 0; }  // after Cut()

 private:
  struct Arc {
    int32_t to;
    Wide left;  // capacity less flow; the arc back is the one with the last bit of its index changed
  };

  bool Levels();
  bool Augment();  // one path from the source to the sink along the levels

  std::vector<Arc> arcs_;
  std::vector<std::vector<int32_t>> out_{2};  // by node
  std::vector<int32_t> level_;
  std::vector<size_t> next_;
};

}  // namespace hotpack::remat
