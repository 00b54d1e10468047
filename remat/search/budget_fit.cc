#include <algorithm>

#include "remat/search/budget_fit_state.h"

namespace hotpack::remat {
namespace {

constexpr int kMaxRetries = 20;
constexpr BudgetFit kGivenUp = {.fits = false, .over = INT64_MAX, .time = INT64_MAX, .peak = INT64_MAX};

}  // namespace

BudgetFitter::State::State(const Graph& graph, const Values& values, const Machine& machine)
    : graph_(graph),
      values_(values),
      machine_(machine),
      can_go_(values.gaps.size()),
      conflicts_(values.gaps.size()),
      helped_(values.values.size()),
      device_(graph.storages.size()),
      host_(graph.storages.size()),
      next_use_(values.values.size()),
      pins_(values.values.size()),
      bytes_(values.values.size()),
      slot_(values.values.size()),
      again_(values.values.size()),
      starts_(graph.operators.size() + 1),
      expires_(graph.operators.size() + 1) {
  copies_.made.resize(graph.storages.size());
  copies_.copied.resize(graph.storages.size());
  closure_.has.resize(graph.operators.size());
  closure_.seen.resize(values.values.size());
  contents_.resize(graph.storages.size());
  for (size_t v = 0; v < values.values.size(); ++v) {
    bytes_[v] = graph.storages[At(values.values[v].storage)].bytes;
    contents_[At(values.values[v].storage)].push_back(static_cast<ValueId>(v));
    if (values.values[v].maker < 0 && graph.storages[At(values.values[v].storage)].away)
      copies_.away.push_back(static_cast<ValueId>(v));
  }
  for (size_t g = 0; g < values.gaps.size(); ++g) {
    const Gap& gap = values.gaps[g];
    const Storage& storage = graph.storages[At(values.values[At(gap.value)].storage)];
    can_go_[g] = gap.before > gap.after + 1 && bytes_[At(gap.value)] > 0 && !(storage.held && storage.movable) &&
                 CanBeMade(gap.value, gap.before, 0);
  }
  for (size_t i = 0; i < graph.operators.size(); ++i) starts_[i + 1] = starts_[i] + graph.operators[i].cost;
}

BudgetFit BudgetFitter::State::Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold,
                                   Schedule* schedule) {
  options_ = &options;
  hold_ = hold;
  for (GapId gap : forbidden_) can_go_[At(gap)] = true;
  forbidden_.clear();
  asked_ = *choice;
  for (const ValueId value : copies_.away) {
    if (values_.GapsOf(value) > 0) asked_.ways[At(Of(value).first_gap)] = GapAction::kOffload;
  }
  evictions_ = 0;
  copies_.fetches.clear();
  const bool evicts_to_host = options.may_evict && options.copy_price >= 0;
  if (evicts_to_host || std::find(asked_.ways.begin(), asked_.ways.end(), GapAction::kOffload) != asked_.ways.end()) {
    copies_.needs.assign(graph_.operators.size() + 1, 0);
    copies_.begins = starts_;
    if (options.fetching != Fetching::kInTime || evicts_to_host) {
      copies_.take_time = false;
      const bool whole = RunUntilSettled(nullptr);
      copies_.take_time = true;
      if (!whole) return kGivenUp;
      asked_ = tried_;
    }
    PlanFetches();
  }
  if (!RunUntilSettled(schedule)) return kGivenUp;
  for (size_t v = 0; v < tried_.tails.size(); ++v) tried_.tails[v] = std::min(tried_.tails[v], helped_[v]);
  std::swap(*choice, tried_);
  if (schedule != nullptr) {
    std::sort(schedule->saved_states.begin(), schedule->saved_states.end());
    const auto end = std::unique(schedule->saved_states.begin(), schedule->saved_states.end());
    schedule->saved_states.erase(end, schedule->saved_states.end());
  }
  return {.fits = over_ == 0,
          .over = over_,
          .time = std::max({clock_, copies_.to_host, copies_.to_device}),
          .peak = peak_,
          .evictions = evictions_,
          .copies = copies_.count};
}

bool BudgetFitter::State::RunUntilSettled(Schedule* schedule) {
  const int64_t went_before = evictions_;
  for (int i = 0; i < kMaxRetries; ++i) {
    evictions_ = went_before;
    tried_ = asked_;
    ways_ = &tried_.ways;
    tails_ = &tried_.tails;
    again_soon_ = false;
    Reset(schedule);
    const bool whole = Run();
    if (!again_soon_) return whole;
  }
  return false;
}

bool BudgetFitter::State::IsWanted(StorageId storage, OperatorId position) const {
  const std::vector<ValueId>& contents = contents_[At(storage)];
  for (auto value = contents.rbegin(); value != contents.rend(); ++value) {
    if (Of(*value).maker >= position) continue;
    return Of(*value).left || (!Of(*value).uses.empty() && Of(*value).uses.back() >= position);
  }
  return false;
}

bool BudgetFitter::State::CanBeMade(ValueId value, OperatorId position, int depth) const {
  constexpr int kDeepest = 64;  // changes in place followed
  const OperatorId maker = Of(value).maker;
  if (!MayRunAgain(maker) || depth > kDeepest) return false;
  const std::vector<ValueId>&outputs = values_.outputs[At(maker)], &inputs = values_.inputs[At(maker)];
  for (ValueId output : outputs) {
    if (output != value && Of(output).overwritten < position && IsWanted(Of(output).storage, position)) return false;
  }
  return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
    if (Of(input).overwritten >= position) return true;
    return Of(input).storage == Of(value).storage && CanBeMade(input, position, depth + 1);
  });
}

void BudgetFitter::State::Reset(Schedule* schedule) {
  schedule_ = schedule;
  if (schedule != nullptr) *schedule = {};
  std::fill(device_.begin(), device_.end(), kNoValue);
  std::fill(next_use_.begin(), next_use_.end(), 0);
  std::fill(pins_.begin(), pins_.end(), 0);
  std::fill(again_.begin(), again_.end(), false);
  resident_.clear();
  queue_.clear();
  since_sorted_ = 0;
  for (std::vector<ValueId>& list : expires_) list.clear();
  for (size_t v = 0; v < tails_->size(); ++v) {
    if (const OperatorId until = Until(static_cast<ValueId>(v)); until >= 0)
      expires_[At(until)].push_back(static_cast<ValueId>(v));
  }
  std::fill(helped_.begin(), helped_.end(), -1);
  std::fill(host_.begin(), host_.end(), kNoValue);
  std::fill(copies_.made.begin(), copies_.made.end(), 0);
  std::fill(copies_.copied.begin(), copies_.copied.end(), 0);
  copies_.copying.clear();
  copies_.next_copied = INT64_MAX;
  missed_.clear();
  copies_.deferred.clear();
  copies_.next_fetch = 0;
  if (options_->fetching == Fetching::kWhenIdle && copies_.take_time) {
    copies_.waiting = copies_.fetches;
    copies_.taken = copies_.needs;
  }
  copies_.host_bytes = copies_.count = 0;
  copies_.to_host = copies_.to_device = 0;
  live_ = peak_ = 0;
  clock_ = 0;
  now_ = -1;
}

bool BudgetFitter::State::Run() {
  for (size_t v = 0; v < values_.values.size(); ++v) {
    const StorageId storage = values_.values[v].storage;
    if (values_.values[v].maker < 0 && !graph_.storages[At(storage)].away) Place(static_cast<ValueId>(v));
  }
  for (const ValueId value : copies_.away) {
    host_[At(Of(value).storage)] = value;
    copies_.host_bytes += bytes_[At(value)];
  }
  peak_ = live_;
  over_ = std::max<Bytes>(0, live_ - options_->budget);  // the given contents alone may exceed the budget
  for (size_t v = 0; v < values_.values.size(); ++v) {
    if (values_.values[v].maker < 0) Settle(static_cast<ValueId>(v));
  }
  for (size_t i = 0; i < graph_.operators.size(); ++i) {
    now_ = static_cast<OperatorId>(i);
    if (!copies_.take_time) copies_.begins[i] = clock_;
    if (!copies_.fetches.empty()) FetchDue();
    if (!Make(values_.inputs[i]) || !RunOperator(now_, false)) return false;
    if (!copies_.copying.empty() && clock_ >= copies_.next_copied) DropCopied();
    for (ValueId value : expires_[i]) {
      if (IsThere(value) && GapOf(value) < 0) Settle(value);
    }
  }
  now_ = static_cast<OperatorId>(graph_.operators.size());
  if (!copies_.take_time) copies_.begins.back() = clock_;
  FetchDue();
  left_.clear();
  for (size_t v = 0; v < values_.values.size(); ++v) {
    if (values_.values[v].left) left_.push_back(static_cast<ValueId>(v));
  }
  return Make(left_);
}

void BudgetFitter::State::Settle(ValueId value) {
  if (!IsThere(value) || pins_[At(value)] > 0) return;
  const GapId gap = GapOf(value);
  if (gap < 0) {
    if (Until(value) > now_) return;
    // The last contents of a storage that ends the step on the host.
    const bool returns = graph_.storages[At(Of(value).storage)].away && Of(value).overwritten == kNever;
    returns ? CopyAway(value) : Drop(value);
    return;
  }
  const GapAction way = (*ways_)[At(gap)];
  if (way == GapAction::kOffload) return Copy(value, gap);
  if (way == GapAction::kKeep || !can_go_[At(gap)]) return;
  if (again_[At(value)] && way != GapAction::kRecomputeOnce) return;  // recomputed in this gap: held to its end
  Drop(value);
}

bool BudgetFitter::State::Find(ValueId value) {
  if (IsThere(value)) {
    helped_[At(value)] = now_;
    return true;
  }
  if (IsOnHost(value)) {
    if (std::find(copies_.fetch_now.begin(), copies_.fetch_now.end(), value) == copies_.fetch_now.end())
      copies_.fetch_now.push_back(value);
    return true;
  }
  const OperatorId maker = Of(value).maker;
  if (!MayRunAgain(maker)) {
    if (There(value) != kNoValue || Of(value).overwritten < now_) return false;
    asked_.tails[At(value)] = std::max(asked_.tails[At(value)], now_);  // this run goes on as if it were resident
    again_soon_ = true;
    Place(value);
    return true;
  }
  if (Of(value).overwritten >= now_ && GapOf(value) < 0) missed_.push_back({value, now_});
  if (closure_.has[At(maker)]) return true;
  closure_.has[At(maker)] = true;
  closure_.operators.push_back(maker);
  const std::vector<ValueId>& inputs = values_.inputs[At(maker)];
  return std::all_of(inputs.begin(), inputs.end(), [this](ValueId input) { return Find(input); });
}

bool BudgetFitter::State::Make(const std::vector<ValueId>& wanted) {
  closure_.operators.clear();
  copies_.fetch_now.clear();
  bool found = true;
  for (ValueId value : wanted) {
    ++pins_[At(value)];
    if (found && !IsThere(value) && !Find(value)) {
      Forbid(GapOf(value));
      found = false;
    }
  }
  if (closure_.operators.empty() && copies_.fetch_now.empty()) return found;
  std::sort(closure_.operators.begin(), closure_.operators.end());
  for (OperatorId op : closure_.operators) {
    for (ValueId input : values_.inputs[At(op)]) ++pins_[At(input)];
  }
  for (ValueId value : copies_.fetch_now) {
    if (IsOnHost(value)) Fetch(value);
  }
  const bool fetches = options_->fetching == Fetching::kWhenIdle && !copies_.fetches.empty();
  for (OperatorId op : closure_.operators) {
    if (found && fetches) FetchWhenIdle(op);
    found = found && RunOperator(op, true);
    closure_.has[At(op)] = false;
  }
  if (!found && !again_soon_) {
    for (ValueId value : wanted) {
      if (conflict_ && !IsThere(value)) Forbid(GapOf(value));
    }
  }
  return found;
}

void BudgetFitter::State::Forbid(GapId gap) {
  if (gap < 0 || !can_go_[At(gap)]) return;
  constexpr int kOften = 100;
  can_go_[At(gap)] = false;
  again_soon_ = true;
  if (++conflicts_[At(gap)] < kOften) forbidden_.push_back(gap);
}

bool BudgetFitter::State::RunOperator(OperatorId number, bool again) {
  const Operator& op = graph_.operators[At(number)];
  const std::vector<ValueId>&inputs = values_.inputs[At(number)], &outputs = values_.outputs[At(number)];
  conflict_ = false;  // reset, since the run may be given up
  for (ValueId input : inputs) {
    if (!IsThere(input)) return conflict_ = true, false;
  }
  // Whether the value is dropped after this run: it has no further use, or is not held.
  const auto goes = [&](ValueId value) {
    if (pins_[At(value)] > 1) return false;
    if (again) {
      const GapId gap = GapOf(value);
      return gap < 0 ? Until(value) <= now_ : again_[At(value)] && (*ways_)[At(gap)] == GapAction::kRecomputeOnce;
    }
    const Value& of = Of(value);
    return At(next_use_[At(value)] + 1) == of.uses.size() && !of.left && Until(value) <= now_;
  };
  Bytes needed = op.workspace;
  for (ValueId output : outputs) {
    const ValueId there = There(output);
    if (there == kNoValue) needed += bytes_[At(output)];
    if (there == kNoValue || there == output) continue;
    const bool changed = std::find(inputs.begin(), inputs.end(), there) != inputs.end();
    if (again && !(changed && pins_[At(there)] <= 1)) return conflict_ = true, false;
    if (again && GapOf(there) >= 0 && Of(there).overwritten != number) return conflict_ = true, false;
  }
  closure_.taken.clear();
  for (size_t pair = 0; pair < op.in_place.size(); ++pair) {
    const StorageId read = op.in_place[pair].read, made = op.in_place[pair].made;
    const ValueId value = device_[At(read)];
    if (value == kNoValue || device_[At(made)] != kNoValue || !goes(value)) continue;
    // In a larger storage the unused rest would stay as long as the result.
    if (graph_.storages[At(read)].bytes != graph_.storages[At(made)].bytes) continue;
    const bool twice = std::any_of(closure_.taken.begin(), closure_.taken.end(), [&](int32_t other) {
      return op.in_place[At(other)].read == read || op.in_place[At(other)].made == made;
    });
    if (twice) continue;
    closure_.taken.push_back(static_cast<int32_t>(pair));
    needed -= graph_.storages[At(made)].bytes;
  }
  if (live_ + needed > options_->budget) {
    Pin(outputs, 1);  // overwritten contents have the memory that the outputs need
    if (!options_->may_evict || !Evict(live_ + needed - options_->budget)) over_ += live_ + needed - options_->budget;
    if (over_ > options_->max_over) return false;
    Pin(outputs, -1);
  }
  if (schedule_ != nullptr) {
    schedule_->actions.push_back({ActionKind::kRun, number, closure_.taken});
    if (again && op.random) schedule_->saved_states.push_back(number);
  }
  peak_ = std::max(peak_, live_ + needed);
  if (!copies_.take_time) copies_.needs[At(now_)] = std::max(copies_.needs[At(now_)], live_ + needed);
  Wait(op);
  for (int32_t pair : closure_.taken) Remove(device_[At(op.in_place[At(pair)].read)]);
  clock_ += op.cost;
  if (clock_ > options_->max_time) return false;
  for (ValueId output : outputs) copies_.made[At(Of(output).storage)] = clock_;
  for (ValueId input : inputs) {
    --pins_[At(input)];
    if (!again) ++next_use_[At(input)], again_[At(input)] = false;
  }
  for (ValueId output : outputs) {
    const ValueId there = There(output);
    if (there == output) continue;
    if (there != kNoValue) Remove(there);
    Place(output);
    again_[At(output)] = again;
  }
  for (ValueId input : inputs) {
    if (!again || again_[At(input)] || GapOf(input) < 0) Settle(input);
  }
  for (ValueId output : outputs) Settle(output);
  return true;
}

BudgetFitter::BudgetFitter(const Graph& graph, const Values& values, const Machine& machine)
    : state_(std::make_unique<State>(graph, values, machine)) {}
BudgetFitter::~BudgetFitter() = default;

BudgetFit BudgetFitter::Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold,
                            Schedule* schedule) {
  return state_->Fit(options, choice, hold, schedule);
}
bool BudgetFitter::CanGo(GapId gap) const { return state_->can_go(gap); }
const std::vector<std::pair<ValueId, OperatorId>>& BudgetFitter::Missed() const { return state_->missed(); }
bool BudgetFitter::CanSwap(GapId gap) const { return state_->can_swap(gap); }

Decisions NothingGoes(const Values& values) {
  return {std::vector<GapAction>(values.gaps.size(), GapAction::kKeep),
          std::vector<OperatorId>(values.values.size(), -1)};
}

}  // namespace hotpack::remat
