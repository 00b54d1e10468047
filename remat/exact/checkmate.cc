#include "remat/exact/checkmate.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "remat/exact/runs.h"

namespace hotpack::remat {
namespace {

constexpr Bytes kMaxUnits = Bytes{1} << 24;

// A linear expression: a constant, and columns with factors.
struct Sum {
  double constant = 0;
  std::vector<std::pair<int32_t, double>> terms;
};

class Builder {
 public:
  Builder(const Graph& graph, const Values& values, Bytes budget, const CheckmateOptions& options)
      : graph_(graph), values_(values), options_(options), operators_(static_cast<int32_t>(graph.operators.size())) {
    const bool more = std::any_of(values.values.begin(), values.values.end(),
                                  [](const Value& value) { return value.left && value.maker >= 0; });
    model_.stages = operators_ + (more ? 1 : 0);
    model_.unit = Unit(budget);
    budget_ = options.for_bound ? (budget + model_.unit - 1) / model_.unit : budget / model_.unit;
  }

  absl::StatusOr<CheckmateModel> Build() {
    if (absl::Status status = CheckSize(); !status.ok()) return status;
    const int32_t one = Add({.name = "one", .lower = 1, .upper = 1, .cost = static_cast<double>(TotalCost(graph_))});
    static_cast<void>(one);
    MakeRuns();
    MakeHeld();
    for (int32_t t = 0; t < model_.stages; ++t) {
      Available(t);
      Exclusive(t);
      Memory(t);
    }
    Comment();
    return std::move(model_);
  }

 private:
  static constexpr int32_t kZero = -1, kOne = -2;  // constants instead of columns

  const Value& Of(ValueId value) const { return values_.values[static_cast<size_t>(value)]; }
  const Operator& Op(OperatorId op) const { return graph_.operators[static_cast<size_t>(op)]; }
  double BytesOf(ValueId value) const { return Units(graph_.storages[static_cast<size_t>(Of(value).storage)].bytes); }
  double Units(Bytes bytes) const {
    return static_cast<double>(options_.for_bound ? bytes / model_.unit : (bytes + model_.unit - 1) / model_.unit);
  }
  bool Changes(OperatorId op, ValueId value) const {
    const std::vector<StorageId>& updates = Op(op).updates;
    return std::find(updates.begin(), updates.end(), Of(value).storage) != updates.end();
  }
  // Whether the value is resident from the beginning to the end, so that it needs no columns.
  bool IsConstant(ValueId value) const { return Of(value).maker < 0 && Of(value).left; }

  Bytes Unit(Bytes budget) const {
    Bytes common = 0;
    for (const Storage& storage : graph_.storages) common = std::gcd(common, storage.bytes);
    for (const Operator& op : graph_.operators) common = std::gcd(common, op.workspace);
    return std::max({common, (budget + kMaxUnits - 1) / kMaxUnits, Bytes{1}});
  }

  absl::Status CheckSize() const {
    int64_t uses = 0;
    for (const Value& value : values_.values) uses += 3 + static_cast<int64_t>(value.uses.size());
    const int64_t columns = int64_t{model_.stages} * (2 * operators_ + uses) / 2;  // approximately
    if (columns <= options_.most_columns) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the model has about ", columns, " columns, more than ", options_.most_columns));
  }

  int32_t Add(Column column) {
    model_.program.columns.push_back(std::move(column));
    return static_cast<int32_t>(model_.program.columns.size()) - 1;
  }
  static void AddTo(Sum* sum, int32_t column, double factor) {
    if (column == kOne) sum->constant += factor;
    if (column < 0) return;
    const auto there =
        std::find_if(sum->terms.begin(), sum->terms.end(), [column](const auto& term) { return term.first == column; });
    if (there != sum->terms.end()) {
      there->second += factor;
    } else {
      sum->terms.push_back({column, factor});
    }
  }
  // Adds the row sum ≤ right. Rows that always hold are left out. A row without terms that never holds gets a term with
  // factor 0.
  void AtMost(Sum sum, double right) {
    right -= sum.constant;
    double most = 0;
    for (const auto& [column, factor] : sum.terms)
      most += factor > 0 ? factor * model_.program.columns[static_cast<size_t>(column)].upper : 0;
    if (most <= right) return;
    if (sum.terms.empty()) sum.terms.push_back({0, 0.0});
    model_.program.rows.push_back({Sense::kAtMost, right, std::move(sum.terms)});
  }

  int32_t Run(int32_t t, OperatorId op) const {
    if (op < 0 || op > t) return kZero;
    return model_.runs[static_cast<size_t>(t)][static_cast<size_t>(op)];
  }
  int32_t Held(int32_t t, ValueId value) const { return held_[static_cast<size_t>(t)][static_cast<size_t>(value)]; }

  void MakeRuns() {
    static_assert(kNeverRuns == kZero && kAlwaysRuns == kOne);
    model_.runs.assign(static_cast<size_t>(model_.stages),
                       std::vector<int32_t>(static_cast<size_t>(operators_), kNeverRuns));
    for (int32_t t = 0; t < model_.stages; ++t) {
      for (OperatorId op = 0; op < std::min(t, operators_); ++op) {
        if (Op(op).once || values_.outputs[static_cast<size_t>(op)].empty()) continue;
        model_.runs[static_cast<size_t>(t)][static_cast<size_t>(op)] =
            Add({.name = absl::StrCat("R_", t, "_", op), .integer = true, .cost = static_cast<double>(Op(op).cost)});
      }
      if (t < operators_) model_.runs[static_cast<size_t>(t)][static_cast<size_t>(t)] = kAlwaysRuns;
    }
  }

  // Whether no operator can use the value in stage t or later.
  bool IsDead(ValueId value, int32_t t) const {
    const Value& of = Of(value);
    if (of.left) return false;
    return std::all_of(of.uses.begin(), of.uses.end(), [&](OperatorId op) {
      return op < t && (Op(op).once || values_.outputs[static_cast<size_t>(op)].empty());
    });
  }

  void MakeHeld() {
    const size_t count = values_.values.size();
    held_.assign(static_cast<size_t>(model_.stages) + 1, std::vector<int32_t>(count, kZero));
    for (int32_t t = 0; t <= model_.stages; ++t) {
      for (size_t v = 0; v < count; ++v) {
        const auto value = static_cast<ValueId>(v);
        int32_t& held = held_[static_cast<size_t>(t)][v];
        if (IsConstant(value)) {
          held = kOne;
        } else if (t == model_.stages) {
          held = Of(value).left ? kOne : kZero;
        } else if (Of(value).maker < t && !IsDead(value, t)) {
          held = Add({.name = absl::StrCat("S_", t, "_", v), .integer = true});
        }
      }
    }
  }

  // (1b) and (1c).
  void Available(int32_t t) {
    for (OperatorId op = 0; op <= std::min(t, operators_ - 1); ++op) {
      if (Run(t, op) == kZero) continue;
      for (ValueId input : values_.inputs[static_cast<size_t>(op)]) AtMostThere(Run(t, op), t, input);
    }
    for (size_t v = 0; v < values_.values.size(); ++v) {
      const auto value = static_cast<ValueId>(v);
      if (Held(t + 1, value) != kZero) AtMostThere(Held(t + 1, value), t, value);
    }
  }
  void AtMostThere(int32_t column, int32_t t, ValueId value) {
    Sum sum;
    AddTo(&sum, column, 1);
    AddTo(&sum, Held(t, value), -1);
    AddTo(&sum, Run(t, Of(value).maker), -1);
    AtMost(std::move(sum), 0);
  }

  void NotBoth(int32_t one, int32_t other) {
    if (one == kZero || other == kZero) return;
    Sum sum;
    AddTo(&sum, one, 1);
    AddTo(&sum, other, 1);
    AtMost(std::move(sum), 1);
  }

  // At most one of a storage's contents is resident: contents that a run overwrites are not held across it. Uses of
  // contents come before their overwriting in the program, and so in a stage.
  void Exclusive(int32_t t) {
    if (of_storage_.empty()) {
      of_storage_.resize(graph_.storages.size());
      for (size_t v = 0; v < values_.values.size(); ++v)
        of_storage_[static_cast<size_t>(values_.values[v].storage)].push_back(static_cast<ValueId>(v));
    }
    for (const std::vector<ValueId>& of : of_storage_) {
      Sum sum;
      for (size_t b = 0; b < of.size(); ++b) {
        AddTo(&sum, Held(t, of[b]), 1);
        for (size_t a = 0; a < b; ++a) {
          NotBoth(Held(t, of[b]), Run(t, Of(of[a]).maker));
          NotBoth(Held(t + 1, of[a]), Run(t, Of(of[b]).maker));
        }
      }
      if (of.size() > 1) AtMost(std::move(sum), 1);
    }
    // An operator that runs again makes all its results, so none of them need be held up to that run.
    for (OperatorId op = 0; op < std::min(t, operators_); ++op) {
      for (ValueId output : values_.outputs[static_cast<size_t>(op)]) NotBoth(Held(t, output), Run(t, op));
    }
  }
  bool OneResult(OperatorId op) const { return values_.outputs[static_cast<size_t>(op)].size() == 1; }

  void Memory(int32_t t) {
    Sum there;  // V_t_k
    for (size_t v = 0; v < values_.values.size(); ++v) {
      const auto value = static_cast<ValueId>(v);
      if (Held(t, value) >= 0) there.terms.push_back({Held(t, value), BytesOf(value)});  // each column once
      if (Held(t, value) == kOne) there.constant += BytesOf(value);
    }
    for (OperatorId op = 0; op <= std::min(t, operators_ - 1); ++op) {
      if (Run(t, op) == kZero) continue;
      const Sum made = Made(t, op);
      std::vector<std::pair<ValueId, int32_t>> freed = Freed(t, op);
      Sum now = there;
      Append(made, &now);
      Sum with_workspace = now;
      AddTo(&with_workspace, Run(t, op), Units(Op(op).workspace));
      TakeOver(op, freed, &with_workspace);
      AtMost(std::move(with_workspace), static_cast<double>(budget_));
      if (made.constant == 0 && made.terms.empty() && freed.empty()) continue;
      for (const auto& [value, column] : freed) AddTo(&now, column, -BytesOf(value));
      there = {};
      const int32_t next = Add({.name = absl::StrCat("V_", t, "_", op + 1), .upper = static_cast<double>(budget_)});
      AddTo(&there, next, 1);
      AddTo(&now, next, -1);
      model_.program.rows.push_back({Sense::kEqual, -now.constant, std::move(now.terms)});
    }
  }
  static void Append(const Sum& from, Sum* to) {
    to->constant += from.constant;
    to->terms.insert(to->terms.end(), from.terms.begin(), from.terms.end());
  }

  // Returns the results with new memory. Contents changed in place stay where they are.
  Sum Made(int32_t t, OperatorId op) const {
    Sum sum;
    for (ValueId value : values_.outputs[static_cast<size_t>(op)]) {
      if (!Changes(op, value) && BytesOf(value) > 0) AddTo(&sum, Run(t, op), BytesOf(value));
    }
    return sum;
  }

  // (5) Returns the values that may be freed after `op` in stage t: its operands and results, except those that it
  // changes.
  std::vector<std::pair<ValueId, int32_t>> Freed(int32_t t, OperatorId op) {
    std::vector<std::pair<ValueId, int32_t>> freed;
    const auto add = [&](ValueId value) {
      if (IsConstant(value) || BytesOf(value) == 0) return;
      std::vector<int32_t> factors = {Held(t + 1, value)};
      for (OperatorId user : Of(value).uses) {
        if (user > op) factors.push_back(Run(t, user));
      }
      std::erase(factors, kZero);
      if (std::find(factors.begin(), factors.end(), kOne) != factors.end()) return;
      freed.push_back({value, AddFreed(t, op, value, factors)});
    };
    for (ValueId input : values_.inputs[static_cast<size_t>(op)]) {
      if (!Changes(op, input)) add(input);
    }
    for (ValueId output : values_.outputs[static_cast<size_t>(op)]) add(output);
    return freed;
  }
  int32_t AddFreed(int32_t t, OperatorId op, ValueId value, const std::vector<int32_t>& factors) {
    const int32_t column = Add({.name = absl::StrCat("F_", t, "_", value, "_", op), .integer = options_.as_published});
    if (options_.as_published) {
      // hazards = (1 - R) + Σ factors ≤ κ (1 - F); 1 - F ≤ hazards
      const double most = 1 + static_cast<double>(factors.size());
      Sum at_most = {.constant = 1, .terms = {{column, most}}}, at_least = {.constant = -1, .terms = {{column, -1.0}}};
      AddTo(&at_most, Run(t, op), -1);
      AddTo(&at_least, Run(t, op), 1);
      for (int32_t factor : factors) AddTo(&at_most, factor, 1), AddTo(&at_least, factor, -1);
      AtMost(std::move(at_most), most);
      AtMost(std::move(at_least), -1);
      return column;
    }
    Sum runs;
    AddTo(&runs, column, 1);
    AddTo(&runs, Run(t, op), -1);
    AtMost(std::move(runs), 0);
    for (int32_t factor : factors) NotBoth(column, factor);
    return column;
  }

  // Subtracts the result's memory where it takes over a freed operand's while the operator runs.
  void TakeOver(OperatorId op, const std::vector<std::pair<ValueId, int32_t>>& freed, Sum* sum) const {
    if (!OneResult(op)) return;
    for (const InPlace& pair : Op(op).in_place) {
      if (graph_.storages[static_cast<size_t>(pair.read)].bytes !=
          graph_.storages[static_cast<size_t>(pair.made)].bytes)
        continue;
      const auto found = std::find_if(freed.begin(), freed.end(),
                                      [&](const auto& each) { return Of(each.first).storage == pair.read; });
      if (found == freed.end()) continue;
      AddTo(sum, found->second, -BytesOf(found->first));
      return;
    }
  }

  void Comment() {
    const LinearProgram& program = model_.program;
    const auto integers = std::count_if(program.columns.begin(), program.columns.end(),
                                        [](const Column& column) { return column.integer; });
    model_.program.comments = {
        absl::StrCat("Rematerialization (Jain et al. 2020): ", operators_, " operators, ", model_.stages, " stages, ",
                     integers, " integer columns"),
        absl::StrCat("Memory in units of ", model_.unit, " bytes; the objective is the step's time in ns")};
  }

  const Graph& graph_;
  const Values& values_;
  const CheckmateOptions& options_;
  const int32_t operators_;
  Bytes budget_ = 0;  // in units
  CheckmateModel model_;
  std::vector<std::vector<int32_t>> held_;  // [stage][value]
  std::vector<std::vector<ValueId>> of_storage_;
};

}  // namespace

absl::StatusOr<CheckmateModel> BuildCheckmate(const Graph& graph, const Values& values, Bytes budget,
                                              const CheckmateOptions& options) {
  if (budget < 1) return absl::InvalidArgumentError(absl::StrCat("a budget of ", budget, " bytes"));
  Bytes given = 0;
  for (const Storage& storage : graph.storages) given += storage.given ? storage.bytes : 0;
  if (given > budget) {
    return absl::ResourceExhaustedError(absl::StrCat("a budget of ", budget, " bytes: what is given takes ", given));
  }
  return Builder(graph, values, budget, options).Build();
}

LinearProgram Relaxed(LinearProgram program) {
  for (Column& column : program.columns) column.integer = false;
  return program;
}

absl::StatusOr<Schedule> ScheduleOfSolution(const Graph& graph, const Values& values, const CheckmateModel& model,
                                            const SolverValues& solution) {
  if (!solution.has_solution) return absl::NotFoundError(absl::StrCat("the solver has no solution: ", solution.status));
  if (solution.only_columns) {
    absl::flat_hash_set<absl::string_view> known;
    for (const Column& column : model.program.columns) known.insert(column.name);
    for (const auto& [name, value] : solution.columns) {
      if (!known.contains(name))
        return absl::InvalidArgumentError(absl::StrCat("the model has no column ", name.substr(0, 40)));
    }
  }
  std::vector<OperatorId> runs;
  for (size_t t = 0; t < model.runs.size(); ++t) {
    for (size_t op = 0; op < model.runs[t].size(); ++op) {
      const int32_t column = model.runs[t][op];
      if (column == kNeverRuns) continue;
      if (column != kAlwaysRuns) {
        const std::string& name = model.program.columns[static_cast<size_t>(column)].name;
        const auto found = solution.columns.find(name);
        if (found == solution.columns.end() && !solution.zero_if_missing)
          return absl::InvalidArgumentError(absl::StrCat("column ", name, " is missing"));
        if (found == solution.columns.end() || found->second < 0.5) continue;
      }
      runs.push_back(static_cast<OperatorId>(op));
    }
  }
  return ScheduleOfRuns(graph, values, runs);
}

}  // namespace hotpack::remat
