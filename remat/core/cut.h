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

  void Clear();  // as a new one, in the memory of the old
  int32_t AddNode();
  void AddArc(int32_t from, int32_t to, Wide capacity);  // `capacity` ≥ 0; 0 adds no arc

  // Computes a maximum flow by Dinic's algorithm (blocking flows over shortest paths), and with it a minimum cut. Call
  // it once. O(nodes² · arcs) in the worst case, close to linear on graphs of training steps.
  void Cut();
  bool OnSourceSide(int32_t node) const { return level_[static_cast<size_t>(node)] >= 0; }  // after Cut()

 private:
  static constexpr int32_t kNoArc = -1;
  struct Arc {
    int32_t to;
    int32_t next;  // the next one from the same node, or kNoArc
    Wide left;     // capacity less flow; the reverse arc's index differs in the last bit
  };
  // What leaves a node, in the order of AddArc().
  struct Out {
    int32_t first = kNoArc, last = kNoArc;
  };

  void Append(int32_t from, int32_t to, Wide capacity);
  bool Levels();
  bool Augment();  // pushes flow along one path of the level graph

  std::vector<Arc> arcs_;
  std::vector<Out> out_{2};  // by node
  std::vector<int32_t> level_;
  std::vector<int32_t> next_;            // by node: the arc that is tried next
  std::vector<int32_t> reached_, path_;  // of Levels() and Augment(), kept for their memory
};

}  // namespace hotpack::remat
