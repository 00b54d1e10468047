#include "remat/exact/runs.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

class Walk {
 public:
  Walk(const Graph& graph, const Values& values, const std::vector<OperatorId>& runs)
      : graph_(graph), values_(values), runs_(runs), device_(graph.storages.size(), kNoValue) {}

  absl::StatusOr<Schedule> Make() {
    for (OperatorId op : runs_) {
      if (op < 0 || static_cast<size_t>(op) >= graph_.operators.size())
        return absl::InvalidArgumentError(absl::StrCat("there is no operator ", op));
    }
    FindLastNeeds();
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].maker < 0) At(static_cast<ValueId>(v)) = static_cast<ValueId>(v);
    }
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].maker < 0 && !needed_given_[v]) Drop(static_cast<ValueId>(v));
    }
    std::set<OperatorId> saved;
    std::vector<bool> has_run(graph_.operators.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      const auto op = static_cast<size_t>(runs_[i]);
      if (has_run[op] && graph_.operators[op].random) saved.insert(runs_[i]);
      has_run[op] = true;
      Run(i);
    }
    schedule_.saved_states.assign(saved.begin(), saved.end());
    if (std::string fault = Verify(graph_, schedule_); !fault.empty()) return absl::InvalidArgumentError(fault);
    return std::move(schedule_);
  }

 private:
  ValueId& At(ValueId value) {
    return device_[static_cast<size_t>(values_.values[static_cast<size_t>(value)].storage)];
  }
  void Drop(ValueId value) {
    schedule_.actions.push_back({ActionKind::kDrop, values_.values[static_cast<size_t>(value)].storage});
    At(value) = kNoValue;
  }

  // From the end backwards, finds whether each operand of each run is used after it, before the next run that makes it.
  void FindLastNeeds() {
    std::vector<bool> wanted(values_.values.size());
    for (size_t v = 0; v < wanted.size(); ++v) wanted[v] = values_.values[v].left;
    stays_.resize(runs_.size());
    for (size_t i = runs_.size(); i-- > 0;) {
      const auto op = static_cast<size_t>(runs_[i]);
      for (ValueId output : values_.outputs[op]) stays_[i].push_back(wanted[static_cast<size_t>(output)]);
      for (ValueId output : values_.outputs[op]) wanted[static_cast<size_t>(output)] = false;
      for (ValueId input : values_.inputs[op]) stays_[i].push_back(wanted[static_cast<size_t>(input)]);
      for (ValueId input : values_.inputs[op]) wanted[static_cast<size_t>(input)] = true;
    }
    needed_given_ = wanted;
  }

  void Run(size_t i) {
    const auto number = static_cast<size_t>(runs_[i]);
    const Operator& op = graph_.operators[number];
    const std::vector<ValueId>& outputs = values_.outputs[number];
    const std::vector<ValueId>& inputs = values_.inputs[number];
    const auto stays = [&](ValueId input) {
      const auto at = std::find(inputs.begin(), inputs.end(), input);
      if (at == inputs.end()) return true;  // a wrong order of runs, which Verify() reports
      return static_cast<bool>(stays_[i][outputs.size() + static_cast<size_t>(at - inputs.begin())]);
    };
    Action action = {ActionKind::kRun, runs_[i], {}};
    for (size_t pair = 0; pair < op.in_place.size(); ++pair) {
      const auto [read, made] = op.in_place[pair];
      const ValueId value = device_[static_cast<size_t>(read)];
      if (value == kNoValue || device_[static_cast<size_t>(made)] != kNoValue || stays(value)) continue;
      if (graph_.storages[static_cast<size_t>(read)].bytes != graph_.storages[static_cast<size_t>(made)].bytes)
        continue;
      action.in_place.push_back(static_cast<int32_t>(pair));
      device_[static_cast<size_t>(read)] = kNoValue;
      device_[static_cast<size_t>(made)] = values_.outputs[number].front();  // until the real value is set below
    }
    schedule_.actions.push_back(std::move(action));
    for (ValueId output : outputs) At(output) = output;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!stays_[i][k]) Drop(outputs[k]);
    }
    for (ValueId input : inputs) {
      if (At(input) == input && !stays(input)) Drop(input);
    }
  }

  const Graph& graph_;
  const Values& values_;
  const std::vector<OperatorId>& runs_;
  std::vector<ValueId> device_;           // by storage
  std::vector<std::vector<bool>> stays_;  // by run: its outputs, then its inputs
  std::vector<bool> needed_given_;        // by value
  Schedule schedule_;
};

}  // namespace

absl::StatusOr<Schedule> ScheduleOfRuns(const Graph& graph, const Values& values, const std::vector<OperatorId>& runs) {
  return Walk(graph, values, runs).Make();
}

}  // namespace hotpack::remat
