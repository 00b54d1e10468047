#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "remat/chen/mirror.h"

namespace hotpack::remat {
namespace {

// Runs the mirrored graph's operators with the program's storages instead of the mirrored ones.
class Translator {
 public:
  Translator(const Graph& graph, const Values& values, const MirroredGraph& mirrored)
      : graph_(graph),
        values_(values),
        mirrored_(mirrored),
        touches_(mirrored.graph.storages.size()),
        next_(mirrored.graph.storages.size()),
        there_(mirrored.graph.storages.size()),
        holders_(graph.storages.size()),
        contents_(graph.storages.size(), kNoValue) {
    for (const Operator& op : mirrored.graph.operators) {
      for (StorageId id : op.reads) touches_[static_cast<size_t>(id)].push_back(Touch::kUses);
      for (StorageId id : op.updates) touches_[static_cast<size_t>(id)].push_back(Touch::kUses);
      for (StorageId id : op.writes) touches_[static_cast<size_t>(id)].push_back(Touch::kMakesAnew);
    }
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (graph.storages[id].kept) touches_[id].push_back(Touch::kUses);
      there_[id] = graph.storages[id].given;
      holders_[id] = graph.storages[id].given ? 1 : 0;
    }
    for (size_t v = 0; v < values.values.size(); ++v) {
      if (values.values[v].maker < 0)
        contents_[static_cast<size_t>(values.values[v].storage)] = static_cast<ValueId>(v);
    }
  }

  absl::StatusOr<Schedule> Run() {
    for (size_t id = 0; id < graph_.storages.size(); ++id) DropIfUsedUp(static_cast<StorageId>(id));
    for (size_t i = 0; i < mirrored_.graph.operators.size(); ++i) {
      if (std::string fault = Do(i); !fault.empty()) return absl::FailedPreconditionError(fault);
    }
    std::sort(schedule_.saved_states.begin(), schedule_.saved_states.end());
    const auto end = std::unique(schedule_.saved_states.begin(), schedule_.saved_states.end());
    schedule_.saved_states.erase(end, schedule_.saved_states.end());
    return std::move(schedule_);
  }

 private:
  enum class Touch : uint8_t { kUses, kMakesAnew };

  // Whether the storage's contents are not used after `more` further touches.
  bool UsedUp(StorageId id, size_t more) const {
    const std::vector<Touch>& touches = touches_[static_cast<size_t>(id)];
    const size_t next = next_[static_cast<size_t>(id)] + more;
    return next >= touches.size() || touches[next] == Touch::kMakesAnew;
  }
  int32_t& Holders(StorageId of) { return holders_[static_cast<size_t>(of)]; }
  ValueId& Contents(StorageId of) { return contents_[static_cast<size_t>(of)]; }
  StorageId Of(StorageId id) const { return mirrored_.storage_of[static_cast<size_t>(id)]; }
  Bytes SizeOf(StorageId of) const { return graph_.storages[static_cast<size_t>(of)].bytes; }
  bool IsThere(StorageId id) const { return there_[static_cast<size_t>(id)]; }

  std::string Do(size_t i) {
    const Operator& op = mirrored_.graph.operators[i];
    const OperatorId number = mirrored_.operator_of[i];
    const std::vector<ValueId>& outputs = values_.outputs[static_cast<size_t>(number)];
    const size_t writes = graph_.operators[static_cast<size_t>(number)].writes.size();  // without the generator's state
    bool all_there = mirrored_.is_copy[i];
    for (size_t o = 0; o < outputs.size(); ++o) {
      const StorageId id = o < writes ? op.writes[o] : op.updates[o - writes];
      if (Contents(Of(id)) != outputs[o]) all_there = false;
      const bool others = Holders(Of(id)) > (IsThere(id) ? 1 : 0);
      if (others && Contents(Of(id)) != outputs[o]) {
        return absl::StrCat(op.name, ": '", graph_.storages[static_cast<size_t>(Of(id))].name,
                            "' would have two contents at once");
      }
    }
    if (!all_there) Emit(op, number, mirrored_.is_copy[i]);
    for (size_t o = 0; o < outputs.size(); ++o) {
      const StorageId id = o < writes ? op.writes[o] : op.updates[o - writes];
      Contents(Of(id)) = outputs[o];
      if (!IsThere(id)) ++Holders(Of(id));
      there_[static_cast<size_t>(id)] = true;
    }
    for (const std::vector<StorageId>* used : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *used) {
        ++next_[static_cast<size_t>(id)];
        DropIfUsedUp(id);
      }
    }
    return "";
  }

  void Emit(const Operator& op, OperatorId number, bool again) {
    const Operator& program = graph_.operators[static_cast<size_t>(number)];
    if (again && program.random) schedule_.saved_states.push_back(number);
    Action action = {ActionKind::kRun, number, {}};
    std::vector<StorageId> made_in_place;
    for (size_t p = 0; p < program.in_place.size(); ++p) {
      const InPlace pair = program.in_place[p];
      const StorageId read = op.in_place[p].read;
      const bool used_up = IsThere(read) && Holders(pair.read) == 1 && UsedUp(read, 1);
      const bool taken = std::find(made_in_place.begin(), made_in_place.end(), pair.made) != made_in_place.end();
      if (!used_up || taken || Holders(pair.made) > 0 || SizeOf(pair.read) != SizeOf(pair.made)) continue;
      made_in_place.push_back(pair.made);
      action.in_place.push_back(static_cast<int32_t>(p));
      there_[static_cast<size_t>(read)] = false;  // the result has its memory
      Holders(pair.read) = 0;
      Contents(pair.read) = kNoValue;
    }
    schedule_.actions.push_back(std::move(action));
  }

  void DropIfUsedUp(StorageId id) {
    if (Of(id) < 0 || !IsThere(id) || !UsedUp(id, 0)) return;
    there_[static_cast<size_t>(id)] = false;
    if (--Holders(Of(id)) > 0) return;
    schedule_.actions.push_back({ActionKind::kDrop, Of(id)});
    Contents(Of(id)) = kNoValue;
  }

  const Graph& graph_;
  const Values& values_;
  const MirroredGraph& mirrored_;
  // By storage of the mirrored graph: the touches of its operators, in their order.
  std::vector<std::vector<Touch>> touches_;
  std::vector<size_t> next_;       // by storage of the mirrored graph: index in its touches
  std::vector<bool> there_;        // by storage of the mirrored graph
  std::vector<int32_t> holders_;   // by storage of the program: the resident storages of the mirrored graph
  std::vector<ValueId> contents_;  // by storage of the program
  Schedule schedule_;
};

}  // namespace

absl::StatusOr<Schedule> ScheduleOf(const Graph& graph, const Values& values, const MirroredGraph& mirrored) {
  return Translator(graph, values, mirrored).Run();
}

absl::StatusOr<Schedule> ScheduleByMirror(const Graph& graph, const Values& values,
                                          const std::vector<int32_t>& counts) {
  return ScheduleOf(graph, values, MirrorGraph(graph, values, counts));
}

}  // namespace hotpack::remat
