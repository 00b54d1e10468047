#include "remat/chen/mirror.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

// Returns m(v) as far as possible: the operands of a copy must exist when it runs.
std::vector<int32_t> PossibleCounts(const Graph& graph, const Values& values, std::vector<int32_t> counts) {
  const auto operators = static_cast<OperatorId>(graph.operators.size());
  // By value, the last operator behind the forward pass before which copies of it may be made.
  std::vector<OperatorId> needed(values.values.size(), -1), runs_until(graph.operators.size(), -1);
  for (OperatorId op = operators - 1; op >= 0; --op) {
    const auto i = static_cast<size_t>(op);
    const bool mirrored = IsForward(graph.operators[i]) && counts[i] > 0;
    for (ValueId output : values.outputs[i])
      runs_until[i] = std::max(runs_until[i], needed[static_cast<size_t>(output)]);
    for (ValueId input : values.inputs[i]) {
      OperatorId& until = needed[static_cast<size_t>(input)];
      if (!IsForward(graph.operators[i])) until = std::max(until, op);
      if (mirrored) until = std::max(until, runs_until[i]);
    }
  }
  for (OperatorId op = 0; op < operators; ++op) {
    const auto i = static_cast<size_t>(op);
    const Operator& each = graph.operators[i];
    if (!IsForward(each) || each.once || !each.updates.empty()) counts[i] = 0;
    for (ValueId input : values.inputs[i]) {
      const Value& value = values.values[static_cast<size_t>(input)];
      if (value.overwritten >= runs_until[i]) continue;
      counts[i] = value.maker < 0 ? 0 : std::min(counts[i], counts[static_cast<size_t>(value.maker)]);
    }
  }
  return counts;
}

class Mirror {
 public:
  Mirror(const Graph& graph, const Values& values, const std::vector<int32_t>& counts)
      : graph_(graph), values_(values) {
    result_.counts = PossibleCounts(graph, values, counts);
    result_.graph.storages = graph.storages;
    result_.storage_of.resize(graph.storages.size());
    std::iota(result_.storage_of.begin(), result_.storage_of.end(), 0);
    states_.resize(graph.operators.size(), -1);
    for (const Value& value : values.values) last_copy_.push_back({value.storage, -1});
  }

  MirroredGraph Run() {
    MakeCopies();
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      const auto number = static_cast<OperatorId>(i);
      if (IsForward(graph_.operators[i])) {
        Append(graph_.operators[i], number, false, KeepState(number));
      } else {
        AppendGradient(number);
      }
    }
    return std::move(result_);
  }

 private:
  // a[v]: the storage of the value, and the copy that makes it. -1: the program's own operator makes it.
  struct Made {
    StorageId storage;
    int32_t copy;
  };
  struct Copy {
    OperatorId of;
    Operator op;
    std::vector<int32_t> after;  // copies that make its operands
    bool appended = false;
  };

  StorageId NewStorage(std::string name, Bytes bytes, StorageKind kind, StorageId of) {
    Storage storage;
    storage.name = std::move(name);
    storage.bytes = bytes;
    storage.kind = kind;
    result_.graph.storages.push_back(std::move(storage));
    result_.storage_of.push_back(of);
    return static_cast<StorageId>(result_.graph.storages.size()) - 1;
  }

  // Returns the storage for the state of a random operator with copies.
  StorageId KeepState(OperatorId number) {
    const auto i = static_cast<size_t>(number);
    if (!graph_.operators[i].random || result_.counts[i] == 0) return -1;
    if (states_[i] < 0) {
      const std::string name = absl::StrCat("state of ", graph_.operators[i].name, " ", number);
      states_[i] = NewStorage(name, kRandomStateBytes, StorageKind::kOther, -1);
    }
    return states_[i];
  }

  void MakeCopies() {
    const int32_t most = result_.counts.empty() ? 0 : *std::max_element(result_.counts.begin(), result_.counts.end());
    for (int32_t k = 1; k <= most; ++k) {
      for (size_t i = 0; i < graph_.operators.size(); ++i) {
        if (k <= result_.counts[i]) MakeCopy(static_cast<OperatorId>(i), k);
      }
    }
  }

  void MakeCopy(OperatorId number, int32_t k) {
    const Operator& op = graph_.operators[static_cast<size_t>(number)];
    Copy copy = {number, op, {}, false};
    const std::string mark(static_cast<size_t>(k), '\'');
    copy.op.name = op.name + mark;
    const std::vector<ValueId>& inputs = values_.inputs[static_cast<size_t>(number)];
    const std::vector<ValueId>& outputs = values_.outputs[static_cast<size_t>(number)];
    const auto last = [&](ValueId value) -> Made& { return last_copy_[static_cast<size_t>(value)]; };
    for (size_t r = 0; r < op.reads.size(); ++r) {
      copy.op.reads[r] = last(inputs[r]).storage;
      if (last(inputs[r]).copy >= 0) copy.after.push_back(last(inputs[r]).copy);
    }
    for (size_t w = 0; w < op.writes.size(); ++w) {
      const Storage& storage = graph_.storages[static_cast<size_t>(op.writes[w])];
      const StorageId made = NewStorage(storage.name + mark, storage.bytes, storage.kind, op.writes[w]);
      copy.op.writes[w] = made;
      last(outputs[w]) = {made, static_cast<int32_t>(copies_.size())};
    }
    for (InPlace& pair : copy.op.in_place) {
      const auto read = std::find(op.reads.begin(), op.reads.end(), pair.read) - op.reads.begin();
      const auto made = std::find(op.writes.begin(), op.writes.end(), pair.made) - op.writes.begin();
      pair = {copy.op.reads[static_cast<size_t>(read)], copy.op.writes[static_cast<size_t>(made)]};
    }
    copies_.push_back(std::move(copy));
  }

  void Append(Operator op, OperatorId number, bool is_copy, StorageId state) {
    if (state >= 0) (is_copy ? op.reads : op.writes).push_back(state);
    if (is_copy) op.random = false;  // it repeats earlier draws
    result_.graph.operators.push_back(std::move(op));
    result_.operator_of.push_back(number);
    result_.is_copy.push_back(is_copy);
    result_.state_of.push_back(state);
  }

  // "V' ← append(V', topological-order(ancestors(g[v])) - V')": a copy follows those whose results it reads.
  void AppendAncestors(const std::vector<int32_t>& wanted) {
    std::vector<int32_t> open = wanted, found;
    while (!open.empty()) {
      const int32_t index = open.back();
      open.pop_back();
      Copy& copy = copies_[static_cast<size_t>(index)];
      if (std::exchange(copy.appended, true)) continue;
      found.push_back(index);
      open.insert(open.end(), copy.after.begin(), copy.after.end());
    }
    std::sort(found.begin(), found.end());
    for (int32_t index : found) {
      Copy& copy = copies_[static_cast<size_t>(index)];
      Append(std::move(copy.op), copy.of, true, KeepState(copy.of));
    }
  }

  void AppendGradient(OperatorId number) {
    Operator op = graph_.operators[static_cast<size_t>(number)];
    const std::vector<ValueId>& inputs = values_.inputs[static_cast<size_t>(number)];
    std::vector<int32_t> wanted;
    for (size_t r = 0; r < op.reads.size(); ++r) {
      const Made made = last_copy_[static_cast<size_t>(inputs[r])];
      for (InPlace& pair : op.in_place) {
        if (pair.read == op.reads[r]) pair.read = made.storage;
      }
      op.reads[r] = made.storage;
      if (made.copy >= 0) wanted.push_back(made.copy);
    }
    AppendAncestors(wanted);
    Append(std::move(op), number, false, -1);
  }

  const Graph& graph_;
  const Values& values_;
  std::vector<Made> last_copy_;    // by value
  std::vector<Copy> copies_;       // in a topological order
  std::vector<StorageId> states_;  // by operator of the program
  MirroredGraph result_;
};

}  // namespace

MirroredGraph MirrorGraph(const Graph& graph, const Values& values, const std::vector<int32_t>& counts) {
  return Mirror(graph, values, counts).Run();
}

}  // namespace hotpack::remat
