#include "remat/baselines/dtr.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

class Runtime {
 public:
  Runtime(const Graph& graph, const Values& values, Bytes budget, int most_runs)
      : graph_(graph),
        values_(values),
        budget_(budget),
        device_(graph.storages.size(), kNoValue),
        pins_(graph.storages.size()),
        used_at_(values.values.size()),
        seen_(values.values.size()),
        made_(values.values.size()),
        released_(graph.operators.size()),
        most_runs_(static_cast<size_t>(most_runs) * graph.operators.size()) {
    for (size_t id = 0; id < graph.released_after.size(); ++id) {
      const OperatorId after = graph.released_after[id];
      if (graph.storages[id].held && after >= 0 && after < kNever)
        released_[static_cast<size_t>(after)].push_back(static_cast<StorageId>(id));
    }
  }

  absl::StatusOr<Schedule> Run() {
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].maker >= 0) continue;
      At(static_cast<ValueId>(v)) = static_cast<ValueId>(v);
      live_ += BytesOf(static_cast<ValueId>(v));
    }
    if (live_ > budget_) return absl::ResourceExhaustedError(absl::StrCat("what is given takes ", live_, " bytes"));
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      now_ = static_cast<OperatorId>(i);
      if (absl::Status status = RunOperator(now_); !status.ok()) return status;
      newest_ = now_;
      for (ValueId value : values_.inputs[i]) DropDead(value);
      for (ValueId value : values_.outputs[i]) DropDead(value);
      for (StorageId id : released_[i]) {
        if (const ValueId value = device_[static_cast<size_t>(id)]; value != kNoValue) DropDead(value);
      }
    }
    now_ = static_cast<OperatorId>(graph_.operators.size());
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (!values_.values[v].left) continue;
      if (absl::Status status = Ensure(static_cast<ValueId>(v)); !status.ok()) return status;
      ++pins_[static_cast<size_t>(values_.values[v].storage)];
    }
    return Schedule{std::move(actions_), std::vector<OperatorId>(saved_.begin(), saved_.end())};
  }

 private:
  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  const Operator& MakerOf(ValueId value) const { return graph_.operators[static_cast<size_t>(Of(value).maker)]; }
  ValueId& At(ValueId value) { return device_[static_cast<size_t>(Of(value).storage)]; }
  bool IsThere(ValueId value) const { return device_[static_cast<size_t>(Of(value).storage)] == value; }
  Bytes BytesOf(ValueId value) const { return graph_.storages[static_cast<size_t>(Of(value).storage)].bytes; }
  bool IsDead(ValueId value) const {
    return !Of(value).left && (Of(value).uses.empty() || Of(value).uses.back() <= now_);
  }
  void Pin(ValueId value, int by) { pins_[static_cast<size_t>(Of(value).storage)] += by; }

  void Drop(ValueId value) {
    actions_.push_back({ActionKind::kDrop, Of(value).storage});
    At(value) = kNoValue;
    live_ -= BytesOf(value);
  }
  void DropDead(ValueId value) {
    // Pinned by the operator for which this one runs again.
    const bool wanted = pins_[static_cast<size_t>(Of(value).storage)] > 0;
    if (IsThere(value) && IsDead(value) && Of(value).maker >= 0 && !wanted && !IsHeld(Of(value).storage)) Drop(value);
  }

  absl::Status Ensure(ValueId value) {
    if (IsThere(value)) return absl::OkStatus();
    if (Of(value).maker < 0 || MakerOf(value).once) {
      return absl::ResourceExhaustedError(
          absl::StrCat("'", graph_.storages[static_cast<size_t>(Of(value).storage)].name, "' is overwritten"));
    }
    return RunOperator(Of(value).maker);
  }

  // Runs an operator, for the first time or again. First restores its operands and evicts values for it.
  absl::Status RunOperator(OperatorId number) {
    const Operator& op = graph_.operators[static_cast<size_t>(number)];
    const std::vector<ValueId>&inputs = values_.inputs[static_cast<size_t>(number)],
          &outputs = values_.outputs[static_cast<size_t>(number)];
    for (ValueId input : inputs) {
      if (absl::Status status = Ensure(input); !status.ok()) return status;
      Pin(input, 1);
    }
    Bytes needed = op.workspace;
    for (ValueId output : outputs) {
      Pin(output, 1);
      const ValueId there = At(output);
      if (there == kNoValue) needed += BytesOf(output);
      const bool changes = std::find(inputs.begin(), inputs.end(), there) != inputs.end();
      const bool again = made_[static_cast<size_t>(output)];
      if (there != kNoValue && there != output && again && !(changes && IsDead(there))) {
        return absl::ResourceExhaustedError(absl::StrCat(op.name, " would overwrite what is needed"));
      }
    }
    while (live_ + needed > budget_) {
      const ValueId victim = Victim();
      if (victim == kNoValue) {
        return absl::ResourceExhaustedError(
            absl::StrCat("operator ", number, " (", op.name, ") needs ", live_ + needed, " bytes"));
      }
      Drop(victim);
    }
    actions_.push_back({ActionKind::kRun, number, {}});
    clock_ += op.cost;
    if (++runs_ > most_runs_) return absl::ResourceExhaustedError("it computes the same over and over again");
    for (ValueId output : outputs) {
      if (At(output) == kNoValue) live_ += BytesOf(output);
      At(output) = output;
      if (op.random && made_[static_cast<size_t>(output)]) saved_.insert(number);
      made_[static_cast<size_t>(output)] = true;
      used_at_[static_cast<size_t>(output)] = clock_;
      Pin(output, -1);
    }
    for (ValueId input : inputs) {
      used_at_[static_cast<size_t>(input)] = clock_;
      Pin(input, -1);
      if (number != now_) DropDead(input);
    }
    return absl::OkStatus();
  }

  // Whether the program still holds the storage, after the operator that last ran for the first time.
  bool IsHeld(StorageId id) const {
    const auto storage = static_cast<size_t>(id);
    const OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[storage];
    return graph_.storages[storage].held && newest_ < released;
  }

  // Whether the value can be recomputed. At some time all operands were resident, and contents that cannot be
  // recomputed were not overwritten.
  bool CanGo(ValueId value) const {
    if (Of(value).maker < 0 || MakerOf(value).once || pins_[static_cast<size_t>(Of(value).storage)] > 0) return false;
    if (IsHeld(Of(value).storage)) return false;
    for (ValueId output : values_.outputs[static_cast<size_t>(Of(value).maker)]) {
      const ValueId there = device_[static_cast<size_t>(Of(output).storage)];
      if (there != kNoValue && there != output) return false;
    }
    for (ValueId input : values_.inputs[static_cast<size_t>(Of(value).maker)]) {
      const bool own = Of(input).storage == Of(value).storage;
      if (!own && Of(input).overwritten <= now_) return false;
      if (own && !CanGoBefore(input)) return false;
    }
    return true;
  }
  // The same for contents that were changed in place to make the value.
  bool CanGoBefore(ValueId value) const {
    if (Of(value).maker < 0 || MakerOf(value).once) return false;
    for (ValueId input : values_.inputs[static_cast<size_t>(Of(value).maker)]) {
      const bool own = Of(input).storage == Of(value).storage;
      if (own ? !CanGoBefore(input) : Of(input).overwritten <= now_) return false;
    }
    return true;
  }

  ValueId Victim() {
    ValueId best = kNoValue;
    double least = 0;
    for (ValueId value : device_) {
      if (value == kNoValue || BytesOf(value) == 0 || !CanGo(value)) continue;
      const double stale = 1 + static_cast<double>(clock_ - used_at_[static_cast<size_t>(value)]);
      const double h =
          static_cast<double>(MakerOf(value).cost + Around(value)) / (static_cast<double>(BytesOf(value)) * stale);
      if (best == kNoValue || h < least) best = value, least = h;
    }
    return best;
  }

  // Returns the costs of e*: of the evicted values from which it follows, or which follow from it.
  Nanoseconds Around(ValueId value) {
    Nanoseconds sum = 0;
    for (const bool up : {true, false}) {
      ++stamp_;
      std::vector<ValueId> open = {value};
      while (!open.empty()) {
        const ValueId at = open.back();
        open.pop_back();
        const auto visit = [&](ValueId next) {
          const auto n = static_cast<size_t>(next);
          if (IsThere(next) || Of(next).maker < 0 || !made_[n] || seen_[n] == stamp_) return;
          seen_[n] = stamp_;
          sum += MakerOf(next).cost;
          open.push_back(next);
        };
        if (up) {
          for (ValueId input : values_.inputs[static_cast<size_t>(Of(at).maker)]) visit(input);
        } else {
          for (OperatorId use : Of(at).uses) {
            for (ValueId output : values_.outputs[static_cast<size_t>(use)]) visit(output);
          }
        }
      }
    }
    return sum;
  }

  const Graph& graph_;
  const Values& values_;
  const Bytes budget_;
  std::vector<ValueId> device_;  // by storage
  std::vector<int> pins_;        // by storage
  std::vector<Nanoseconds> used_at_;
  std::vector<int64_t> seen_;
  std::vector<bool> made_;  // by value: at least once
  std::set<OperatorId> saved_;
  std::vector<Action> actions_;
  Bytes live_ = 0;
  Nanoseconds clock_ = 0;
  OperatorId now_ = 0, newest_ = -1;  // the program's operator at hand; the one that last ran for the first time
  int64_t stamp_ = 0;
  std::vector<std::vector<StorageId>> released_;  // by operator: what the program holds until then
  const size_t most_runs_;
  size_t runs_ = 0;
};

}  // namespace

absl::StatusOr<Schedule> ScheduleByDtr(const Graph& graph, const Values& values, Bytes budget, int most_runs) {
  return Runtime(graph, values, budget, most_runs).Run();
}

}  // namespace hotpack::remat
