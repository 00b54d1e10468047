#include "remat/chen/recursion.h"

#include <algorithm>

namespace hotpack::remat {
namespace {

class Recursion {
 public:
  Recursion(const Graph& graph, const std::vector<Cut>& cuts, int k, int levels) : k_(k), levels_(levels), cuts_(cuts) {
    counts_.resize(graph.operators.size());
    Bytes sum = 0;
    for (size_t i = 0; i < graph.operators.size() && graph.operators[i].phase == Phase::kForward; ++i) {
      for (StorageId id : graph.operators[i].writes) sum += graph.storages[static_cast<size_t>(id)].bytes;
      sums_.push_back(sum);
    }
  }

  std::vector<int32_t> Run() {
    if (!sums_.empty()) Divide(0, static_cast<OperatorId>(sums_.size()) - 1, 0);
    return std::move(counts_);
  }

 private:
  // Sets the counts of the operators in [begin, end). The count of `end` is already set.
  void Divide(OperatorId begin, OperatorId end, int level) {
    for (OperatorId op = begin; op < end; ++op) counts_[static_cast<size_t>(op)] = level;
    if (level == levels_) return;
    const auto lies_before = [](const Cut& cut, OperatorId op) { return cut.after < op; };
    auto first = std::lower_bound(cuts_.begin(), cuts_.end(), begin, lies_before);
    const auto last = std::lower_bound(cuts_.begin(), cuts_.end(), end, lies_before);
    if (first == last) return;
    const Bytes before = begin == 0 ? 0 : sums_[static_cast<size_t>(begin) - 1];
    const Bytes total = sums_[static_cast<size_t>(end)] - before;
    OperatorId part = begin;
    std::vector<OperatorId> kept;
    for (int number = 1; number <= k_ && first != last; ++number) {
      const Bytes wanted = before + static_cast<Bytes>(static_cast<double>(total) * number / (k_ + 1));
      const auto at = Nearest(first, last, wanted);
      Divide(part, at->after, level + 1);
      kept.insert(kept.end(), at->makers.begin(), at->makers.end());
      kept.push_back(at->after);
      part = at->after + 1;
      first = at + 1;
    }
    Divide(part, end, level + 1);
    for (OperatorId maker : kept)
      counts_[static_cast<size_t>(maker)] = std::min(counts_[static_cast<size_t>(maker)], level);
  }

  using Place = std::vector<Cut>::const_iterator;
  Bytes SumAt(const Cut& cut) const { return sums_[static_cast<size_t>(cut.after)]; }
  Place Nearest(Place first, Place last, Bytes wanted) const {
    const Place at = std::partition_point(first, last, [&](const Cut& cut) { return SumAt(cut) < wanted; });
    const bool earlier = at != first && (at == last || wanted - SumAt(*(at - 1)) <= SumAt(*at) - wanted);
    return earlier ? at - 1 : at;
  }

  const int k_, levels_;
  std::vector<int32_t> counts_;
  const std::vector<Cut>& cuts_;
  std::vector<Bytes> sums_;  // bytes of results up to each operator of the forward pass
};

}  // namespace

std::vector<int32_t> RecursiveCounts(const Graph& graph, const std::vector<Cut>& cuts, int k, int levels) {
  return Recursion(graph, cuts, k, levels).Run();
}

std::vector<int32_t> RecursivePlan(const Graph& graph, const Values& values, int k, int levels) {
  return RecursiveCounts(graph, CutsAt(CandidatesOf(graph, values)), k, levels);
}

}  // namespace hotpack::remat
