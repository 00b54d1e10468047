#include "remat/search/polish.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

using Actions = std::vector<Action>;
using std::chrono::steady_clock;

constexpr size_t kPrepared = 6;                        // actions that may prepare others
constexpr int32_t kNothing = -2, kGivenContents = -1;  // else the operator that made them

struct Used {
  StorageId storage;
  int32_t contents;
};

// The rules of the simulator, as far as they decide on time and memory, with the contents that the verifier compares.
// Ends early where a schedule is impossible or too slow.
class Judge {
 public:
  Judge(const Graph& graph, const Machine& machine, Bytes budget)
      : graph_(graph), budget_(budget), host_memory_(machine.host_memory), places_(graph.storages.size()) {
    std::vector<int32_t> now(graph.storages.size(), kNothing);
    for (size_t id = 0; id < now.size(); ++id) {
      const auto bytes = static_cast<double>(graph.storages[id].bytes);
      if (graph.storages[id].given) now[id] = kGivenContents;
      to_host_.push_back(static_cast<Nanoseconds>(std::ceil(bytes / machine.bytes_per_ns_to_host)));
      to_device_.push_back(static_cast<Nanoseconds>(std::ceil(bytes / machine.bytes_per_ns_to_device)));
    }
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const Operator& op = graph.operators[i];
      std::vector<Used>& used = used_.emplace_back();
      for (const std::vector<StorageId>* list : {&op.reads, &op.updates}) {
        for (StorageId id : *list) used.push_back({id, now[At(id)]});
      }
      for (const std::vector<StorageId>* list : {&op.writes, &op.updates}) {
        for (StorageId id : *list) now[At(id)] = static_cast<int32_t>(i);
      }
    }
    end_ = std::move(now);
    for (size_t id = 0; id < end_.size(); ++id) {
      if (graph.storages[id].kept && !graph.storages[id].away) kept_.push_back({static_cast<StorageId>(id), end_[id]});
    }
  }

  // Returns the time; INT64_MAX if the schedule is impossible, needs more than the budget or takes more than `most`.
  Nanoseconds TimeOf(const Actions& actions, Nanoseconds most) {
    Begin();
    for (const Action& action : actions) {
      if (!Do(action) || live_ > budget_ || host_ > host_memory_ || compute_ > most) return INT64_MAX;
    }
    for (size_t id = 0; id < places_.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      if (storage.kept && (storage.away ? places_[id].host : places_[id].device) != end_[id]) return INT64_MAX;
    }
    const Nanoseconds time = std::max({compute_, out_, in_});
    return time > most ? INT64_MAX : time;
  }

  // What an operator reads and updates.
  const std::vector<Used>& UsedBy(OperatorId op) const { return used_[At(op)]; }
  // What has to be on the device at the end.
  const std::vector<Used>& Kept() const { return kept_; }

 private:
  struct Place {
    int32_t device = kNothing, host = kNothing;
    bool has_memory = false;
    Bytes bytes = 0;  // of the memory: in place, the operand's
    Nanoseconds made = 0, copied = 0;
  };

  void Begin() {
    live_ = host_ = 0;
    compute_ = out_ = in_ = 0;
    for (size_t id = 0; id < places_.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      places_[id] = {};
      if (!storage.given) continue;
      (storage.away ? places_[id].host : places_[id].device) = kGivenContents;
      if (!storage.away) Allocate(static_cast<StorageId>(id));
      if (storage.away) host_ += storage.bytes;
    }
  }
  void Allocate(StorageId id) {
    Place& place = places_[At(id)];
    place.has_memory = true;
    live_ += place.bytes = graph_.storages[At(id)].bytes;
  }
  bool Do(const Action& action) {
    if (action.kind == ActionKind::kRun) return Run(action);
    Place& place = places_[At(action.target)];
    const Bytes bytes = graph_.storages[At(action.target)].bytes;
    switch (action.kind) {
      case ActionKind::kDrop:
        if (!place.has_memory) return false;
        compute_ = std::max(compute_, place.copied);
        place.has_memory = false;
        place.device = kNothing;
        live_ -= place.bytes;
        return true;
      case ActionKind::kOffload:
        if (place.device == kNothing) return false;
        if (place.host == kNothing) host_ += bytes;
        place.host = place.device;
        place.copied = out_ = std::max(out_, place.made) + to_host_[At(action.target)];
        return true;
      case ActionKind::kPrefetch:
        if (place.host == kNothing || place.has_memory) return false;
        Allocate(action.target);
        place.device = place.host;
        place.made = in_ = std::max({in_, compute_, place.copied}) + to_device_[At(action.target)];
        return true;
      case ActionKind::kForget:
        if (place.host == kNothing) return false;
        place.host = kNothing;
        host_ -= bytes;
        return true;
      case ActionKind::kRun:
        break;
    }
    return false;
  }
  bool Run(const Action& action) {
    const Operator& op = graph_.operators[At(action.target)];
    Nanoseconds start = compute_;
    for (const Used& used : used_[At(action.target)]) {
      const Place& place = places_[At(used.storage)];
      if (place.device != used.contents) return false;
      start = std::max(start, place.made);
    }
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) start = std::max(start, places_[At(id)].copied);
    }
    for (int32_t pair : action.in_place) {
      const InPlace& taken = op.in_place[At(pair)];
      Place &from = places_[At(taken.read)], &to = places_[At(taken.made)];
      if (!from.has_memory || to.has_memory) return false;
      start = std::max(start, from.copied);
      from.has_memory = false;
      from.device = kNothing;
      to.has_memory = true;
      to.bytes = from.bytes;
    }
    for (StorageId id : op.writes) {
      if (!places_[At(id)].has_memory) Allocate(id);
    }
    if (live_ + op.workspace > budget_) return false;
    compute_ = start + op.cost;
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) {
        places_[At(id)].device = action.target;
        places_[At(id)].made = compute_;
      }
    }
    return true;
  }

  const Graph& graph_;
  const Bytes budget_, host_memory_;
  std::vector<Place> places_;
  std::vector<Nanoseconds> to_host_, to_device_;
  std::vector<std::vector<Used>> used_;
  std::vector<Used> kept_;
  std::vector<int32_t> end_;
  Bytes live_ = 0, host_ = 0;
  Nanoseconds compute_ = 0, out_ = 0, in_ = 0;
};

class Polisher {
 public:
  Polisher(const Graph& graph, const PolishOptions& options)
      : graph_(graph),
        options_(options),
        judge_(graph, options.machine, options.budget),
        random_(options.seed),
        begin_(steady_clock::now()) {}

  bool Run(Schedule* schedule) {
    now_ = schedule->actions;
    std::erase_if(now_, [](const Action& action) { return action.kind == ActionKind::kForget; });
    time_ = judge_.TimeOf(now_, INT64_MAX);
    const Nanoseconds least = TotalCost(graph_);
    if (time_ == INT64_MAX || time_ <= least) return false;
    const std::pair before(time_, now_.size());
    best_ = now_, best_time_ = time_;
    // Each round starts from the best schedule. How much slower a change may make it decreases to zero within a round.
    constexpr double kWarmth[] = {0, 0.01, 0.3, 1};  // of the time above the least
    int64_t round = 2000, left = 0;
    for (int64_t step = 0, rounds = -1; step < options_.steps && best_time_ > least; ++step, --left) {
      if (step % 16 == 0 && IsOver()) break;
      if (left <= 0) {
        now_ = best_, time_ = best_time_;
        left = round += round / 4;
        ++rounds;
      }
      const double warmth =
          kWarmth[At(rounds) % std::size(kWarmth)] * static_cast<double>(left) / static_cast<double>(round);
      Step(*schedule, static_cast<Nanoseconds>(warmth * static_cast<double>(best_time_ - least)),
           warmth > 0 ? kPrepared : 0);
    }
    if (std::pair(best_time_, best_.size()) >= before) return false;
    schedule->actions = std::move(best_);
    ReleaseHostCopies(graph_, schedule);
    return true;
  }

 private:
  bool IsOver() const {
    return options_.time_limit_ns < INT64_MAX && (steady_clock::now() - begin_).count() >= options_.time_limit_ns;
  }
  // `worse`: how much slower a change may make it; `more`: by how many actions longer than the best, without a gain.
  void Step(const Schedule& schedule, Nanoseconds worse, size_t more) {
    next_ = now_;
    if (!Change(&next_)) return;
    const Nanoseconds time = judge_.TimeOf(next_, time_ + worse);
    if (time == INT64_MAX) return;
    if (time == time_ && next_.size() > std::max(now_.size(), best_.size() + more)) return;
    const bool better = std::pair(time, next_.size()) < std::pair(best_time_, best_.size());
    if (better && !IsRight(next_, schedule)) return;
    now_.swap(next_);
    time_ = time;
    if (better) best_ = now_, best_time_ = time_;
  }
  bool IsRight(const Actions& actions, const Schedule& schedule) const {
    Schedule whole = {actions, schedule.saved_states};
    ReleaseHostCopies(graph_, &whole);
    return Verify(graph_, whole).empty() && (!options_.passes || options_.passes(whole));
  }
  size_t Draw(size_t below) { return static_cast<size_t>(random_() % below); }
  // Small numbers more often than large ones.
  size_t DrawDistance(size_t most) {
    size_t bits = 1;
    while ((size_t{1} << bits) < most) ++bits;
    return 1 + Draw(size_t{1} << (1 + Draw(bits)));
  }

  bool Change(Actions* actions) {
    bool changed = false;
    do {
      const size_t way = Draw(9);
      changed = (way < 5    ? Move(actions)
                 : way == 5 ? Keep(actions)
                 : way == 6 ? Leave(actions)
                 : way == 7 ? MakeAgain(actions)
                            : Remove(actions)) ||
                changed;
    } while (Draw(3) == 0);
    return changed;
  }
  // Another moment for a copy or a drop.
  bool Move(Actions* actions) {
    const size_t from = Draw(actions->size());
    if ((*actions)[from].kind == ActionKind::kRun) return false;
    const size_t distance = DrawDistance(actions->size());
    const auto begin = actions->begin();
    const auto at = static_cast<std::ptrdiff_t>(from);
    if (Draw(2) == 0) {
      const auto to = static_cast<std::ptrdiff_t>(from - std::min(from, distance));
      std::rotate(begin + to, begin + at, begin + at + 1);
    } else {
      const auto to = static_cast<std::ptrdiff_t>(std::min(actions->size() - 1, from + distance));
      std::rotate(begin + at, begin + at + 1, begin + to + 1);
    }
    return true;
  }
  // Contents that left and return stay: without the drop, and the copy back.
  bool Keep(Actions* actions) {
    const size_t back = Draw(actions->size());
    const Action& prefetch = (*actions)[back];
    if (prefetch.kind != ActionKind::kPrefetch) return false;
    for (size_t i = back; i-- > 0;) {
      const Action& action = (*actions)[i];
      if (action.kind != ActionKind::kDrop || action.target != prefetch.target) continue;
      actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(back));
      actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }
  // An action is left out: a copy to the host that is there already, a run that is not needed. Or what is copied back
  // and dropped.
  bool Remove(Actions* actions) {
    const size_t at = Draw(actions->size());
    const Action action = (*actions)[at];
    if (action.kind == ActionKind::kPrefetch) {
      for (size_t i = at + 1; i < actions->size(); ++i) {
        if ((*actions)[i].kind != ActionKind::kDrop || (*actions)[i].target != action.target) continue;
        actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(i));
        actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(at));
        return true;
      }
      return false;
    }
    if (action.kind == ActionKind::kRun) return DoNotRunAgain(at, actions);
    actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  }
  // Without a repeated run. Its results stay from their last drop on, or leave there and return.
  bool DoNotRunAgain(size_t at, Actions* actions) {
    const OperatorId op = (*actions)[at].target;
    const auto first = std::find_if(actions->begin(), actions->end(), [op](const Action& each) {
      return each.kind == ActionKind::kRun && each.target == op;
    });
    if (static_cast<size_t>(first - actions->begin()) == at) return false;
    actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(at));
    if (Draw(4) == 0) return true;  // it was run several times
    const bool copied = options_.swap && Draw(2) == 0;
    for (StorageId id : graph_.operators[At(op)].writes) {
      for (size_t i = at; i-- > 0;) {
        if ((*actions)[i].kind != ActionKind::kDrop || (*actions)[i].target != id) continue;
        if (copied) {
          actions->insert(actions->begin() + static_cast<std::ptrdiff_t>(at), {ActionKind::kPrefetch, id});
          actions->insert(actions->begin() + static_cast<std::ptrdiff_t>(i), {ActionKind::kOffload, id});
          ++at;
        } else {
          actions->erase(actions->begin() + static_cast<std::ptrdiff_t>(i));
          --at;
        }
        break;
      }
    }
    return true;
  }
  // Contents leave after a use. They return before the next use, or before the end: by a copy, or by another run of the
  // operator that made them.
  bool Leave(Actions* actions) {
    const bool copied = options_.swap && Draw(2) == 0;
    const size_t at = Draw(actions->size() + 1);  // at the end: what is kept
    if (at < actions->size() && (*actions)[at].kind != ActionKind::kRun) return false;
    const std::vector<Used>& used = at < actions->size() ? judge_.UsedBy((*actions)[at].target) : judge_.Kept();
    if (used.empty()) return false;
    const StorageId id = used[Draw(used.size())].storage;
    size_t last = at;
    while (last > 0 && !Touches((*actions)[last - 1], id)) --last;
    if (last == at) return false;
    Action back = {ActionKind::kPrefetch, id};
    if (!copied) {
      const size_t made = MadeAt(*actions, last, id);
      if (made == actions->size()) return false;
      back = (*actions)[made];
    }
    // A copy takes its time before its memory can be freed.
    const size_t before = at - std::min(at - last, DrawDistance(at - last) - 1);
    const size_t freed = last + (copied ? Draw(before - last + 1) : 0);
    const size_t leaves = freed - (copied ? Draw(freed - last + 1) : 0);
    const auto insert = [actions](size_t where, Action action) {
      actions->insert(actions->begin() + static_cast<std::ptrdiff_t>(where), action);
    };
    insert(before, back);
    insert(freed, {ActionKind::kDrop, id});
    if (copied) {
      insert(leaves, {ActionKind::kOffload, id});
    } else {
      BringOperands(before + 1, actions);
    }
    return true;
  }
  // A copy back becomes a repeated run of the operator that made the contents.
  bool MakeAgain(Actions* actions) {
    const size_t back = Draw(actions->size());
    const Action prefetch = (*actions)[back];
    if (prefetch.kind != ActionKind::kPrefetch) return false;
    const size_t made = MadeAt(*actions, back, prefetch.target);
    if (made == actions->size()) return false;
    (*actions)[back] = (*actions)[made];
    BringOperands(back, actions);
    return true;
  }
  // For a repeated run at `at`: operands that were dropped stay until after it, or are copied back for it.
  void BringOperands(size_t at, Actions* actions) {
    for (StorageId id : graph_.operators[At((*actions)[at].target)].reads) {
      size_t last = at;
      while (last > 0 && !Touches((*actions)[last - 1], id)) --last;
      if (last == 0 || (*actions)[last - 1].kind != ActionKind::kDrop) continue;
      const auto begin = actions->begin();
      const auto drop = begin + static_cast<std::ptrdiff_t>(last) - 1;
      if (Draw(2) == 0 || !options_.swap) {
        std::rotate(drop, drop + 1, begin + static_cast<std::ptrdiff_t>(at) + 1);
        --at;
      } else {
        actions->insert(begin + static_cast<std::ptrdiff_t>(at) + 1, {ActionKind::kDrop, id});
        actions->insert(actions->begin() + static_cast<std::ptrdiff_t>(at), {ActionKind::kPrefetch, id});
        ++at;
      }
    }
  }
  // Returns where the contents of a storage were made before `at`, by an operator that may run again; else the end.
  size_t MadeAt(const Actions& actions, size_t at, StorageId id) const {
    if (const Storage& storage = graph_.storages[At(id)]; storage.held && storage.movable) return actions.size();
    for (size_t i = at; i-- > 0;) {
      if (actions[i].kind != ActionKind::kRun) continue;
      const Operator& op = graph_.operators[At(actions[i].target)];
      const auto has = [id](const std::vector<StorageId>& list) {
        return std::find(list.begin(), list.end(), id) != list.end();
      };
      if (has(op.updates)) break;
      if (!has(op.writes)) continue;
      return op.once || op.random || !op.updates.empty() ? actions.size() : i;
    }
    return actions.size();
  }
  bool Touches(const Action& action, StorageId id) const {
    if (action.kind != ActionKind::kRun) return action.target == id;
    const Operator& op = graph_.operators[At(action.target)];
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      if (std::find(list->begin(), list->end(), id) != list->end()) return true;
    }
    return false;
  }

  const Graph& graph_;
  const PolishOptions& options_;
  Judge judge_;
  std::mt19937_64 random_;
  const steady_clock::time_point begin_;
  Actions now_, next_, best_;
  Nanoseconds time_ = 0, best_time_ = 0;  // of now_, of best_
};

}  // namespace

bool Polish(const Graph& graph, const PolishOptions& options, Schedule* schedule) {
  return Polisher(graph, options).Run(schedule);
}

}  // namespace hotpack::remat
