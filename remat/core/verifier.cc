#include "remat/core/verifier.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

// Contents are named by the operator that made them. It always sees the same contents, so it always makes the same.
using Contents = OperatorId;
constexpr Contents kGiven = -1;

// The contents that each operator sees in the program, and those at its end.
struct Program {
  std::vector<std::map<StorageId, Contents>> seen;
  std::map<StorageId, Contents> left;

  explicit Program(const Graph& graph) {
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (graph.storages[id].given) left[static_cast<StorageId>(id)] = kGiven;
    }
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const Operator& op = graph.operators[i];
      std::map<StorageId, Contents>& sees = seen.emplace_back();
      for (StorageId id : op.reads) sees[id] = left.at(id);
      for (StorageId id : op.updates) sees[id] = left.at(id);
      for (StorageId id : op.writes) left[id] = static_cast<OperatorId>(i);
      for (StorageId id : op.updates) left[id] = static_cast<OperatorId>(i);
    }
  }
};

class Walk {
 public:
  Walk(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        program_(graph),
        runs_(graph.operators.size()),
        saved_(schedule.saved_states.begin(), schedule.saved_states.end()) {
    for (size_t id = 0; id < graph.storages.size(); ++id) {
      if (graph.storages[id].given) (graph.storages[id].away ? host_ : device_)[static_cast<StorageId>(id)] = kGiven;
    }
  }

  std::string Step(const Action& action) {
    switch (action.kind) {
      case ActionKind::kRun:
        return Run(action);
      case ActionKind::kDrop:
        if (IsHeld(action.target) && !IsParked(action.target))
          return Text(action.target, "is dropped while the program holds it");
        if (device_.erase(action.target) == 0) return Text(action.target, "is dropped and has no memory");
        return "";
      case ActionKind::kOffload: {
        const auto found = device_.find(action.target);
        if (found == device_.end()) return Text(action.target, "is copied to the host and has no contents");
        host_[action.target] = found->second;
        return "";
      }
      case ActionKind::kPrefetch: {
        const auto found = host_.find(action.target);
        if (found == host_.end()) return Text(action.target, "is copied back and is not on the host");
        if (!device_.try_emplace(action.target, found->second).second)
          return Text(action.target, "is copied back and has memory");
        return "";
      }
      case ActionKind::kForget:
        if (IsHeld(action.target) && !device_.contains(action.target))
          return Text(action.target, "is forgotten while the program holds it");
        return host_.erase(action.target) == 0 ? Text(action.target, "is forgotten and is not on the host") : "";
    }
    return "no such action";
  }

  std::string End() const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i] == 0) return absl::StrCat("operator ", i, " (", graph_.operators[i].name, ") never runs");
    }
    for (const auto& [id, contents] : program_.left) {
      const Storage& storage = graph_.storages[static_cast<size_t>(id)];
      if (!storage.kept) continue;
      const auto found = (storage.away ? host_ : device_).find(id);
      if (found == (storage.away ? host_ : device_).end())
        return Text(id, storage.away ? "is not on the host at the end" : "is not on the device at the end");
      if (found->second != contents) return Text(id, "has other contents at the end than in the program");
    }
    return "";
  }

 private:
  std::string Text(StorageId id, const char* what) const {
    const bool known = id >= 0 && static_cast<size_t>(id) < graph_.storages.size();
    return absl::StrCat("storage ", known ? graph_.storages[static_cast<size_t>(id)].name : absl::StrCat(id), " ",
                        what);
  }

  // Whether the program, at the operator that last ran for the first time, still holds the storage.
  bool IsHeld(StorageId id) const {
    if (id < 0 || static_cast<size_t>(id) >= graph_.storages.size() || !graph_.storages[static_cast<size_t>(id)].held)
      return false;
    const OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[static_cast<size_t>(id)];
    return newest_ < released;
  }

  // Whether the storage may leave, because the host has the contents that the device has.
  bool IsParked(StorageId id) const {
    const auto here = device_.find(id), there = host_.find(id);
    return graph_.storages[static_cast<size_t>(id)].movable && here != device_.end() && there != host_.end() &&
           here->second == there->second;
  }

  static bool InOrder(OperatorId op, OperatorId* last) { return std::exchange(*last, op) < op; }

  std::string Run(const Action& action) {
    if (action.target < 0 || static_cast<size_t>(action.target) >= graph_.operators.size())
      return "there is no such operator";
    const auto number = static_cast<size_t>(action.target);
    const Operator& op = graph_.operators[number];
    const auto says = [&](const auto&... what) {
      return absl::StrCat("operator ", number, " (", op.name, ") ", what...);
    };
    for (const auto& [id, contents] : program_.seen[number]) {
      const auto found = device_.find(id);
      if (found == device_.end()) return says("finds nothing in ", Text(id, ""));
      if (found->second != contents) return says("finds other contents than in the program in ", Text(id, ""));
    }
    const bool again = runs_[number]++ > 0;
    if (!again) newest_ = std::max(newest_, action.target);
    if (op.once && again) return says("may run once only and runs again");
    if (op.random && again && !saved_.contains(action.target))
      return says("draws random numbers and runs again without its state");
    if (op.once && !InOrder(action.target, &last_once_)) return says("may run once only and runs out of order");
    if (op.random && !again && !InOrder(action.target, &last_random_)) return says("draws random numbers out of order");
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) {
        const auto found = device_.find(id);
        if (again && IsHeld(id) && (found == device_.end() || found->second != action.target))
          return says("makes ", Text(id, "again, which the program holds"));
      }
    }
    for (int32_t pair : action.in_place) {
      if (pair < 0 || static_cast<size_t>(pair) >= op.in_place.size()) return says("has no such pair in place");
      const InPlace& in_place = op.in_place[static_cast<size_t>(pair)];
      if (IsHeld(in_place.read)) return says("takes over ", Text(in_place.read, "while the program holds it"));
      if (device_.erase(in_place.read) == 0) return says("gives one memory away twice");
      if (device_.contains(in_place.made)) return says("works in place, but ", Text(in_place.made, "has memory"));
    }
    for (StorageId id : op.writes) device_[id] = action.target;
    for (StorageId id : op.updates) device_[id] = action.target;
    return "";
  }

  const Graph& graph_;
  const Program program_;
  std::vector<int64_t> runs_;
  const std::set<OperatorId> saved_;
  std::map<StorageId, Contents> device_;  // storages with memory
  std::map<StorageId, Contents> host_;
  OperatorId last_once_ = -1, last_random_ = -1, newest_ = -1;
};

}  // namespace

std::string Verify(const Graph& graph, const Schedule& schedule) {
  Walk walk(graph, schedule);
  for (size_t i = 0; i < schedule.actions.size(); ++i) {
    if (std::string fault = walk.Step(schedule.actions[i]); !fault.empty())
      return absl::StrCat("action ", i, ": ", fault);
  }
  return walk.End();
}

}  // namespace hotpack::remat
