#include "remat/exact/all_plans.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "remat/exact/all_plans_state.h"

namespace hotpack::remat {
namespace all_plans {
namespace {

class AllPlans {
 public:
  AllPlans(const Graph& graph, const AllPlansOptions& options)
      : graph_(graph),
        options_(options),
        facts_(graph, options),
        begin_(std::chrono::steady_clock::now()),
        best_(options.faster_than) {}

  AllPlansAnswer Run() {
    Bytes all = 0;
    for (const Storage& storage : graph_.storages) all += storage.bytes;
    if (all > options_.machine.host_memory) return {};
    PlanState first;
    first.device.fill(kNothing), first.host.fill(kNothing);
    for (size_t s = 0; s < facts_.count(); ++s) {
      const Storage& storage = graph_.storages[s];
      if (!storage.given) continue;
      (storage.away ? first.host : first.device)[s] = kGiven;
      first.live += storage.away ? 0 : storage.bytes;
    }
    AllPlansAnswer answer;
    if (first.live <= options_.budget) Reach(std::move(first), -1);
    answer.complete = Visit();
    answer.states = static_cast<int64_t>(nodes_.size());
    if (best_node_ >= 0) {
      answer.schedule = ScheduleTo(best_node_);
      answer.time = best_;
    }
    return answer;
  }

 private:
  struct Node {
    int32_t parent;
    size_t actions_begin, actions_end;
    Bytes live;
    uint8_t next;
    bool beaten = false;
  };
  struct Entry {
    Nanoseconds bound;
    int32_t next, node;
    // Least bound first; of these, those that are farthest.
    bool operator<(const Entry& other) const {
      return std::tuple(bound, -next, -node) > std::tuple(other.bound, -other.next, -other.node);
    }
  };

  // Returns whether it visited, or bounded, all states.
  bool Visit() {
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      if (entry.bound >= best_) return true;
      queue_.pop();
      if (nodes_[At(entry.node)].beaten) continue;
      if (static_cast<int64_t>(nodes_.size()) > options_.most_states) return false;
      const PlanState state = StateOf(entry.node);
      at_ = entry.node;
      Expand(state);
      if (is_over_) return false;
    }
    return true;
  }
  // Called for each set of storages that may leave, and each order of their copies: one state may have many.
  bool IsOver() {
    constexpr int64_t kSetsAState = 50, kOften = 1024;
    if (++sets_ % kOften != 0 || is_over_) return is_over_;
    const bool enough = sets_ > kSetsAState * options_.most_states;
    const auto spent = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count();
    return is_over_ = enough || spent >= options_.time_limit_ns;
  }

  void Expand(const PlanState& state) {
    if (state.next == facts_.operators()) End(state);
    for (size_t op = 0; op <= state.next && op < facts_.operators(); ++op) TryRun(state, op);
    if (!options_.swap) return;
    for (size_t s = 0; s < facts_.count(); ++s) TryPrefetch(state, s);
  }

  // The step ends here, if all that is kept is there. What ends on the host is copied in the order of its making.
  void End(const PlanState& state) {
    std::vector<StorageId> saves;
    for (size_t s = 0; s < facts_.count(); ++s) {
      const Storage& storage = graph_.storages[s];
      const Contents last = facts_.Seen(facts_.operators(), s);
      if (!storage.kept || (storage.away ? state.host : state.device)[s] == last) continue;
      if (!storage.away || !options_.swap || state.device[s] != last) return;
      saves.push_back(static_cast<StorageId>(s));
    }
    SortByMade(state, &saves);
    PlanState end = state;
    end.actions.clear();
    for (StorageId id : saves) Offload(At(id), &end);
    const Nanoseconds time = std::max({end.times[kCompute], end.times[kOut], end.times[kIn]});
    if (time >= best_) return;
    best_ = time;
    best_node_ = Add(end, at_);
  }

  void TryRun(const PlanState& state, size_t number) {
    const Operator& op = graph_.operators[number];
    if (number < state.next && !MayRepeat(state, number)) return;
    Bytes need = op.workspace;
    for (size_t s = 0; s < facts_.count(); ++s) {
      if (facts_.Used(number).test(s) && state.device[s] != facts_.Seen(number, s)) return;
      if (facts_.Changed(number).test(s) && state.device[s] == kNothing) need += facts_.BytesOf(s);
    }
    // Contents that the run overwrites may be wanted later.
    std::vector<StorageId> overwritten;
    const size_t next = std::max(state.next, number + 1);
    for (size_t s = 0; s < facts_.count(); ++s) {
      const Contents there = state.device[s];
      if (!options_.swap || !facts_.Changed(number).test(s) || there == kNothing || state.host[s] == there) continue;
      if (there != static_cast<Contents>(number) && facts_.IsWanted(next, s, there))
        overwritten.push_back(static_cast<StorageId>(s));
    }
    MakeRoom(state, need, facts_.Own(number), {}, [&](const std::vector<StorageId>& drops, StorageSet saved) {
      for (size_t some = 0; some < (size_t{1} << overwritten.size()); ++some) {
        std::vector<StorageId> saves;
        for (StorageId id : drops) {
          if (saved.test(At(id))) saves.push_back(id);
        }
        bool lost = false;
        for (size_t i = 0; i < overwritten.size(); ++i) {
          const auto s = At(overwritten[i]);
          if ((some >> i) & 1) {
            saves.push_back(overwritten[i]);
          } else {
            lost = lost || facts_.IsUnique(next, s, state.device[s]);
          }
        }
        if (lost) continue;
        SortByMade(state, &saves);
        StorageSet leave = facts_.Changed(number);
        for (StorageId id : drops) leave.set(At(id));
        PlanState then = state;
        then.actions.clear();
        Save(then, saves, 0, leave, [&](PlanState& ready) {
          for (StorageId id : drops) Drop(At(id), &ready);
          RunNow(number, &ready);
        });
      }
    });
  }
  // A repeated run makes something that is not there and wanted.
  bool MayRepeat(const PlanState& state, size_t number) const {
    if (graph_.operators[number].once) return false;
    bool makes = false;
    for (size_t s = 0; s < facts_.count(); ++s) {
      const auto made = static_cast<Contents>(number);
      if (!facts_.Changed(number).test(s) || state.device[s] == made) continue;
      if (facts_.IsHeld(state.next, s)) return false;
      makes = makes || facts_.IsWanted(state.next, s, made);
    }
    return makes;
  }
  void RunNow(size_t number, PlanState* state) {
    const Operator& op = graph_.operators[number];
    Nanoseconds start = state->times[kCompute];
    for (size_t s = 0; s < facts_.count(); ++s) {
      if (facts_.Used(number).test(s)) start = std::max(start, state->times[Made(s)]);
      if (facts_.Changed(number).test(s)) start = std::max(start, state->times[Copied(s)]);
    }
    state->times[kCompute] = start + op.cost;
    for (size_t s = 0; s < facts_.count(); ++s) {
      if (!facts_.Changed(number).test(s)) continue;
      if (state->device[s] == kNothing) state->live += facts_.BytesOf(s);
      state->device[s] = static_cast<Contents>(number);
      state->times[Made(s)] = state->times[kCompute];
    }
    state->next = std::max(state->next, number + 1);
    state->actions.push_back({ActionKind::kRun, static_cast<int32_t>(number), {}});
    Reach(std::move(*state), at_);
  }

  void TryPrefetch(const PlanState& state, size_t s) {
    const Contents back = state.host[s], there = state.device[s];
    if (back == kNothing || back == there || facts_.BytesOf(s) == 0 || !facts_.IsWanted(state.next, s, back)) return;
    StorageSet own;
    std::vector<StorageId> first;  // other contents leave first
    if (there != kNothing) {
      if (facts_.IsHeld(state.next, s)) return;  // it would have to be saved over what comes back
      if (facts_.IsUnique(state.next, s, there)) return;
      first.push_back(static_cast<StorageId>(s));
    }
    own.set(s);
    const Bytes need = there == kNothing ? facts_.BytesOf(s) : 0;
    MakeRoom(state, need, own, first, [&](const std::vector<StorageId>& drops, StorageSet saved) {
      std::vector<StorageId> saves;
      StorageSet leave;
      for (StorageId id : drops) {
        leave.set(At(id));
        if (saved.test(At(id))) saves.push_back(id);
      }
      SortByMade(state, &saves);
      PlanState then = state;
      then.actions.clear();
      Save(then, saves, 0, leave, [&](PlanState& ready) {
        for (StorageId id : drops) Drop(At(id), &ready);
        auto& times = ready.times;
        times[Made(s)] = times[kIn] = std::max({times[kIn], times[kCompute], times[Copied(s)]}) + facts_.In(s);
        ready.device[s] = ready.host[s];
        ready.live += facts_.BytesOf(s);
        ready.actions.push_back({ActionKind::kPrefetch, static_cast<int32_t>(s), {}});
        Reach(std::move(ready), at_);
      });
    });
  }

  // Calls `then` with each smallest set of storages that leave so that `need` bytes are free, and with those of them
  // that are copied to the host first. `first` leave in any case, and are not copied. Those in `own` stay.
  template <typename Then>
  void MakeRoom(const PlanState& state, Bytes need, const StorageSet& own, std::vector<StorageId> first, Then then) {
    if (IsOver()) return;
    const Bytes missing = state.live + need - options_.budget;
    if (missing <= 0) {
      then(first, StorageSet());
      return;
    }
    std::vector<Leaver> leavers;
    for (size_t s = 0; s < facts_.count(); ++s) {
      if (own.test(s) || state.device[s] == kNothing || facts_.BytesOf(s) == 0) continue;
      if (const auto leaver = LeaverOf(state, s)) leavers.push_back(*leaver);
    }
    std::sort(leavers.begin(), leavers.end(), [](const Leaver& a, const Leaver& b) { return a.bytes > b.bytes; });
    std::vector<Bytes> rest(leavers.size() + 1);
    for (size_t i = leavers.size(); i-- > 0;) rest[i] = rest[i + 1] + leavers[i].bytes;
    Choose(leavers, rest, 0, missing, &first, StorageSet(), then);
  }
  struct Leaver {
    size_t s;
    Bytes bytes;
    bool may_save, may_lose;
  };
  std::optional<Leaver> LeaverOf(const PlanState& state, size_t s) const {
    const Contents there = state.device[s];
    const bool on_host = state.host[s] == there, held = facts_.IsHeld(state.next, s);
    if (held && !graph_.storages[s].movable) return std::nullopt;
    Leaver leaver = {s, facts_.BytesOf(s), false, on_host};
    if (!on_host) {
      const bool wanted = facts_.IsWanted(state.next, s, there);
      leaver.may_save = options_.swap && (wanted || held);
      leaver.may_lose = !held && !(wanted && facts_.IsUnique(state.next, s, there));
    }
    return leaver.may_save || leaver.may_lose ? std::optional(leaver) : std::nullopt;
  }
  // Descending by size: a set is a smallest one if it is enough, and its last and so smallest member is needed.
  template <typename Then>
  void Choose(const std::vector<Leaver>& leavers, const std::vector<Bytes>& rest, size_t i, Bytes missing,
              std::vector<StorageId>* chosen, StorageSet saved, Then& then) {
    if (IsOver()) return;
    if (missing <= 0) {
      then(*chosen, saved);
      return;
    }
    if (rest[i] < missing) return;
    const Leaver& leaver = leavers[i];
    chosen->push_back(static_cast<StorageId>(leaver.s));
    if (leaver.may_lose) Choose(leavers, rest, i + 1, missing - leaver.bytes, chosen, saved, then);
    if (leaver.may_save) {
      saved.set(leaver.s);
      Choose(leavers, rest, i + 1, missing - leaver.bytes, chosen, saved, then);
      saved.reset(leaver.s);
    }
    chosen->pop_back();
    Choose(leavers, rest, i + 1, missing, chosen, saved, then);
  }

  // Copies `saves` from `i` on to the host, in this order. Before each, where its engine would be idle, perhaps others
  // than those that `leave`. Calls `then` with each result.
  template <typename Then>
  void Save(PlanState& state, const std::vector<StorageId>& saves, size_t i, const StorageSet& leave, Then then) {
    if (IsOver()) return;
    if (i == saves.size()) {
      then(state);
      return;
    }
    const size_t s = At(saves[i]);
    if (state.times[kOut] < state.times[Made(s)]) {
      for (size_t other = 0; other < facts_.count(); ++other) {
        const Contents there = state.device[other];
        if (leave.test(other) || there == kNothing || state.host[other] == there || facts_.BytesOf(other) == 0)
          continue;
        if (state.times[Made(other)] >= state.times[Made(s)]) continue;
        if (!facts_.IsWanted(state.next, other, there) && !facts_.IsHeld(state.next, other)) continue;
        PlanState earlier = state;
        Offload(other, &earlier);
        Save(earlier, saves, i, leave, then);
      }
    }
    Offload(s, &state);
    Save(state, saves, i + 1, leave, then);
  }
  static void SortByMade(const PlanState& state, std::vector<StorageId>* saves) {
    std::sort(saves->begin(), saves->end(), [&state](StorageId a, StorageId b) {
      return std::pair(state.times[Made(At(a))], a) < std::pair(state.times[Made(At(b))], b);
    });
  }
  void Offload(size_t s, PlanState* state) const {
    auto& times = state->times;
    times[Copied(s)] = times[kOut] = std::max(times[kOut], times[Made(s)]) + facts_.Out(s);
    state->host[s] = state->device[s];
    state->actions.push_back({ActionKind::kOffload, static_cast<int32_t>(s), {}});
  }
  void Drop(size_t s, PlanState* state) const {
    state->times[kCompute] = std::max(state->times[kCompute], state->times[Copied(s)]);
    state->device[s] = kNothing;
    state->live -= facts_.BytesOf(s);
    state->actions.push_back({ActionKind::kDrop, static_cast<int32_t>(s), {}});
  }

  // Notes a state, unless it is too slow or dominated.
  void Reach(PlanState state, int32_t parent) {
    // What is used no longer leaves where nothing waits for it.
    for (size_t s = 0; s < facts_.count(); ++s) {
      const Contents there = state.device[s];
      const bool used = there == kNothing || facts_.IsWanted(state.next, s, there) || facts_.IsHeld(state.next, s);
      if (used || facts_.BytesOf(s) == 0 || state.times[Copied(s)] > state.times[kCompute]) continue;
      Drop(s, &state);
    }
    Normalise(&state);
    const Nanoseconds bound = facts_.Bound(state);
    if (bound >= best_ || IsDominated(state)) return;
    const int32_t node = Add(state, parent);
    known_[KeyOf(state)].push_back(node);
    queue_.push({bound, static_cast<int32_t>(state.next), node});
  }
  // What lies before the compute engine's time is past: nothing can begin earlier, but for copies to the host.
  void Normalise(PlanState* state) const {
    auto& times = state->times;
    Nanoseconds first = times[kCompute];  // of what may still be copied to the host
    for (size_t s = 0; s < facts_.count(); ++s) {
      Contents& host = state->host[s];
      if (host != state->device[s] && !facts_.IsWanted(state->next, s, host)) host = kNothing;
      const bool nothing = state->device[s] == kNothing, copied = host == state->device[s];
      if (!nothing && !copied) first = std::min(first, times[Made(s)]);
      if (nothing || (copied && times[Made(s)] <= times[kCompute])) times[Made(s)] = 0;
      if (times[Copied(s)] <= times[kCompute]) times[Copied(s)] = 0;
    }
    times[kOut] = std::max(times[kOut], first);
    for (size_t s = 0; s < facts_.count(); ++s) {
      if (times[Made(s)] <= std::min(times[kCompute], times[kOut])) times[Made(s)] = 0;
    }
    if (times[kIn] <= times[kCompute]) times[kIn] = 0;
  }

  std::string KeyOf(const PlanState& state) const {
    const size_t count = facts_.count();
    std::string key(2 * count + 1, '\0');
    for (size_t s = 0; s < count; ++s) {
      key[s] = static_cast<char>(state.device[s]);
      key[count + s] = static_cast<char>(state.host[s]);
    }
    key[2 * count] = static_cast<char>(state.next);
    return key;
  }
  bool IsDominated(const PlanState& state) {
    const auto found = known_.find(KeyOf(state));
    if (found == known_.end()) return false;
    const size_t width = Made(facts_.count());
    std::vector<int32_t>& known = found->second;
    for (int32_t node : known) {
      const Nanoseconds* other = &times_[At(node) * width];
      bool as_good = true;
      for (size_t i = 0; i < width && as_good; ++i) as_good = other[i] <= state.times[i];
      if (as_good) return true;
    }
    std::erase_if(known, [&](int32_t node) {
      const Nanoseconds* other = &times_[At(node) * width];
      for (size_t i = 0; i < width; ++i) {
        if (other[i] < state.times[i]) return false;
      }
      return nodes_[At(node)].beaten = true;
    });
    return false;
  }
  int32_t Add(const PlanState& state, int32_t parent) {
    const size_t begin = actions_.size(), count = facts_.count();
    actions_.insert(actions_.end(), state.actions.begin(), state.actions.end());
    nodes_.push_back({parent, begin, actions_.size(), state.live, static_cast<uint8_t>(state.next)});
    contents_.insert(contents_.end(), state.device.begin(), state.device.begin() + static_cast<std::ptrdiff_t>(count));
    contents_.insert(contents_.end(), state.host.begin(), state.host.begin() + static_cast<std::ptrdiff_t>(count));
    times_.insert(times_.end(), state.times.begin(), state.times.begin() + static_cast<std::ptrdiff_t>(Made(count)));
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  PlanState StateOf(int32_t node) const {
    const size_t count = facts_.count(), width = Made(count);
    PlanState state;
    const Contents* contents = &contents_[At(node) * 2 * count];
    std::copy_n(contents, count, state.device.begin());
    std::copy_n(contents + count, count, state.host.begin());
    std::copy_n(&times_[At(node) * width], width, state.times.begin());
    state.next = nodes_[At(node)].next;
    state.live = nodes_[At(node)].live;
    return state;
  }

  Schedule ScheduleTo(int32_t node) const {
    std::vector<int32_t> path;
    for (; node >= 0; node = nodes_[At(node)].parent) path.push_back(node);
    Schedule schedule;
    std::set<OperatorId> ran, saved;
    for (size_t i = path.size(); i-- > 0;) {
      const Node& of = nodes_[At(path[i])];
      for (size_t a = of.actions_begin; a < of.actions_end; ++a) {
        const Action& action = actions_[a];
        schedule.actions.push_back(action);
        if (action.kind != ActionKind::kRun || ran.insert(action.target).second) continue;
        if (graph_.operators[At(action.target)].random) saved.insert(action.target);
      }
    }
    schedule.saved_states.assign(saved.begin(), saved.end());
    ReleaseHostCopies(graph_, &schedule);
    return schedule;
  }

  const Graph& graph_;
  const AllPlansOptions& options_;
  const StepFacts facts_;
  const std::chrono::steady_clock::time_point begin_;
  Nanoseconds best_;
  int64_t sets_ = 0;
  bool is_over_ = false;
  int32_t best_node_ = -1, at_ = -1;  // at_: the one whose moves are tried
  std::vector<Node> nodes_;
  std::vector<Contents> contents_;  // by node: of each storage on the device, then on the host
  std::vector<Nanoseconds> times_;  // by node
  std::vector<Action> actions_;     // of all nodes
  absl::flat_hash_map<std::string, std::vector<int32_t>> known_;
  std::priority_queue<Entry> queue_;
};

}  // namespace
}  // namespace all_plans

bool MaySearchAllPlans(const Graph& graph) {
  return graph.storages.size() <= all_plans::kMostStorages && graph.operators.size() <= all_plans::kMostOperators &&
         std::all_of(graph.operators.begin(), graph.operators.end(),
                     [](const Operator& op) { return op.in_place.empty(); });
}

AllPlansAnswer SearchAllPlans(const Graph& graph, const AllPlansOptions& options) {
  return all_plans::AllPlans(graph, options).Run();
}

}  // namespace hotpack::remat
