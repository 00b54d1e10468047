#include <algorithm>
#include <cmath>
#include <utility>

#include "remat/search/budget_fit_state.h"

namespace hotpack::remat {
namespace {

constexpr int kMaxNeighbors = 48;

// Maps a hash to [-1, 1] (splitmix64, Steele et al. 2014).
double Drawn(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

}  // namespace

void BudgetFitter::State::Drop(ValueId value) {
  clock_ = std::max(clock_, copies_.copied[At(Of(value).storage)]);
  if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kDrop, Of(value).storage});
  Remove(value);
}

Nanoseconds BudgetFitter::State::CopyTime(Bytes bytes, double bytes_per_ns) const {
  if (!copies_.take_time) return 0;
  return static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / bytes_per_ns));
}

void BudgetFitter::State::Copy(ValueId value, GapId gap) {
  if (again_[At(value)] || !can_swap(gap)) return;
  const StorageId storage = Of(value).storage;
  const Bytes more = host_[At(storage)] == kNoValue ? bytes_[At(value)] : 0;
  if (host_[At(storage)] != value && copies_.host_bytes + more > machine_.host_memory) return;
  CopyOut(value);
  DropWhenCopied(value, gap);
}

void BudgetFitter::State::CopyAway(ValueId value) {
  CopyOut(value);
  DropWhenCopied(value, -1);
}

void BudgetFitter::State::DropWhenCopied(ValueId value, GapId gap) {
  copies_.copying.push_back({value, gap});
  copies_.next_copied = std::min(copies_.next_copied, copies_.copied[At(Of(value).storage)]);
}

void BudgetFitter::State::CopyOut(ValueId value) {
  const StorageId storage = Of(value).storage;
  if (host_[At(storage)] != value) {
    copies_.host_bytes += host_[At(storage)] == kNoValue ? bytes_[At(value)] : 0;
    ++copies_.count;
    host_[At(storage)] = value;
    copies_.to_host = std::max(copies_.to_host, copies_.made[At(storage)]) +
                      CopyTime(bytes_[At(value)], machine_.bytes_per_ns_to_host);
    copies_.copied[At(storage)] = copies_.to_host;
    if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kOffload, storage});
  }
}

void BudgetFitter::State::DropCopied() {
  copies_.next_copied = INT64_MAX;
  std::erase_if(copies_.copying, [this](const std::pair<ValueId, GapId>& each) {
    const auto [value, gap] = each;
    if (!IsThere(value) || GapOf(value) != gap) return true;
    const Nanoseconds copied = copies_.copied[At(Of(value).storage)];
    if (copied > clock_ || pins_[At(value)] > 0) {
      copies_.next_copied = std::min(copies_.next_copied, copied);
      return false;
    }
    Drop(value);
    return true;
  });
}

void BudgetFitter::State::PlanFetches() {
  for (size_t g = 0; g < asked_.ways.size(); ++g) {
    if (asked_.ways[g] == GapAction::kOffload)
      copies_.fetches.push_back({values_.gaps[g].before, static_cast<GapId>(g)});
  }
  if (options_->fetching == Fetching::kWhenIdle) {
    std::sort(copies_.fetches.begin(), copies_.fetches.end());
    return;
  }
  std::sort(copies_.fetches.rbegin(), copies_.fetches.rend());
  Nanoseconds free = INT64_MAX;
  for (auto& [at, gap] : copies_.fetches) {
    const Gap& of = values_.gaps[At(gap)];
    const Bytes bytes = bytes_[At(of.value)];
    free = std::min(free, copies_.begins[At(at)]) - CopyTime(bytes, machine_.bytes_per_ns_to_device);
    const auto fits = [&, &at = at] {
      return options_->fetching == Fetching::kInTime || copies_.needs[At(at) - 1] + bytes <= options_->budget;
    };
    while (at > of.after + 1 && copies_.begins[At(at)] > free && fits()) copies_.needs[At(--at)] += bytes;
  }
  std::stable_sort(copies_.fetches.begin(), copies_.fetches.end(), [this](const auto& a, const auto& b) {
    return std::pair(a.first, values_.gaps[At(a.second)].before) <
           std::pair(b.first, values_.gaps[At(b.second)].before);
  });
}

void BudgetFitter::State::FetchWhenIdle(OperatorId next_run) {
  constexpr size_t kMaxLooked = 256;
  const bool at_end = At(next_run) == graph_.operators.size();
  const Nanoseconds until = at_end ? 0 : clock_ + graph_.operators[At(next_run)].cost;
  size_t& next = copies_.next_fetch;
  const size_t end = std::min(copies_.waiting.size(), next + kMaxLooked);
  bool dropped = false;
  for (size_t i = next; i < end; ++i) {
    auto& [from, gap] = copies_.waiting[i];
    if (gap < 0) continue;
    const Gap& of = values_.gaps[At(gap)];
    if (of.before <= now_) {  // what is not there is copied back for its use
      std::erase_if(copies_.copying, [&of](const auto& each) { return each.first == of.value; });
      gap = -1;
      continue;
    }
    if (at_end || copies_.to_device > until) break;
    if (of.after >= now_ || (from < of.before && from > now_)) continue;
    if (!copies_.copying.empty() && !std::exchange(dropped, true)) DropCopied();
    const Bytes bytes = bytes_[At(of.value)];
    if (GapOf(of.value) != gap || !IsOnHost(of.value) || live_ + bytes > options_->budget) continue;
    OperatorId fits = of.before;
    while (fits > now_ && copies_.taken[At(fits - 1)] + bytes <= options_->budget) --fits;
    from = fits;
    if (fits > now_) continue;
    for (OperatorId op = now_; op < of.before; ++op) copies_.taken[At(op)] += bytes;
    Fetch(of.value);
    gap = -1;
  }
  while (next < copies_.waiting.size() && copies_.waiting[next].second < 0) ++next;
}

void BudgetFitter::State::FetchDue() {
  if (options_->fetching == Fetching::kWhenIdle) return FetchWhenIdle(now_);
  for (; copies_.next_fetch < copies_.fetches.size() && copies_.fetches[copies_.next_fetch].first <= now_;
       ++copies_.next_fetch)
    copies_.deferred.push_back(copies_.fetches[copies_.next_fetch].second);
  if (copies_.deferred.empty()) return;
  if (!copies_.copying.empty()) DropCopied();
  std::erase_if(copies_.deferred, [this](GapId gap) {
    const ValueId value = values_.gaps[At(gap)].value;
    std::erase_if(copies_.copying, [value](const auto& each) { return each.first == value; });
    if (GapOf(value) != gap || !IsOnHost(value)) return true;
    if (options_->fetching == Fetching::kWithRoom && live_ + bytes_[At(value)] > options_->budget) return false;
    Fetch(value);
    return true;
  });
}

void BudgetFitter::State::Fetch(ValueId value) {
  const Bytes above = live_ + bytes_[At(value)] - options_->budget;
  if (above > 0 && (!options_->may_evict || !Evict(above))) over_ += live_ + bytes_[At(value)] - options_->budget;
  const StorageId storage = Of(value).storage;
  Place(value);
  peak_ = std::max(peak_, live_);
  copies_.to_device = std::max({copies_.to_device, clock_, copies_.copied[At(storage)]}) +
                      CopyTime(bytes_[At(value)], machine_.bytes_per_ns_to_device);
  copies_.made[At(storage)] = copies_.to_device;
  if (schedule_ != nullptr) schedule_->actions.push_back({ActionKind::kPrefetch, storage});
}

void BudgetFitter::State::Wait(const Operator& op) {
  for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
    for (StorageId id : *used) clock_ = std::max(clock_, copies_.made[At(id)]);
  }
  for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
    for (StorageId id : *changed) clock_ = std::max(clock_, copies_.copied[At(id)]);
  }
  for (int32_t pair : closure_.taken) clock_ = std::max(clock_, copies_.copied[At(op.in_place[At(pair)].read)]);
}

void BudgetFitter::State::Pin(const std::vector<ValueId>& outputs, int by) {
  for (ValueId output : outputs) {
    if (const ValueId there = There(output); there != kNoValue) pins_[At(there)] += by;
  }
}

Nanoseconds BudgetFitter::State::CostOf(ValueId value) {
  if (host_[At(Of(value).storage)] == value)
    return std::max<Nanoseconds>(0, copies_.copied[At(Of(value).storage)] - clock_);
  Nanoseconds cost = graph_.operators[At(Of(value).maker)].cost;
  if (!options_->neighbors) return cost;
  ++closure_.stamp;
  open_.assign(1, value);
  for (size_t i = 0; i < open_.size() && i < At(kMaxNeighbors); ++i) {
    for (ValueId input : values_.inputs[At(Of(open_[i]).maker)]) {
      if (IsThere(input) || Of(input).maker < 0 ||
          std::exchange(closure_.seen[At(input)], closure_.stamp) == closure_.stamp)
        continue;
      cost += graph_.operators[At(Of(input).maker)].cost;
      open_.push_back(input);
    }
  }
  open_.assign(1, value);
  for (size_t i = 0; i < open_.size() && i < At(kMaxNeighbors); ++i) {
    for (OperatorId use : Of(open_[i]).uses) {
      if (use >= now_) break;
      for (ValueId output : values_.outputs[At(use)]) {
        if (IsThere(output) || GapOf(output) < 0 ||
            std::exchange(closure_.seen[At(output)], closure_.stamp) == closure_.stamp)
          continue;
        cost += graph_.operators[At(use)].cost;
        open_.push_back(output);
      }
    }
  }
  return cost;
}

bool BudgetFitter::State::IsVictim(ValueId value, GapId gap) const {
  if (pins_[At(value)] > 0 || (gap < 0 && Until(value) < now_)) return false;  // the latter is on its way to the host
  if (gap >= 0 && host_[At(Of(value).storage)] == value) return true;
  return gap >= 0 ? can_go_[At(gap)] || MayGoToHost(value, gap) : MayRunAgain(Of(value).maker);
}

bool BudgetFitter::State::MayGoToHost(ValueId value, GapId gap) const {
  return options_->copy_price >= 0 && gap >= 0 && can_swap(gap) && !again_[At(value)] &&
         copies_.host_bytes + bytes_[At(value)] <= machine_.host_memory;
}

Nanoseconds BudgetFitter::State::CopyCostOf(ValueId value) const {
  const auto bytes = static_cast<double>(bytes_[At(value)]);
  const double out = bytes / machine_.bytes_per_ns_to_host, in = bytes / machine_.bytes_per_ns_to_device;
  const auto price = static_cast<Nanoseconds>(options_->copy_price * (out + in));
  if (!copies_.take_time) return price;
  const Nanoseconds begin = std::max(copies_.to_host, copies_.made[At(Of(value).storage)]);
  return price + std::max<Nanoseconds>(0, begin + static_cast<Nanoseconds>(out) - clock_);
}

void BudgetFitter::State::Sort() {
  queue_.clear();
  const auto now = static_cast<double>(starts_[At(now_)]);
  for (ValueId value : resident_) {
    const GapId gap = GapOf(value);
    if (!IsVictim(value, gap)) continue;
    const OperatorId next = gap >= 0 ? values_.gaps[At(gap)].before : Until(value);
    const double waits = 1 + static_cast<double>(starts_[At(next)]) - now;
    const bool on_host = host_[At(Of(value).storage)] == value;
    const bool may_run = on_host || gap < 0 || can_go_[At(gap)];
    Nanoseconds cost = may_run ? CostOf(value) : INT64_MAX;
    bool to_host = false;
    if (!on_host && MayGoToHost(value, gap)) {
      if (const Nanoseconds copy = CopyCostOf(value); copy < cost) cost = copy, to_host = true;
    }
    double score = std::log(1 + static_cast<double>(cost)) - std::log(static_cast<double>(bytes_[At(value)])) -
                   options_->wait * std::log(std::max(1.0, waits));
    if (options_->noise > 0) score += options_->noise * Drawn(options_->seed, static_cast<uint64_t>(value));
    if (hold_ != nullptr && gap >= 0 && (*hold_)[At(gap)]) score += 1e6;
    queue_.push_back({score, value, gap, to_host});
  }
  std::sort(queue_.begin(), queue_.end(), [](const Victim& a, const Victim& b) {
    return a.score != b.score ? a.score > b.score : a.value > b.value;
  });
  since_sorted_ = 0;
}

std::vector<std::pair<ValueId, GapId>>::iterator BudgetFitter::State::NextCopied() {
  return std::find_if(copies_.copying.begin(), copies_.copying.end(), [this](const auto& each) {
    return IsThere(each.first) && GapOf(each.first) == each.second && pins_[At(each.first)] == 0;
  });
}

std::optional<BudgetFitter::State::Victim> BudgetFitter::State::NextVictim() {
  bool fresh = false;
  for (;;) {
    // Sorts again after this part of the queue was used.
    constexpr size_t kShare = 16;
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

bool BudgetFitter::State::Evict(Bytes bytes) {
  const Bytes target = live_ - bytes;
  if (!copies_.copying.empty()) DropCopied();
  while (live_ > target) {
    const std::optional<Victim> victim = NextVictim();
    if (const auto copy = NextCopied(); copy != copies_.copying.end()) {
      // Waiting for a copy may cost less than recomputing another value.
      const Nanoseconds wait = copies_.copied[At(Of(copy->first).storage)] - clock_;
      if (!victim || wait <= (victim->to_host ? CopyCostOf(victim->value) : CostOf(victim->value))) {
        if (victim) queue_.push_back(*victim);
        const ValueId value = copy->first;
        copies_.copying.erase(copy);
        Drop(value);
        continue;
      }
    }
    if (!victim) return false;
    if (victim->to_host) {
      (*ways_)[At(victim->gap)] = GapAction::kOffload;
      Copy(victim->value, victim->gap);
      copies_.copying.pop_back();
    } else if (victim->gap >= 0) {
      GapAction& way = (*ways_)[At(victim->gap)];
      const bool copied = host_[At(Of(victim->value).storage)] == victim->value;
      if (copied) std::erase_if(copies_.copying, [&](const auto& each) { return each.first == victim->value; });
      way = copied                      ? GapAction::kOffload
            : again_[At(victim->value)] ? GapAction::kRecomputeOnce
                                        : std::max(way, GapAction::kRecompute);
    } else {
      (*tails_)[At(victim->value)] = -1;
    }
    Drop(victim->value);
    ++since_sorted_;
    ++evictions_;
  }
  return true;
}

}  // namespace hotpack::remat
