#include "planner/fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace hotpack::planner {
namespace {

constexpr ValueId kNothing = -1;
constexpr int kMostRetries = 20;
constexpr int kMostNeighbors = 48;

size_t At(int32_t id) { return static_cast<size_t>(id); }

// A hash as a number in [-1, 1] (splitmix64, Steele et al. 2014).
double Drawn(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

}  // namespace

class Fitter::State {
 public:
  State(const Graph& graph, const Values& values, const Machine& machine)
      : graph_(graph), values_(values), machine_(machine), can_go_(values.gaps.size()), conflicts_(values.gaps.size()), helped_(values.values.size()), device_(graph.storages.size()), host_(graph.storages.size()), made_(graph.storages.size()), copied_(graph.storages.size()),
        next_use_(values.values.size()), pins_(values.values.size()), bytes_(values.values.size()), slot_(values.values.size()),
        again_(values.values.size()), in_closure_(graph.operators.size()), has_run_(graph.operators.size()), seen_(values.values.size()),
        starts_(graph.operators.size() + 1), expires_(graph.operators.size() + 1) {
    contents_.resize(graph.storages.size());
    for (size_t v = 0; v < values.values.size(); ++v) {
      bytes_[v] = graph.storages[At(values.values[v].storage)].bytes;
      contents_[At(values.values[v].storage)].push_back(static_cast<ValueId>(v));
    }
    for (size_t g = 0; g < values.gaps.size(); ++g) {
      const Gap& gap = values.gaps[g];
      can_go_[g] = gap.before > gap.after + 1 && bytes_[At(gap.value)] > 0 && CanBeMade(gap.value, gap.before, 0);
    }
    for (size_t i = 0; i < graph.operators.size(); ++i) starts_[i + 1] = starts_[i] + graph.operators[i].cost;
  }

  bool can_go(GapId gap) const { return can_go_[At(gap)]; }
  bool can_swap(GapId gap) const {
    const Gap& of = values_.gaps[At(gap)];
    return of.before > of.after + 1 && bytes_[At(of.value)] > 0;
  }

  Fitted Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold, Schedule* schedule) {
    options_ = &options;
    hold_ = hold;
    for (GapId gap : forbidden_) can_go_[At(gap)] = true;
    forbidden_.clear();
    asked_ = *choice;
    for (int i = 0; i < kMostRetries; ++i) {
      tried_ = asked_;
      ways_ = &tried_.ways;
      tails_ = &tried_.tails;
      again_soon_ = false;
      Reset(schedule);
      const bool whole = Run();
      if (!whole && !again_soon_) break;
      if (again_soon_) continue;
      for (size_t v = 0; v < tried_.tails.size(); ++v) tried_.tails[v] = std::min(tried_.tails[v], helped_[v]);
      std::swap(*choice, tried_);
      if (schedule != nullptr) {
        std::sort(schedule->saved_states.begin(), schedule->saved_states.end());
        const auto end = std::unique(schedule->saved_states.begin(), schedule->saved_states.end());
        schedule->saved_states.erase(end, schedule->saved_states.end());
      }
      return {.fits = over_ == 0, .over = over_, .time = std::max({clock_, to_host_, to_device_}), .peak = peak_, .went = went_};
    }
    return {.fits = false, .over = INT64_MAX, .time = INT64_MAX, .peak = INT64_MAX, .went = went_};
  }

 private:
  const Value& Of(ValueId value) const { return values_.values[At(value)]; }
  ValueId& There(ValueId value) { return device_[At(Of(value).storage)]; }
  bool IsThere(ValueId value) const { return device_[At(Of(value).storage)] == value; }
  bool MayRunAgain(OperatorId op) const { return op >= 0 && !graph_.operators[At(op)].once; }

  // Until when it is there although nobody will use it.
  OperatorId Until(ValueId value) const { return (*tails_)[At(value)]; }

  // Whether anything behind `position` uses what the storage holds then.
  bool IsWanted(StorageId storage, OperatorId position) const {
    const std::vector<ValueId>& contents = contents_[At(storage)];
    for (auto value = contents.rbegin(); value != contents.rend(); ++value) {
      if (Of(*value).maker >= position) continue;
      return Of(*value).left || (!Of(*value).uses.empty() && Of(*value).uses.back() >= position);
    }
    return false;
  }

  // Whether operators could make it again before `position`, if all that has not been overwritten by then is there.
  bool CanBeMade(ValueId value, OperatorId position, int depth) const {
    constexpr int kDeepest = 64;  // changes in place
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

  void Reset(Schedule* schedule) {
    schedule_ = schedule;
    if (schedule != nullptr) *schedule = {};
    std::fill(device_.begin(), device_.end(), kNothing);
    std::fill(next_use_.begin(), next_use_.end(), 0);
    std::fill(pins_.begin(), pins_.end(), 0);
    std::fill(again_.begin(), again_.end(), false);
    std::fill(has_run_.begin(), has_run_.end(), false);
    resident_.clear();
    queue_.clear();
    since_sorted_ = 0;
    for (std::vector<ValueId>& list : expires_) list.clear();
    for (size_t v = 0; v < tails_->size(); ++v) {
      if (const OperatorId until = Until(static_cast<ValueId>(v)); until >= 0) expires_[At(until)].push_back(static_cast<ValueId>(v));
    }
    std::fill(helped_.begin(), helped_.end(), -1);
    std::fill(host_.begin(), host_.end(), kNothing);
    std::fill(made_.begin(), made_.end(), 0);
    std::fill(copied_.begin(), copied_.end(), 0);
    copying_.clear();
    fetches_.clear();
    next_fetch_ = 0;
    host_bytes_ = 0;
    to_host_ = to_device_ = 0;
    live_ = peak_ = 0;
    clock_ = 0;
    went_ = 0;
    now_ = -1;
  }

  bool Run() {
    FindFetches();
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].maker < 0) Place(static_cast<ValueId>(v));
    }
    peak_ = live_;
    over_ = std::max<Bytes>(0, live_ - options_->budget);  // what is given does not fit
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].maker < 0) Settle(static_cast<ValueId>(v));
    }
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      now_ = static_cast<OperatorId>(i);
      if (!fetches_.empty()) FetchDue();
      if (!Make(values_.inputs[i]) || !RunOperator(now_, false)) return false;
      if (!copying_.empty()) DropCopied();
      for (ValueId value : expires_[i]) {
        if (IsThere(value) && GapOf(value) < 0) Drop(value);
      }
    }
    now_ = static_cast<OperatorId>(graph_.operators.size());
    FetchDue();
    left_.clear();
    for (size_t v = 0; v < values_.values.size(); ++v) {
      if (values_.values[v].left) left_.push_back(static_cast<ValueId>(v));
    }
    return Make(left_);
  }

  // The gap that is open, or -1: nobody will want it.
  GapId GapOf(ValueId value) const {
    const Value& of = Of(value);
    const int32_t next = next_use_[At(value)];
    if (At(next) == of.uses.size() && !of.left) return -1;
    return of.first_gap + next;
  }

  void Place(ValueId value) {
    There(value) = value;
    live_ += bytes_[At(value)];
    slot_[At(value)] = static_cast<int32_t>(resident_.size());
    resident_.push_back(value);
  }
  void Remove(ValueId value) {
    There(value) = kNothing;
    const int32_t slot = slot_[At(value)];
    slot_[At(resident_.back())] = slot;
    resident_[At(slot)] = resident_.back();
    resident_.pop_back();
    live_ -= bytes_[At(value)];
    again_[At(value)] = false;
  }
  void Drop(ValueId value) {
    clock_ = std::max(clock_, copied_[At(Of(value).storage)]);
    if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kDrop, Of(value).storage});
    Remove(value);
  }

  // What becomes of a value that was just made or used.
  void Settle(ValueId value) {
    if (!IsThere(value) || pins_[At(value)] > 0) return;
    const GapId gap = GapOf(value);
    if (gap < 0) {
      if (Until(value) <= now_) Drop(value);
      return;
    }
    const Way way = (*ways_)[At(gap)];
    if (way == Way::kSwap) return Copy(value, gap);
    if (way == Way::kHold || !can_go_[At(gap)]) return;
    if (again_[At(value)] && way != Way::kAgainOnce) return;  // made again in this gap: held to its end
    Drop(value);
  }

  static Nanoseconds CopyTime(Bytes bytes, double bytes_per_ns) {
    return static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / bytes_per_ns));
  }

  // Begins its copy to the host, if there is none; it goes when that has ended.
  void Copy(ValueId value, GapId gap) {
    if (again_[At(value)] || !can_swap(gap)) return;
    const StorageId storage = Of(value).storage;
    if (host_[At(storage)] != value) {
      const Bytes more = host_[At(storage)] == kNothing ? bytes_[At(value)] : 0;
      if (host_bytes_ + more > machine_.host_memory) return;
      host_bytes_ += more;
      host_[At(storage)] = value;
      to_host_ = std::max(to_host_, made_[At(storage)]) + CopyTime(bytes_[At(value)], machine_.bytes_per_ns_to_host);
      copied_[At(storage)] = to_host_;
      if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kOffload, storage});
    }
    copying_.push_back({value, gap});
  }
  // Drops what has been copied by now, so that nothing waits for a copy.
  void DropCopied() {
    std::erase_if(copying_, [this](const std::pair<ValueId, GapId>& each) {
      const auto [value, gap] = each;
      if (!IsThere(value) || GapOf(value) != gap) return true;
      if (copied_[At(Of(value).storage)] > clock_ || pins_[At(value)] > 0) return false;
      Drop(value);
      return true;
    });
  }

  // Before which operator each copy back has to begin so that it ends in time: the last one first, each as late as the one after it leaves
  // the engine, by the program's own times.
  void FindFetches() {
    for (size_t g = 0; g < ways_->size(); ++g) {
      if ((*ways_)[g] == Way::kSwap) fetches_.push_back({values_.gaps[g].before, static_cast<GapId>(g)});
    }
    if (fetches_.empty()) return;
    std::sort(fetches_.rbegin(), fetches_.rend());
    Nanoseconds free = INT64_MAX;
    for (auto& [at, gap] : fetches_) {
      const Gap& of = values_.gaps[At(gap)];
      free = std::min(free, starts_[At(at)]) - CopyTime(bytes_[At(of.value)], machine_.bytes_per_ns_to_device);
      const auto op = std::upper_bound(starts_.begin(), starts_.end(), free) - starts_.begin() - 1;  // the last that starts by then
      at = std::clamp(static_cast<OperatorId>(op), of.after + 1, of.before);
    }
    std::sort(fetches_.begin(), fetches_.end());
  }
  void FetchDue() {
    for (; next_fetch_ < fetches_.size() && fetches_[next_fetch_].first <= now_; ++next_fetch_) {
      const GapId gap = fetches_[next_fetch_].second;
      const ValueId value = values_.gaps[At(gap)].value;
      std::erase_if(copying_, [value](const auto& each) { return each.first == value; });
      if (GapOf(value) == gap && IsOnHost(value)) Fetch(value);
    }
  }
  bool IsOnHost(ValueId value) const {
    const StorageId storage = Of(value).storage;
    return device_[At(storage)] == kNothing && host_[At(storage)] == value;
  }
  void Fetch(ValueId value) {
    const Bytes above = live_ + bytes_[At(value)] - options_->budget;
    if (above > 0 && (!options_->mends || !MakeRoom(above))) over_ += live_ + bytes_[At(value)] - options_->budget;
    const StorageId storage = Of(value).storage;
    Place(value);
    peak_ = std::max(peak_, live_);
    to_device_ = std::max({to_device_, clock_, copied_[At(storage)]}) + CopyTime(bytes_[At(value)], machine_.bytes_per_ns_to_device);
    made_[At(storage)] = to_device_;
    if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kPrefetch, storage});
  }

  // Adds to the closure what has to run again so that the value is there.
  bool Find(ValueId value) {
    if (IsThere(value)) {
      helped_[At(value)] = now_;
      return true;
    }
    if (IsOnHost(value)) {
      if (std::find(fetch_now_.begin(), fetch_now_.end(), value) == fetch_now_.end()) fetch_now_.push_back(value);
      return true;
    }
    const OperatorId maker = Of(value).maker;
    if (!MayRunAgain(maker)) {
      if (There(value) != kNothing || Of(value).overwritten < now_) return false;
      asked_.tails[At(value)] = std::max(asked_.tails[At(value)], now_);  // there next time; now as if it were
      again_soon_ = true;
      Place(value);
      return true;
    }
    if (in_closure_[At(maker)]) return true;
    in_closure_[At(maker)] = true;
    closure_.push_back(maker);
    const std::vector<ValueId>& inputs = values_.inputs[At(maker)];
    return std::all_of(inputs.begin(), inputs.end(), [this](ValueId input) { return Find(input); });
  }

  bool Make(const std::vector<ValueId>& wanted) {
    closure_.clear();
    fetch_now_.clear();
    bool found = true;
    for (ValueId value : wanted) {
      ++pins_[At(value)];
      if (found && !IsThere(value) && !Find(value)) {
        Forbid(GapOf(value));
        found = false;
      }
    }
    if (closure_.empty() && fetch_now_.empty()) return found;
    std::sort(closure_.begin(), closure_.end());
    for (OperatorId op : closure_) {
      for (ValueId input : values_.inputs[At(op)]) ++pins_[At(input)];
    }
    for (ValueId value : fetch_now_) {
      if (IsOnHost(value)) Fetch(value);
    }
    for (OperatorId op : closure_) {
      found = found && RunOperator(op, true);
      in_closure_[At(op)] = false;
    }
    if (!found && !again_soon_) {
      for (ValueId value : wanted) {
        if (conflict_ && !IsThere(value)) Forbid(GapOf(value));
      }
    }
    return found;
  }

  // It cannot be made again as things are: this time it stays. Where that happens often, always.
  void Forbid(GapId gap) {
    if (gap < 0 || !can_go_[At(gap)]) return;
    constexpr int kOften = 100;
    can_go_[At(gap)] = false;
    again_soon_ = true;
    if (++conflicts_[At(gap)] < kOften) forbidden_.push_back(gap);
  }

  // Runs it for the first time, or again for the present operator of the program.
  bool RunOperator(OperatorId number, bool again) {
    const Operator& op = graph_.operators[At(number)];
    const std::vector<ValueId>&inputs = values_.inputs[At(number)], &outputs = values_.outputs[At(number)];
    conflict_ = false;  // also where it is given up
    for (ValueId input : inputs) {
      if (!IsThere(input)) return conflict_ = true, false;
    }
    // After this run nobody needs it, or it is to go anyway.
    const auto goes = [&](ValueId value) {
      if (pins_[At(value)] > 1) return false;
      if (again) {
        const GapId gap = GapOf(value);
        return gap < 0 ? Until(value) <= now_ : again_[At(value)] && (*ways_)[At(gap)] == Way::kAgainOnce;
      }
      const Value& of = Of(value);
      return At(next_use_[At(value)] + 1) == of.uses.size() && !of.left && Until(value) <= now_;
    };
    Bytes needed = op.workspace;
    for (ValueId output : outputs) {
      const ValueId there = There(output);
      if (there == kNothing) needed += bytes_[At(output)];
      if (there == kNothing || there == output) continue;
      const bool changed = std::find(inputs.begin(), inputs.end(), there) != inputs.end();
      if (again && !(changed && pins_[At(there)] <= 1)) return conflict_ = true, false;
      if (again && GapOf(there) >= 0 && Of(there).overwritten != number) return conflict_ = true, false;
    }
    taken_.clear();
    for (size_t pair = 0; pair < op.in_place.size(); ++pair) {
      const auto [read, made] = op.in_place[pair];
      const ValueId value = device_[At(read)];
      if (value == kNothing || device_[At(made)] != kNothing || !goes(value)) continue;
      // Of a larger storage the rest would stay as long as what is made.
      if (graph_.storages[At(read)].bytes != graph_.storages[At(made)].bytes) continue;
      const bool twice = std::any_of(taken_.begin(), taken_.end(), [&](int32_t other) {
        return op.in_place[At(other)].read == read || op.in_place[At(other)].made == made;
      });
      if (twice) continue;
      taken_.push_back(static_cast<int32_t>(pair));
      needed -= graph_.storages[At(made)].bytes;
    }
    if (live_ + needed > options_->budget) {
      Pin(outputs, 1);  // what is overwritten has the memory that they need
      if (!options_->mends || !MakeRoom(live_ + needed - options_->budget)) over_ += live_ + needed - options_->budget;
      if (over_ > options_->most_over) return false;
      Pin(outputs, -1);
    }
    if (schedule_ != nullptr) {
      schedule_->actions.push_back({ActionKind::kRun, number, taken_});
      if (again && op.random) schedule_->saved_states.push_back(number);
    }
    peak_ = std::max(peak_, live_ + needed);
    Wait(op);
    for (int32_t pair : taken_) Remove(device_[At(op.in_place[At(pair)].read)]);
    clock_ += op.cost;
    if (clock_ > options_->most_time) return false;
    for (ValueId output : outputs) made_[At(Of(output).storage)] = clock_;
    for (ValueId input : inputs) {
      --pins_[At(input)];
      if (!again) ++next_use_[At(input)], again_[At(input)] = false;
    }
    for (ValueId output : outputs) {
      const ValueId there = There(output);
      if (there == output) continue;
      if (there != kNothing) Remove(there);
      Place(output);
      again_[At(output)] = again;
    }
    for (ValueId input : inputs) {
      if (!again || again_[At(input)] || GapOf(input) < 0) Settle(input);
    }
    for (ValueId output : outputs) Settle(output);
    return true;
  }

  // For copies back of what it uses, and to the host of what it overwrites.
  void Wait(const Operator& op) {
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) clock_ = std::max(clock_, made_[At(id)]);
    }
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) clock_ = std::max(clock_, copied_[At(id)]);
    }
    for (int32_t pair : taken_) clock_ = std::max(clock_, copied_[At(op.in_place[At(pair)].read)]);
  }

  void Pin(const std::vector<ValueId>& outputs, int by) {
    for (ValueId output : outputs) {
      if (const ValueId there = There(output); there != kNothing) pins_[At(there)] += by;
    }
  }

  // What making it again would cost, with what has gone around it: some of it, where that is much.
  Nanoseconds CostOf(ValueId value) {
    if (host_[At(Of(value).storage)] == value) return std::max<Nanoseconds>(0, copied_[At(Of(value).storage)] - clock_);
    Nanoseconds cost = graph_.operators[At(Of(value).maker)].cost;
    if (!options_->neighbors) return cost;
    ++stamp_;
    open_.assign(1, value);
    for (size_t i = 0; i < open_.size() && i < At(kMostNeighbors); ++i) {
      for (ValueId input : values_.inputs[At(Of(open_[i]).maker)]) {
        if (IsThere(input) || Of(input).maker < 0 || std::exchange(seen_[At(input)], stamp_) == stamp_) continue;
        cost += graph_.operators[At(Of(input).maker)].cost;
        open_.push_back(input);
      }
    }
    open_.assign(1, value);
    for (size_t i = 0; i < open_.size() && i < At(kMostNeighbors); ++i) {
      for (OperatorId use : Of(open_[i]).uses) {
        if (use >= now_) break;
        for (ValueId output : values_.outputs[At(use)]) {
          if (IsThere(output) || GapOf(output) < 0 || std::exchange(seen_[At(output)], stamp_) == stamp_) continue;
          cost += graph_.operators[At(use)].cost;
          open_.push_back(output);
        }
      }
    }
    return cost;
  }

  struct Victim {
    double score;
    ValueId value;
    GapId gap;
  };

  bool IsVictim(ValueId value, GapId gap) const {
    if (pins_[At(value)] > 0) return false;
    if (gap >= 0 && host_[At(Of(value).storage)] == value) return true;
    return gap >= 0 ? can_go_[At(gap)] : MayRunAgain(Of(value).maker);
  }

  void Sort() {
    queue_.clear();
    const auto now = static_cast<double>(starts_[At(now_)]);
    for (ValueId value : resident_) {
      const GapId gap = GapOf(value);
      if (!IsVictim(value, gap)) continue;
      const OperatorId next = gap >= 0 ? values_.gaps[At(gap)].before : Until(value);
      const double waits = 1 + static_cast<double>(starts_[At(next)]) - now;
      double score = std::log(1 + static_cast<double>(CostOf(value))) - std::log(static_cast<double>(bytes_[At(value)])) -
                     options_->wait * std::log(std::max(1.0, waits));
      if (options_->noise > 0) score += options_->noise * Drawn(options_->seed, static_cast<uint64_t>(value));
      if (hold_ != nullptr && gap >= 0 && (*hold_)[At(gap)]) score += 1e6;
      queue_.push_back({score, value, gap});
    }
    std::sort(queue_.begin(), queue_.end(), [](const Victim& a, const Victim& b) {
      return a.score != b.score ? a.score > b.score : a.value > b.value;
    });
    since_sorted_ = 0;
  }

  // The first that is there of what is being copied to the host, or an end: its copy ends first.
  std::vector<std::pair<ValueId, GapId>>::iterator NextCopied() {
    return std::find_if(copying_.begin(), copying_.end(), [this](const auto& each) {
      return IsThere(each.first) && GapOf(each.first) == each.second && pins_[At(each.first)] == 0;
    });
  }

  // The best of the queue that may go; taken out of it. Nothing: none may.
  std::optional<Victim> NextVictim() {
    bool fresh = false;
    for (;;) {
      constexpr size_t kShare = 16;  // of the queue, before the rest is weighed again
      if (queue_.empty() || since_sorted_ > queue_.size() / kShare) {
        if (queue_.empty() && fresh) return std::nullopt;
        Sort();
        fresh = true;
        if (queue_.empty()) return std::nullopt;
      }
      const Victim victim = queue_.back();
      queue_.pop_back();
      if (IsThere(victim.value) && GapOf(victim.value) == victim.gap && IsVictim(victim.value, victim.gap)) return victim;
    }
  }

  bool MakeRoom(Bytes bytes) {
    const Bytes target = live_ - bytes;
    if (!copying_.empty()) DropCopied();
    while (live_ > target) {
      const std::optional<Victim> victim = NextVictim();
      if (const auto copy = NextCopied(); copy != copying_.end()) {
        // To wait for it may cost less than to make another again.
        const Nanoseconds wait = copied_[At(Of(copy->first).storage)] - clock_;
        if (!victim || wait <= CostOf(victim->value)) {
          if (victim) queue_.push_back(*victim);
          const ValueId value = copy->first;
          copying_.erase(copy);
          Drop(value);
          continue;
        }
      }
      if (!victim) return false;
      if (victim->gap >= 0) {
        Way& way = (*ways_)[At(victim->gap)];
        const bool copied = host_[At(Of(victim->value).storage)] == victim->value;
        way = copied ? Way::kSwap : again_[At(victim->value)] ? Way::kAgainOnce : std::max(way, Way::kAgain);
      } else {
        (*tails_)[At(victim->value)] = -1;
      }
      Drop(victim->value);
      ++since_sorted_;
      ++went_;
    }
    return true;
  }

  const Graph& graph_;
  const Values& values_;
  const Machine machine_;
  std::vector<bool> can_go_;             // by gap; without what is forbidden
  std::vector<int> conflicts_;           // by gap
  std::vector<GapId> forbidden_;         // in the present call
  const FitOptions* options_ = nullptr;
  const std::vector<bool>* hold_ = nullptr;
  Decisions asked_, tried_;
  std::vector<Way>* ways_ = nullptr;
  std::vector<OperatorId>* tails_ = nullptr;
  std::vector<OperatorId> helped_;       // by value: the last operator for which something was made again from it
  Schedule* schedule_ = nullptr;
  std::vector<std::vector<ValueId>> contents_;  // by storage: what it holds, one after the other
  std::vector<ValueId> device_, host_;   // by storage
  std::vector<Nanoseconds> made_, copied_;  // by storage: when its contents are complete, and the last copy to the host is
  std::vector<std::pair<ValueId, GapId>> copying_;  // to the host; to go then
  std::vector<std::pair<OperatorId, GapId>> fetches_;  // before which operator they begin, ascending
  size_t next_fetch_ = 0;
  std::vector<ValueId> fetch_now_;
  Bytes host_bytes_ = 0;
  std::vector<int32_t> next_use_;        // by value: index of the use after the present operator
  std::vector<int32_t> pins_;            // by value: runs under way that need it
  std::vector<Bytes> bytes_;             // by value
  std::vector<int32_t> slot_;            // by value, in resident_
  std::vector<char> again_;              // by value: is there since it was made again, in the gap that is open
  std::vector<char> in_closure_, has_run_;
  std::vector<int64_t> seen_;
  std::vector<Nanoseconds> starts_;
  std::vector<std::vector<ValueId>> expires_;
  std::vector<ValueId> resident_, left_, open_;
  std::vector<OperatorId> closure_;
  std::vector<int32_t> taken_;
  std::vector<Victim> queue_;            // the first to go is the last
  size_t since_sorted_ = 0;
  int64_t stamp_ = 0, went_ = 0;
  Bytes live_ = 0, peak_ = 0, over_ = 0;
  Nanoseconds clock_ = 0, to_host_ = 0, to_device_ = 0;  // when each engine is through with what was issued
  OperatorId now_ = -1;
  bool again_soon_ = false;  // something was learnt: from the beginning
  bool conflict_ = false;
};

Fitter::Fitter(const Graph& graph, const Values& values, const Machine& machine) : state_(std::make_unique<State>(graph, values, machine)) {}
Fitter::~Fitter() = default;

Fitted Fitter::Fit(const FitOptions& options, Decisions* choice, const std::vector<bool>* hold, Schedule* schedule) {
  return state_->Fit(options, choice, hold, schedule);
}
bool Fitter::CanGo(GapId gap) const { return state_->can_go(gap); }
bool Fitter::CanSwap(GapId gap) const { return state_->can_swap(gap); }

Decisions NothingGoes(const Values& values) {
  return {std::vector<Way>(values.gaps.size(), Way::kHold), std::vector<OperatorId>(values.values.size(), -1)};
}

}  // namespace hotpack::planner
