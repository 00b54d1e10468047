// Minimum cuts of networks whose capacities are sums and products of 64-bit numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hotpack::remat {

__extension__ typedef __int128 Wide;
inline constexpr Wide kUncut = Wide{1} << 120;  // a minimum cut avoids arcs of this capacity if it can

// A flow network. Its nodes are 0 (the source), 1 (the sink) and those that AddNode() returned. Not thread-safe.
class FlowNetwork {
 public:
  static constexpr int32_t kSource = 0, kSink = 1;

  int32_t AddNode();
  void AddArc(int32_t from, int32_t to, Wide capacity);  // `capacity` ≥ 0; 0 adds no arc

  // Computes a maximum flow by Dinic's algorithm (blocking flows over shortest paths), and with it a minimum cut. Call
  // it once. O(nodes² · arcs) in the worst case, close to linear on graphs of training steps.
  void Cut();
  bool OnSourceSide(int32_t node) const { return level_[static_cast<size_t>(node)] >= 0; }  // after Cut()

 private:
  struct Arc {
    int32_t to;
    Wide left;  // capacity less flow; the reverse arc's index differs in the last bit
  };

  bool Levels();
  bool Augment();  // pushes flow along one path of the level graph

  std::vector<Arc> arcs_;
  std::vector<std::vector<int32_t>> out_{2};  // by node
  std::vector<int32_t> level_;
  std::vector<size_t> next_;
};

}  // namespace hotpack::remat
