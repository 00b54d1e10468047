#include "planner/chen/recursion.h"

#include <algorithm>

#include "planner/chen.h"

namespace hotpack::planner {
namespace {

class Recursion {
 public:
  Recursion(const Graph& graph, const std::vector<bool>& candidates, int k, int levels) : k_(k), levels_(levels) {
    counts_.resize(graph.operators.size());
    Bytes sum = 0;
    for (size_t i = 0; i < graph.operators.size() && graph.operators[i].phase == Phase::kForward; ++i) {
      for (StorageId id : graph.operators[i].writes) sum += graph.storages[static_cast<size_t>(id)].bytes;
      sums_.push_back(sum);
      if (candidates[i]) candidates_.push_back(static_cast<OperatorId>(i));
    }
  }

  std::vector<int32_t> Run() {
    if (!sums_.empty()) Cut(0, static_cast<OperatorId>(sums_.size()) - 1, 0);
    return std::move(counts_);
  }

 private:
  // The operators from `begin` on before `end`, whose own count is set.
  void Cut(OperatorId begin, OperatorId end, int level) {
    std::fill(counts_.begin() + begin, counts_.begin() + end, level);
    if (level == levels_) return;
    auto first = std::lower_bound(candidates_.begin(), candidates_.end(), begin);
    const auto last = std::lower_bound(candidates_.begin(), candidates_.end(), end);
    if (first == last) return;
    const Bytes before = begin == 0 ? 0 : sums_[static_cast<size_t>(begin) - 1];
    const Bytes total = sums_[static_cast<size_t>(end)] - before;
    OperatorId part = begin;
    for (int cut = 1; cut <= k_ && first != last; ++cut) {
      const Bytes wanted = before + static_cast<Bytes>(static_cast<double>(total) * cut / (k_ + 1));
      auto at = std::partition_point(first, last, [&](OperatorId op) { return sums_[static_cast<size_t>(op)] < wanted; });
      const bool earlier_is_nearer = at != first && (at == last || wanted - sums_[static_cast<size_t>(*(at - 1))] <= sums_[static_cast<size_t>(*at)] - wanted);
      if (earlier_is_nearer) --at;
      counts_[static_cast<size_t>(*at)] = level;
      Cut(part, *at, level + 1);
      part = *at + 1;
      first = at + 1;
    }
    Cut(part, end, level + 1);
  }

  const int k_, levels_;
  std::vector<int32_t> counts_;
  std::vector<OperatorId> candidates_;
  std::vector<Bytes> sums_;  // of results, up to each operator of the forward pass
};

}  // namespace

std::vector<int32_t> RecursiveCounts(const Graph& graph, const std::vector<bool>& candidates, int k, int levels) {
  return Recursion(graph, candidates, k, levels).Run();
}

std::vector<int32_t> RecursivePlan(const Graph& graph, const Values& values, int k, int levels) {
  std::vector<bool> candidates = SplittingPoints(graph, values);
  if (std::count(candidates.begin(), candidates.end(), true) < 2) candidates.assign(candidates.size(), true);
  return RecursiveCounts(graph, candidates, k, levels);
}

}  // namespace hotpack::planner
