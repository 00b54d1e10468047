#include "remat/search/decisions_of.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hotpack::remat {
namespace {

class Reader {
 public:
  Reader(const Graph& graph, const Values& values)
      : graph_(graph), values_(values), on_device_(graph.storages.size(), kNoValue), on_host_(on_device_) {
    for (size_t v = 0; v < values.values.size(); ++v) {
      const Value& value = values.values[v];
      if (value.maker >= 0) continue;
      (graph.storages[At(value.storage)].away ? on_host_ : on_device_)[At(value.storage)] = static_cast<ValueId>(v);
    }
  }

  Decisions Read(const Schedule& schedule) {
    decisions_ = NothingGoes(values_);
    for (const Action& action : schedule.actions) {
      switch (action.kind) {
        case ActionKind::kRun:
          Run(action.target);
          break;
        case ActionKind::kDrop:
          Leave(action.target);
          break;
        case ActionKind::kOffload:
          on_host_[At(action.target)] = on_device_[At(action.target)];
          break;
        case ActionKind::kPrefetch:
          on_device_[At(action.target)] = on_host_[At(action.target)];
          if (GapAction* way = WayOf(on_host_[At(action.target)])) *way = GapAction::kOffload;
          break;
        case ActionKind::kForget:
          break;
      }
    }
    return std::move(decisions_);
  }

 private:
  void Run(OperatorId op) {
    newest_ = std::max(newest_, op);
    for (ValueId made : values_.outputs[At(op)]) on_device_[At(values_.values[At(made)].storage)] = made;
  }
  void Leave(StorageId id) {
    const ValueId value = std::exchange(on_device_[At(id)], kNoValue);
    if (value == kNoValue) return;
    const Value& of = values_.values[At(value)];
    if (GapAction* way = WayOf(value)) {
      *way = *way == GapAction::kKeep ? GapAction::kRecompute : GapAction::kRecomputeOnce;
    } else if (!of.uses.empty() && newest_ > of.uses.back()) {
      OperatorId& tail = decisions_.tails[At(value)];
      if (tail < 0) tail = newest_;
    }
  }
  // Of the gap in which the value is now. Null: it is used up.
  GapAction* WayOf(ValueId value) {
    if (value == kNoValue) return nullptr;
    const Value& of = values_.values[At(value)];
    const auto used = static_cast<int32_t>(std::upper_bound(of.uses.begin(), of.uses.end(), newest_) - of.uses.begin());
    return used < values_.GapsOf(value) ? &decisions_.ways[At(of.first_gap + used)] : nullptr;
  }

  const Graph& graph_;
  const Values& values_;
  std::vector<ValueId> on_device_, on_host_;  // by storage
  OperatorId newest_ = -1;                    // that has run
  Decisions decisions_;
};

}  // namespace

Decisions DecisionsOf(const Graph& graph, const Values& values, const Schedule& schedule) {
  return Reader(graph, values).Read(schedule);
}

}  // namespace hotpack::remat
