#include "remat/dqn/operations.h"

#include <algorithm>
#include <cmath>

namespace hotpack::remat {
namespace {

Nanoseconds CopyTime(Bytes bytes, double bytes_per_ns) {
  return static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / bytes_per_ns));
}

// Storages below this part of the largest are small.
constexpr Bytes kSmallPart = 256;

class Converter {
 public:
  Converter(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph),
        values_(values),
        current_(graph.storages.size(), -1),
        has_memory_(graph.storages.size()),
        first_node_(graph.operators.size()),
        last_node_(graph.operators.size()),
        access_(values.gaps.size(), -1) {
    for (const Storage& storage : graph.storages) {
      sequence_.memories.push_back({storage.bytes, CopyTime(storage.bytes, machine.bytes_per_ns_to_host),
                                    CopyTime(storage.bytes, machine.bytes_per_ns_to_device)});
    }
    for (const Value& value : values.values) {
      const bool again = value.maker >= 0 && !graph.operators[static_cast<size_t>(value.maker)].once;
      sequence_.variables.push_back({value.storage, again ? value.maker : -1});
    }
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      sequence_.makers.push_back({graph.operators[i].cost, values.inputs[i], values.outputs[i]});
    }
    Bytes largest = 0;
    for (const Storage& storage : graph.storages) largest = std::max(largest, storage.bytes);
    small_ = largest / kSmallPart;
    for (Variable& variable : sequence_.variables) {
      if (IsSmall(variable.memory)) variable.maker = -1;  // it is always resident
    }
  }

  Sequence Run() {
    for (size_t v = 0; v < values_.values.size(); ++v) {
      const Value& value = values_.values[v];
      if (value.maker >= 0) continue;
      sequence_.given.push_back(static_cast<int32_t>(v));
      Current(value.storage) = static_cast<ValueId>(v);
      if (IsSmall(value.storage)) AddSmall(BytesOf(value.storage));
      has_memory_[static_cast<size_t>(value.storage)] = true;
    }
    const std::vector<GapAction> hold(values_.gaps.size(), GapAction::kKeep);
    for (const Action& action : BuildSchedule(graph_, values_, hold).schedule.actions) {
      if (action.kind == ActionKind::kRun) Run(action);
      if (action.kind == ActionKind::kDrop) Free(action.target);
    }
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      if (IsSmall(static_cast<StorageId>(id))) sequence_.memories[id].bytes = 0;
    }
    AddAbsences();
    AssignActions(&sequence_);
    return std::move(sequence_);
  }

 private:
  ValueId& Current(StorageId id) { return current_[static_cast<size_t>(id)]; }
  int32_t Next() const { return static_cast<int32_t>(sequence_.operations.size()); }
  Bytes BytesOf(StorageId id) const { return graph_.storages[static_cast<size_t>(id)].bytes; }
  bool IsSmall(StorageId id) const { return BytesOf(id) < small_; }
  void AddSmall(Bytes bytes) { sequence_.always = std::max(sequence_.always, small_live_ += bytes); }
  void Add(OperationKind kind, ValueId variable) {
    if (!IsSmall(sequence_.variables[static_cast<size_t>(variable)].memory))
      sequence_.operations.push_back({kind, variable});
  }
  void Free(StorageId id) {
    if (Current(id) >= 0) Add(OperationKind::kFree, Current(id));
    if (has_memory_[static_cast<size_t>(id)] && IsSmall(id)) AddSmall(-BytesOf(id));
    Current(id) = -1;
    has_memory_[static_cast<size_t>(id)] = false;
  }
  void Allocate(ValueId value) {
    const auto storage = static_cast<size_t>(values_.values[static_cast<size_t>(value)].storage);
    if (has_memory_[storage]) return;
    has_memory_[storage] = true;
    if (IsSmall(static_cast<StorageId>(storage))) AddSmall(BytesOf(static_cast<StorageId>(storage)));
    Add(OperationKind::kMalloc, value);
  }

  void Run(const Action& action) {
    const auto number = static_cast<size_t>(action.target);
    const Operator& op = graph_.operators[number];
    first_node_[number] = Next();
    std::vector<StorageId> taken;
    for (int32_t pair : action.in_place) taken.push_back(op.in_place[static_cast<size_t>(pair)].made);
    const auto is_taken = [&](ValueId value) {
      return std::find(taken.begin(), taken.end(), values_.values[static_cast<size_t>(value)].storage) != taken.end();
    };
    for (ValueId output : values_.outputs[number]) {
      if (!is_taken(output)) Allocate(output);
    }
    const int32_t workspace = AddWorkspace(op);
    for (ValueId input : values_.inputs[number]) {
      Touch(input, action.target);
      Add(OperationKind::kRead, input);
    }
    for (int32_t pair : action.in_place) Free(op.in_place[static_cast<size_t>(pair)].read);
    for (ValueId output : values_.outputs[number]) {
      Allocate(output);
      Touch(output, action.target);
      Add(OperationKind::kWrite, output);
      Current(values_.values[static_cast<size_t>(output)].storage) = output;
    }
    if (Next() == 0) AddNothing();
    sequence_.operations.back().duration += op.cost;
    last_node_[number] = Next() - 1;
    if (workspace >= 0) sequence_.operations.push_back({OperationKind::kFree, workspace});
  }

  // Records the next node as the one that uses the value before its gap behind `op`.
  void Touch(ValueId value, OperatorId op) {
    const Value& of = values_.values[static_cast<size_t>(value)];
    const auto index = of.maker == op ? of.uses.begin() : std::upper_bound(of.uses.begin(), of.uses.end(), op);
    const auto gap = static_cast<GapId>(index - of.uses.begin());
    if (gap < values_.GapsOf(value)) access_[static_cast<size_t>(of.first_gap + gap)] = Next();
  }

  int32_t AddWorkspace(const Operator& op) {
    if (op.workspace < small_) AddSmall(op.workspace), AddSmall(-op.workspace);
    if (op.workspace == 0 || op.workspace < small_) return -1;
    const auto variable = static_cast<int32_t>(sequence_.variables.size());
    sequence_.variables.push_back({static_cast<int32_t>(sequence_.memories.size()), -1});
    sequence_.memories.push_back({op.workspace, 0, 0});
    sequence_.operations.push_back({OperationKind::kMalloc, variable});
    return variable;
  }

  // Adds a node with an empty memory, for the time of a first operator that touches only small storages.
  void AddNothing() {
    const auto variable = static_cast<int32_t>(sequence_.variables.size());
    sequence_.variables.push_back({static_cast<int32_t>(sequence_.memories.size()), -1});
    sequence_.memories.push_back({});
    sequence_.operations.push_back({OperationKind::kRead, variable});
  }

  void AddAbsences() {
    std::vector<GapAction> ways(values_.gaps.size(), GapAction::kKeep);
    const auto operators = static_cast<OperatorId>(graph_.operators.size());
    for (size_t g = 0; g < ways.size(); ++g) {
      const Gap& gap = values_.gaps[g];
      const Value& value = values_.values[static_cast<size_t>(gap.value)];
      const bool forward = gap.after >= 0 && graph_.operators[static_cast<size_t>(gap.after)].phase == Phase::kForward;
      const bool empty =
          gap.before <= gap.after + 1 || access_[g] < 0 || BytesOf(value.storage) == 0 || IsSmall(value.storage);
      if (!forward || empty || gap.before >= operators) continue;
      Absence absence = {gap.value, access_[g], access_[g], last_node_[static_cast<size_t>(gap.after)],
                         first_node_[static_cast<size_t>(gap.before)]};
      if (value.maker == gap.after)
        absence.open = absence.after + 1;  // contents that are being written cannot be copied yet
      absence.gap = static_cast<GapId>(g);
      sequence_.absences.push_back(absence);
      if (sequence_.variables[static_cast<size_t>(gap.value)].maker >= 0) ways[g] = GapAction::kRecompute;
    }
    // BuildSchedule() holds values that cannot be recomputed without losing other contents, even if no other value is
    // removed.
    for (GapId gap : BuildSchedule(graph_, values_, ways).held) {
      if (gap >= 0 && OneIsHeld(gap))
        sequence_.variables[static_cast<size_t>(values_.gaps[static_cast<size_t>(gap)].value)].maker = -1;
    }
    std::stable_sort(sequence_.absences.begin(), sequence_.absences.end(),
                     [](const Absence& a, const Absence& b) { return a.open < b.open; });
  }
  bool OneIsHeld(GapId gap) const {
    std::vector<GapAction> ways(values_.gaps.size(), GapAction::kKeep);
    ways[static_cast<size_t>(gap)] = GapAction::kRecompute;
    return !BuildSchedule(graph_, values_, ways).held.empty();
  }

  const Graph& graph_;
  const Values& values_;
  Bytes small_ = 0, small_live_ = 0;
  Sequence sequence_;
  std::vector<ValueId> current_;                 // by storage: its contents; -1
  std::vector<bool> has_memory_;                 // by storage
  std::vector<int32_t> first_node_, last_node_;  // by operator
  std::vector<int32_t> access_;                  // by gap: the node that uses the variable before it
};

}  // namespace

void AssignActions(Sequence* sequence) {
  std::vector<std::vector<int32_t>> nodes_of(sequence->memories.size());
  for (size_t i = 1; i < sequence->operations.size(); ++i) {
    const Variable& variable = sequence->variables[static_cast<size_t>(sequence->operations[i].variable)];
    nodes_of[static_cast<size_t>(variable.memory)].push_back(static_cast<int32_t>(i));
  }
  std::vector<bool> stands(sequence->operations.size());
  stands[0] = true;
  for (Absence& absence : sequence->absences) {
    if (stands[static_cast<size_t>(absence.access)]) continue;
    absence.offload_node = absence.access;
    stands[static_cast<size_t>(absence.access)] = true;
  }
  for (Absence& absence : sequence->absences) {
    const Variable& variable = sequence->variables[static_cast<size_t>(absence.variable)];
    if (variable.maker < 0) continue;
    const std::vector<int32_t>& nodes = nodes_of[static_cast<size_t>(variable.memory)];
    const auto behind = std::lower_bound(nodes.begin(), nodes.end(), absence.before);
    auto found = std::find_if(nodes.begin(), behind, [&](int32_t node) { return !stands[static_cast<size_t>(node)]; });
    if (found == behind)
      found = std::find_if(behind, nodes.end(), [&](int32_t node) { return !stands[static_cast<size_t>(node)]; });
    if (found == nodes.end()) continue;
    absence.remove_node = *found;
    stands[static_cast<size_t>(*found)] = true;
  }
}

Sequence SequenceOf(const Graph& graph, const Values& values, const Machine& machine) {
  return Converter(graph, values, machine).Run();
}

}  // namespace hotpack::remat
