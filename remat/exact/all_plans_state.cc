#include "remat/exact/all_plans_state.h"

#include <algorithm>
#include <cmath>

namespace hotpack::remat::all_plans {

StepFacts::StepFacts(const Graph& graph, const AllPlansOptions& options)
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

bool StepFacts::IsUnique(size_t next, size_t s, Contents contents) const {
  if (!IsOnce(s, contents)) return false;
  if (graph_.storages[s].kept && seen_[operators_][s] == contents) return true;
  for (size_t op = next; op < operators_; ++op) {
    if (used_[op].test(s) && seen_[op][s] == contents) return true;
  }
  return false;
}

Nanoseconds StepFacts::Bound(const PlanState& state) const {
  const auto& times = state.times;
  std::array<Nanoseconds, kMostOperators> ends;
  StorageSet fetched;
  std::bitset<kMostOperators> again;
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
  for (size_t from = state.next; from < operators_; ++from) end = std::max(end, ends[from] + waits_[from][operators_]);
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

void StepFacts::FindContents() {
  std::array<Contents, kMostStorages> now;
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

void StepFacts::FindWanted() {
  wanted_.resize(operators_ + 1);
  for (size_t next = 0; next <= operators_; ++next) {
    std::array<ContentsSet, kMostStorages>& wanted = wanted_[next];
    std::bitset<kMostOperators> may_run;
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

void StepFacts::FindWaits(const Machine& machine) {
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

}  // namespace hotpack::remat::all_plans
