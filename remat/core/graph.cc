#include "remat/core/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr int64_t kLargestSum = int64_t{1} << 62;

absl::Status Fault(const Graph& graph, size_t op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("operator ", op, " (", graph.operators[op].name, "): ", what));
}

std::string Quoted(const Graph& graph, StorageId id) {
  return absl::StrCat("'", graph.storages[static_cast<size_t>(id)].name, "'");
}

template <typename Visitor>
void ForEachUse(const Operator& op, Visitor visit) {
  for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
    for (StorageId id : *list) visit(id);
  }
}

bool Contains(const std::vector<StorageId>& list, StorageId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

class Checker {
 public:
  explicit Checker(const Graph& graph)
      : graph_(graph),
        made_(graph.storages.size()),
        seen_(graph.storages.size(), -1),
        last_use_(graph.storages.size(), -1) {}

  absl::Status Run() {
    if (absl::Status status = Storages(); !status.ok()) return status;
    for (size_t op = 0; op < graph_.operators.size(); ++op) {
      if (absl::Status status = Ids(op); !status.ok()) return status;
      if (absl::Status status = Contents(op); !status.ok()) return status;
    }
    if (cost_ > kLargestSum) return absl::InvalidArgumentError("the costs add up to more than 2^62 ns");
    return Ends();
  }

 private:
  absl::Status Storages() {
    Bytes sum = 0;
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      if (storage.bytes < 0)
        return absl::InvalidArgumentError(absl::StrCat("storage '", storage.name, "': ", storage.bytes, " bytes"));
      if (storage.bytes > kLargestSum || (sum += storage.bytes) > kLargestSum) {
        return absl::InvalidArgumentError("the storages add up to more than 2^62 bytes");
      }
      if (storage.away && !(storage.given && storage.kept && !storage.held)) {
        return absl::InvalidArgumentError(absl::StrCat("storage '", storage.name, "' is away, but not given and kept"));
      }
      made_[id] = storage.given;
    }
    if (!graph_.released_after.empty() && graph_.released_after.size() != graph_.storages.size()) {
      return absl::InvalidArgumentError("released_after has not one entry a storage");
    }
    return absl::OkStatus();
  }

  absl::Status Ids(size_t i) {
    const Operator& op = graph_.operators[i];
    if (op.cost < 0 || op.cost > kLargestSum) return Fault(graph_, i, absl::StrCat("a cost of ", op.cost, " ns"));
    if (op.workspace < 0 || op.workspace > kLargestSum)
      return Fault(graph_, i, absl::StrCat("a workspace of ", op.workspace, " bytes"));
    cost_ = std::min(cost_ + op.cost, kLargestSum + 1);
    absl::Status status;
    ForEachUse(op, [&](StorageId id) {
      if (!status.ok()) return;
      if (id < 0 || static_cast<size_t>(id) >= graph_.storages.size()) {
        status = Fault(graph_, i, absl::StrCat("there is no storage ", id));
      } else if (seen_[static_cast<size_t>(id)] == static_cast<OperatorId>(i)) {
        status = Fault(graph_, i, absl::StrCat("names ", Quoted(graph_, id), " twice"));
      } else {
        seen_[static_cast<size_t>(id)] = static_cast<OperatorId>(i);
      }
    });
    return status;
  }

  absl::Status Contents(size_t i) {
    const Operator& op = graph_.operators[i];
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) {
        if (!made_[static_cast<size_t>(id)])
          return Fault(graph_, i, absl::StrCat("uses ", Quoted(graph_, id), ", which nothing has made"));
      }
    }
    ForEachUse(op, [&](StorageId id) { last_use_[static_cast<size_t>(id)] = static_cast<OperatorId>(i); });
    for (StorageId id : op.masks) {
      if (!Contains(op.reads, id)) return Fault(graph_, i, "masks: not a storage that it reads");
    }
    for (const InPlace& pair : op.in_place) {
      if (!Contains(op.reads, pair.read) || !Contains(op.writes, pair.made)) {
        return Fault(graph_, i, "in place: not a storage that it reads and one that it writes");
      }
      if (graph_.storages[static_cast<size_t>(pair.made)].bytes >
          graph_.storages[static_cast<size_t>(pair.read)].bytes) {
        return Fault(
            graph_, i,
            absl::StrCat("in place: ", Quoted(graph_, pair.made), " is larger than ", Quoted(graph_, pair.read)));
      }
    }
    for (StorageId id : op.writes) made_[static_cast<size_t>(id)] = true;
    return absl::OkStatus();
  }

  absl::Status Ends() {
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      if (storage.kept && !made_[id]) {
        return absl::InvalidArgumentError(
            absl::StrCat("storage '", storage.name, "' is to be kept, and nothing makes it"));
      }
      if (graph_.released_after.empty()) continue;
      const OperatorId released = graph_.released_after[id];
      if (released < last_use_[id] || released < -1 || (storage.kept && released != kNever)) {
        return absl::InvalidArgumentError(absl::StrCat("storage '", storage.name, "' is released before its last use"));
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  std::vector<bool> made_;
  std::vector<OperatorId> seen_;  // by storage: the last operator that named it
  std::vector<OperatorId> last_use_;
  int64_t cost_ = 0;
};

}  // namespace

absl::Status Check(const Graph& graph) {
  if (graph.storages.size() > INT32_MAX / 2 || graph.operators.size() > INT32_MAX / 2) {
    return absl::InvalidArgumentError("more than 2^30 operators or storages");
  }
  return Checker(graph).Run();
}

std::vector<std::vector<OperatorId>> UsesOf(const Graph& graph) {
  std::vector<std::vector<OperatorId>> uses(graph.storages.size());
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    ForEachUse(graph.operators[i],
               [&](StorageId id) { uses[static_cast<size_t>(id)].push_back(static_cast<OperatorId>(i)); });
  }
  return uses;
}

Nanoseconds TotalCost(const Graph& graph) {
  Nanoseconds sum = 0;
  for (const Operator& op : graph.operators) sum += op.cost;
  return sum;
}

}  // namespace hotpack::remat
