#include "remat/exact/all_plans.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <cmath>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hotpack::remat {
namespace {

constexpr size_t kMaxStorages = 32, kMaxOperators = 100;
using Contents = int8_t;  // the operator that made them
constexpr Contents kNothing = -2, kGiven = -1;
constexpr size_t ContentsIndex(Contents contents) { return static_cast<size_t>(contents + 1); }

enum Engine : size_t { kCompute, kOut, kIn, kEngines };
constexpr size_t Made(size_t s) { return kEngines + 2 * s; }
constexpr size_t Copied(size_t s) { return Made(s) + 1; }

using StorageSet = std::bitset<kMaxStorages>;

struct State {
  std::array<Contents, kMaxStorages> device, host;  // by storage
  size_t next = 0;                                  // operators that have run
  std::array<Nanoseconds, Made(kMaxStorages)> times = {};
  Bytes live = 0;
  std::vector<Action> actions;  // of the last move
};

// What does not change: what each operator finds, what is wanted when, what a copy takes.
class Facts {
 public:
  Facts(const Graph& graph, const AllPlansOptions& options)
      : graph_(graph), count_(graph.storages.size()), operators_(graph.operators.size()), budget_(options.budget) {
    for (const Storage& storage : graph.storages) {
      const auto bytes = static_cast<double>(storage.bytes);
      out_.push_back(static_cast<Nanoseconds>(std::ceil(bytes / options.machine.bytes_per_ns_to_host)));
      in_.push_back(static_cast<Nanoseconds>(std::ceil(bytes / options.machine.bytes_per_ns_to_device)));
    }
    FindContents();
    FindWanted();
    FindWaits(options.machine);
  }

  const Graph& graph() const { return graph_; }
  size_t count() const { return count_; }
  size_t operators() const { return operators_; }
  Bytes BytesOf(size_t s) const { return graph_.storages[s].bytes; }
  Nanoseconds Out(size_t s) const { return out_[s]; }
  Nanoseconds In(size_t s) const { return in_[s]; }
  // The contents that an operator finds in the program; of `operators()`: at the end.
  Contents Seen(size_t op, size_t s) const { return seen_[op][s]; }
  const StorageSet& Own(size_t op) const { return own_[op]; }
  const StorageSet& Used(size_t op) const { return used_[op]; }
  const StorageSet& Changed(size_t op) const { return changed_[op]; }
  // Whether contents may still be used when `next` operators have run: by one that has not run, at the end, or by a
  // repeated run for those.
  bool IsWanted(size_t next, size_t s, Contents contents) const {
    return contents != kNothing && wanted_[next][s].test(ContentsIndex(contents));
  }
  // Whether no operator can make these contents again.
  bool IsOnce(size_t s, Contents contents) const {
    const Storage& storage = graph_.storages[s];
    return contents == kGiven || (storage.held && storage.movable) ||
           graph_.operators[static_cast<size_t>(contents)].once;
  }
  // ... and an operator that has not run, or the end, finds them.
  bool IsUnique(size_t next, size_t s, Contents contents) const {
    if (!IsOnce(s, contents)) return false;
    if (graph_.storages[s].kept && seen_[operators_][s] == contents) return true;
    for (size_t op = next; op < operators_; ++op) {
      if (used_[op].test(s) && seen_[op][s] == contents) return true;
    }
    return false;
  }
  bool IsHeld(size_t next, size_t s) const {
    const OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[s];
    return graph_.storages[s].held && static_cast<OperatorId>(next) - 1 < released;
  }
  // Returns the least time of any plan that goes on from a state; INT64_MAX: none does.
  Nanoseconds Bound(const State& state) const {
    const auto& times = state.times;
    std::array<Nanoseconds, kMaxOperators> ends;
    StorageSet fetched;
    std::bitset<kMaxOperators> again;
    // `busy` has the runs alone, `end` also what they wait for.
    Nanoseconds end = times[kCompute], busy = end, in = std::max(times[kIn], times[kCompute]);
    // Takes what an operator, or the end, waits for. False: it can never be there.
    const auto wait = [&](size_t s, Contents wanted) {
      if (state.device[s] == wanted) {
        end = std::max(end, times[Made(s)]);
        return true;
      }
      if (wanted != kGiven && static_cast<size_t>(wanted) >= state.next) return true;  // not yet made
      const bool once = IsOnce(s, wanted);
      if (state.host[s] != wanted) {
        if (once) return false;
        if (!again.test(static_cast<size_t>(wanted))) {
          again.set(static_cast<size_t>(wanted));
          busy += graph_.operators[static_cast<size_t>(wanted)].cost;
        }
      } else if (once) {
        if (!fetched.test(s)) in += in_[s];
        fetched.set(s);
        end = std::max(end, in);
      }
      return true;
    };
    for (size_t op = state.next; op < operators_; ++op) {
      for (size_t s = 0; s < count_; ++s) {
        if (used_[op].test(s) && !wait(s, seen_[op][s])) return INT64_MAX;
      }
      for (size_t from = state.next; from < op; ++from) end = std::max(end, ends[from] + waits_[from][op]);
      busy += graph_.operators[op].cost;
      ends[op] = end = std::max(end + graph_.operators[op].cost, busy);
    }
    for (size_t s = 0; s < count_; ++s) {
      const Storage& storage = graph_.storages[s];
      if (storage.kept && !storage.away && !wait(s, seen_[operators_][s])) return INT64_MAX;
    }
    end = std::max({end, busy, times[kIn]});
    for (size_t from = state.next; from < operators_; ++from)
      end = std::max(end, ends[from] + waits_[from][operators_]);
    // Copies to the host that the end waits for.
    Nanoseconds out = 0;
    for (size_t op = operators_; op-- > state.next;) {
      for (size_t s = 0; s < count_; ++s) {
        if (changed_[op].test(s) && graph_.storages[s].away && seen_[operators_][s] == static_cast<Contents>(op))
          out += out_[s];
      }
      end = std::max(end, ends[op] + out);
    }
    for (size_t s = 0; s < count_; ++s) {
      const Contents last = seen_[operators_][s];
      if (!graph_.storages[s].away || !graph_.storages[s].kept || last >= static_cast<Contents>(state.next)) continue;
      if (state.host[s] == last) continue;
      if (state.device[s] != last && last == kGiven) return INT64_MAX;
      out += out_[s];
    }
    return std::max(end, times[kOut] + out);
  }

 private:
  void FindContents() {
    std::array<Contents, kMaxStorages> now;
    now.fill(kNothing);
    for (size_t s = 0; s < count_; ++s) {
      if (graph_.storages[s].given) now[s] = kGiven;
    }
    for (size_t number = 0; number < operators_; ++number) {
      const Operator& op = graph_.operators[number];
      seen_.push_back(now);
      StorageSet &used = used_.emplace_back(), &changed = changed_.emplace_back();
      for (StorageId id : op.reads) used.set(At(id));
      for (StorageId id : op.updates) used.set(At(id)), changed.set(At(id));
      for (StorageId id : op.writes) changed.set(At(id));
      own_.push_back(used | changed);
      for (size_t s = 0; s < count_; ++s) {
        if (changed.test(s)) now[s] = static_cast<Contents>(number);
      }
    }
    seen_.push_back(now);
  }
  void FindWanted() {
    wanted_.resize(operators_ + 1);
    for (size_t next = 0; next <= operators_; ++next) {
      std::array<ContentsSet, kMaxStorages>& wanted = wanted_[next];
      std::bitset<kMaxOperators> may_run;
      const auto want = [&](size_t op) {
        may_run.set(op);
        for (size_t s = 0; s < count_; ++s) {
          if (used_[op].test(s)) wanted[s].set(ContentsIndex(seen_[op][s]));
        }
      };
      for (size_t op = next; op < operators_; ++op) want(op);
      for (size_t s = 0; s < count_; ++s) {
        if (graph_.storages[s].kept) wanted[s].set(ContentsIndex(seen_[operators_][s]));
      }
      for (size_t op = next; op-- > 0;) {  // descending: a run wants what earlier ones make
        if (graph_.operators[op].once) continue;
        for (size_t s = 0; s < count_; ++s) {
          const bool makes = changed_[op].test(s) && wanted[s].test(op + 1) && !IsOnce(s, static_cast<Contents>(op));
          if (makes && !may_run.test(op)) want(op);
        }
      }
    }
  }
  // Between an operator and a later one: what has to be there by then and cannot be next to the first one's operands.
  void FindWaits(const Machine& machine) {
    waits_.assign(operators_, std::vector<Nanoseconds>(operators_ + 1));
    for (size_t from = 0; from < operators_; ++from) {
      Bytes room = budget_ == INT64_MAX ? INT64_MAX : budget_ - graph_.operators[from].workspace;
      if (room == INT64_MAX) return;
      for (size_t s = 0; s < count_; ++s) room -= own_[from].test(s) ? BytesOf(s) : 0;
      Bytes wanted = 0;
      StorageSet counted = own_[from];
      for (size_t to = from + 1; to <= operators_; ++to) {
        for (size_t s = 0; s < count_; ++s) {
          const Storage& storage = graph_.storages[s];
          if (counted.test(s) || !(to < operators_ ? used_[to].test(s) : storage.kept && !storage.away)) continue;
          const Contents contents = seen_[to][s];
          if (!IsOnce(s, contents) || contents > static_cast<Contents>(from)) continue;
          counted.set(s);
          wanted += BytesOf(s);
        }
        const auto away = static_cast<double>(std::max<Bytes>(0, wanted - room));
        waits_[from][to] = static_cast<Nanoseconds>(away / machine.bytes_per_ns_to_device);
      }
    }
  }

  using ContentsSet = std::bitset<kMaxOperators + 1>;

  const Graph& graph_;
  const size_t count_, operators_;
  const Bytes budget_;
  std::vector<Nanoseconds> out_, in_;  // by storage: what a copy takes
  std::vector<std::array<Contents, kMaxStorages>> seen_;
  std::vector<StorageSet> used_, changed_, own_;
  std::vector<std::array<ContentsSet, kMaxStorages>> wanted_;
  std::vector<std::vector<Nanoseconds>> waits_;  // by operator, and a later one or the end
};

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
    State first;
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
      const State state = StateOf(entry.node);
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

  void Expand(const State& state) {
    if (state.next == facts_.operators()) End(state);
    for (size_t op = 0; op <= state.next && op < facts_.operators(); ++op) TryRun(state, op);
    if (!options_.swap) return;
    for (size_t s = 0; s < facts_.count(); ++s) TryPrefetch(state, s);
  }

  // The step ends here, if all that is kept is there. What ends on the host is copied in the order of its making.
  void End(const State& state) {
    std::vector<StorageId> saves;
    for (size_t s = 0; s < facts_.count(); ++s) {
      const Storage& storage = graph_.storages[s];
      const Contents last = facts_.Seen(facts_.operators(), s);
      if (!storage.kept || (storage.away ? state.host : state.device)[s] == last) continue;
      if (!storage.away || !options_.swap || state.device[s] != last) return;
      saves.push_back(static_cast<StorageId>(s));
    }
    SortByMade(state, &saves);
    State end = state;
    end.actions.clear();
    for (StorageId id : saves) Offload(At(id), &end);
    const Nanoseconds time = std::max({end.times[kCompute], end.times[kOut], end.times[kIn]});
    if (time >= best_) return;
    best_ = time;
    best_node_ = Add(end, at_);
  }

  void TryRun(const State& state, size_t number) {
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
        State then = state;
        then.actions.clear();
        Save(then, saves, 0, leave, [&](State& ready) {
          for (StorageId id : drops) Drop(At(id), &ready);
          RunNow(number, &ready);
        });
      }
    });
  }
  // A repeated run makes something that is not there and wanted.
  bool MayRepeat(const State& state, size_t number) const {
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
  void RunNow(size_t number, State* state) {
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

  void TryPrefetch(const State& state, size_t s) {
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
      State then = state;
      then.actions.clear();
      Save(then, saves, 0, leave, [&](State& ready) {
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
  void MakeRoom(const State& state, Bytes need, const StorageSet& own, std::vector<StorageId> first, Then then) {
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
  std::optional<Leaver> LeaverOf(const State& state, size_t s) const {
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
  void Save(State& state, const std::vector<StorageId>& saves, size_t i, const StorageSet& leave, Then then) {
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
        State earlier = state;
        Offload(other, &earlier);
        Save(earlier, saves, i, leave, then);
      }
    }
    Offload(s, &state);
    Save(state, saves, i + 1, leave, then);
  }
  static void SortByMade(const State& state, std::vector<StorageId>* saves) {
    std::sort(saves->begin(), saves->end(), [&state](StorageId a, StorageId b) {
      return std::pair(state.times[Made(At(a))], a) < std::pair(state.times[Made(At(b))], b);
    });
  }
  void Offload(size_t s, State* state) const {
    auto& times = state->times;
    times[Copied(s)] = times[kOut] = std::max(times[kOut], times[Made(s)]) + facts_.Out(s);
    state->host[s] = state->device[s];
    state->actions.push_back({ActionKind::kOffload, static_cast<int32_t>(s), {}});
  }
  void Drop(size_t s, State* state) const {
    state->times[kCompute] = std::max(state->times[kCompute], state->times[Copied(s)]);
    state->device[s] = kNothing;
    state->live -= facts_.BytesOf(s);
    state->actions.push_back({ActionKind::kDrop, static_cast<int32_t>(s), {}});
  }

  // Notes a state, unless it is too slow or dominated.
  void Reach(State state, int32_t parent) {
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
  void Normalise(State* state) const {
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

  std::string KeyOf(const State& state) const {
    const size_t count = facts_.count();
    std::string key(2 * count + 1, '\0');
    for (size_t s = 0; s < count; ++s) {
      key[s] = static_cast<char>(state.device[s]);
      key[count + s] = static_cast<char>(state.host[s]);
    }
    key[2 * count] = static_cast<char>(state.next);
    return key;
  }
  bool IsDominated(const State& state) {
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
  int32_t Add(const State& state, int32_t parent) {
    const size_t begin = actions_.size(), count = facts_.count();
    actions_.insert(actions_.end(), state.actions.begin(), state.actions.end());
    nodes_.push_back({parent, begin, actions_.size(), state.live, static_cast<uint8_t>(state.next)});
    contents_.insert(contents_.end(), state.device.begin(), state.device.begin() + static_cast<std::ptrdiff_t>(count));
    contents_.insert(contents_.end(), state.host.begin(), state.host.begin() + static_cast<std::ptrdiff_t>(count));
    times_.insert(times_.end(), state.times.begin(), state.times.begin() + static_cast<std::ptrdiff_t>(Made(count)));
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  State StateOf(int32_t node) const {
    const size_t count = facts_.count(), width = Made(count);
    State state;
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
  const Facts facts_;
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

bool MaySearchAllPlans(const Graph& graph) {
  return graph.storages.size() <= kMaxStorages && graph.operators.size() <= kMaxOperators &&
         std::all_of(graph.operators.begin(), graph.operators.end(),
                     [](const Operator& op) { return op.in_place.empty(); });
}

AllPlansAnswer SearchAllPlans(const Graph& graph, const AllPlansOptions& options) {
  return AllPlans(graph, options).Run();
}

}  // namespace hotpack::remat
