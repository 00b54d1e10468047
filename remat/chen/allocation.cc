#include "remat/chen/allocation.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hotpack::remat {
namespace {

constexpr Bytes kMatches[] = {1, 2, 4, 8, 16};

class Allocator {
 public:
  Allocator(const Graph& graph, Sharing sharing, Bytes match)
      : graph_(graph), sharing_(sharing), match_(match), counters_(graph.storages.size()) {
    result_.tag_of.resize(graph.storages.size(), -1);
    for (const Operator& op : graph.operators) {
      for (const std::vector<StorageId>* used : {&op.reads, &op.writes, &op.updates}) {
        for (StorageId id : *used) ++Counter(id);
      }
    }
    for (size_t id = 0; id < counters_.size(); ++id) {
      if (graph.storages[id].kept) ++counters_[id];  // read after the step
    }
  }

  Allocation Run() {
    for (const Operator& op : graph_.operators) {
      if (sharing_ != Sharing::kNone) WorkInPlace(op);
      for (StorageId id : op.writes) {
        if (Counted(id) && Tag(id) < 0) Tag(id) = TakeTag(Size(id));
      }
      for (const std::vector<StorageId>* used : {&op.reads, &op.writes, &op.updates}) {
        for (StorageId id : *used) {
          if (--Counter(id) == 0) Recycle(id);
        }
      }
    }
    for (Bytes tag : result_.tags) result_.bytes += tag;
    return std::move(result_);
  }

 private:
  int32_t& Counter(StorageId id) { return counters_[static_cast<size_t>(id)]; }
  int32_t& Tag(StorageId id) { return result_.tag_of[static_cast<size_t>(id)]; }
  Bytes Size(StorageId id) const { return graph_.storages[static_cast<size_t>(id)].bytes; }
  bool Counted(StorageId id) const {
    const Storage& storage = graph_.storages[static_cast<size_t>(id)];
    return storage.kind == StorageKind::kFeatureMap && !storage.given;
  }

  // "Inplace operation can be carried out when the current operation is the only one left (input of counter equals 1)."
  // Sizes are equal, because the rest of a larger tag would be held as long as the result.
  void WorkInPlace(const Operator& op) {
    for (const auto& [read, made] : op.in_place) {
      if (!Counted(read) || !Counted(made) || Size(read) != Size(made)) continue;
      if (Counter(read) != 1 || Tag(read) < 0 || Tag(made) >= 0) continue;
      if (!Owns(read)) continue;  // another result of this operator has taken it
      Tag(made) = Tag(read);
      taken_by_[Tag(made)] = made;
    }
  }

  // Whether the tag belongs to this storage: the last one that took it in place, or else its first owner.
  bool Owns(StorageId id) const {
    const auto owner = taken_by_.find(result_.tag_of[static_cast<size_t>(id)]);
    return owner == taken_by_.end() || owner->second == id;
  }

  void Recycle(StorageId id) {
    if (sharing_ != Sharing::kAll || !Counted(id) || Tag(id) < 0 || !Owns(id)) return;
    taken_by_.erase(Tag(id));
    free_[result_.tags[static_cast<size_t>(Tag(id))]].push_back(Tag(id));
  }

  int32_t TakeTag(Bytes bytes) {
    auto found = free_.lower_bound(bytes);
    if (found != free_.end() && found->first > bytes * match_) found = free_.end();
    if (found == free_.end()) {
      found = free_.lower_bound(bytes);
      found = found == free_.begin() || std::prev(found)->first * match_ < bytes ? free_.end() : std::prev(found);
    }
    if (found == free_.end()) {
      result_.tags.push_back(bytes);
      return static_cast<int32_t>(result_.tags.size()) - 1;
    }
    const int32_t tag = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) free_.erase(found);
    Bytes& size = result_.tags[static_cast<size_t>(tag)];
    size = std::max(size, bytes);
    return tag;
  }

  const Graph& graph_;
  const Sharing sharing_;
  const Bytes match_;              // largest ratio between the sizes of a tag and a result
  std::vector<int32_t> counters_;  // by storage: operators that will still touch it
  std::map<Bytes, std::vector<int32_t>> free_;
  std::map<int32_t, StorageId> taken_by_;  // by tag
  Allocation result_;
};

}  // namespace

Allocation Allocate(const Graph& graph, Sharing sharing) {
  Allocation least;
  least.bytes = INT64_MAX;
  for (Bytes match : kMatches) {
    Allocation allocation = Allocator(graph, sharing, match).Run();
    if (allocation.bytes < least.bytes) least = std::move(allocation);
    if (sharing != Sharing::kAll) break;  // no tag is reused
  }
  return least;
}

}  // namespace hotpack::remat
