#include "bench/heuristics.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "bench/conflicts.h"
#include "bench/hill_climb.h"
#include "packer/first_fit.h"
#include "packer/pack.h"
#include "packer/timeline.h"
#include "tools/compare/offline.h"
#include "tools/compare/smallest_gap.h"

namespace hotpack::bench {
namespace {

Placement Ours(const Instance& instance, Algorithm algorithm) {
  constexpr int64_t kNoLimit = 3'600'000'000'000;
  const int64_t limit = algorithm == Algorithm::kBestFit
                            ? kNoLimit
                            : std::max(kSolveNs, kSolveNsABlock * static_cast<int64_t>(instance.blocks.size()));
  return Pack(instance, {.algorithm = algorithm, .time_limit_ns = limit}).placement;
}
Placement BestFit(const Instance& instance) { return Ours(instance, Algorithm::kBestFit); }
Placement Auto(const Instance& instance) { return Ours(instance, Algorithm::kAuto); }
Placement Exact(const Instance& instance) { return Ours(instance, Algorithm::kExact); }

// Returns the blocks by first use, as a program requests them: the order of an allocator without foresight.
std::vector<int32_t> InOrderOfUse(const Instance& instance) {
  std::vector<int32_t> order(instance.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&instance](int32_t a, int32_t b) {
    return instance.blocks[static_cast<size_t>(a)].residency.front().begin <
           instance.blocks[static_cast<size_t>(b)].residency.front().begin;
  });
  return order;
}

// First fit: each request at the lowest free place (Knuth, The Art of Computer Programming 1, §2.5).
Placement FirstFitInOrder(const Instance& instance) {
  const Timeline timeline = MakeTimeline(instance);
  return PlaceLowest(timeline, InOrderOfUse(instance));
}

// ONNX Runtime's memory pattern planner (onnxruntime/core/framework/mem_pattern_planner.h): the requests of one
// iteration in their order. Each is placed in the smallest gap between live blocks that holds it, the lowest of equal
// ones, else above the topmost. Earlier blocks that are not live any more conflict with no later one, so placing
// offline in that order gives the same.
Placement OnnxRuntime(const Instance& instance) { return PlaceInSmallestGaps(instance, InOrderOfUse(instance)); }

// TVM's unified static memory planner (src/tir/usmp/algo/greedy.cc): blocks in a fixed order, each directly above the
// highest of those placed before that it conflicts with. It ignores gaps below.
Placement AboveWhatItMeets(const Instance& instance, const std::vector<int32_t>& order) {
  const Timeline timeline = MakeTimeline(instance);
  TopTree tops(timeline.slots);
  Placement placement;
  placement.offsets.resize(instance.blocks.size());
  for (int32_t block : order) {
    const auto b = static_cast<size_t>(block);
    Offset top = 0;
    tops.ForEachSpan(timeline.arcs_of(block),
                     [&](int32_t begin, int32_t end) { top = std::max(top, tops.Highest(begin, end)); });
    const Offset offset = RoundUp(top, timeline.alignments[b]);
    const Offset new_top = offset + timeline.sizes[b];
    tops.ForEachSpan(timeline.arcs_of(block), [&](int32_t begin, int32_t end) { tops.Raise(begin, end, new_top); });
    placement.offsets[b] = offset;
    placement.height = std::max(placement.height, new_top);
  }
  return placement;
}

// greedy_by_size: the largest first. Ties: the one with most conflicts.
Placement TvmBySize(const Instance& instance) { return AboveWhatItMeets(instance, OrderBySize(instance)); }

// greedy_by_conflicts: the one with most conflicts first. Ties: the largest.
Placement TvmByConflicts(const Instance& instance) {
  const std::vector<int64_t> conflicts = CountConflicts(instance);
  std::vector<int32_t> order = InOrderOfUse(instance);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return std::make_tuple(-conflicts[i], -instance.blocks[i].size, a) <
           std::make_tuple(-conflicts[j], -instance.blocks[j].size, b);
  });
  return AboveWhatItMeets(instance, order);
}

// PlaceInSmallestGaps lists each block's conflicts, and first-fit the blocks below: quadratic where outputs nest.
constexpr int64_t kMany = 10'000'000, kSome = 10'000, kFew = 1'000;
constexpr Heuristic kHeuristics[] = {
    {"hotpack best-fit", BestFit, kMany},
    {"hotpack auto", Auto, kMany},
    {"hotpack exact", Exact, kSome},
    {"first-fit", FirstFitInOrder, kSome},
    {"ONNX Runtime", OnnxRuntime, kSome},
    {"TFLite", PackAsTflite, kSome},
    {"XLA", PackAsXla, kSome},
    {"TVM greedy by size", TvmBySize, kMany},
    {"TVM greedy by conflicts", TvmByConflicts, kMany},
    {"TVM hill climb", PackByHillClimb, kFew},
};

}  // namespace

std::span<const Heuristic> Heuristics() { return kHeuristics; }

}  // namespace hotpack::bench
