#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <queue>
#include <vector>

#include "tests/remat/exact/brute_force.h"

namespace hotpack::remat {
namespace {

constexpr int8_t kNothing = -2, kGivenContents = -1;  // else the operator that made them

constexpr size_t kMostStorages = 16;

struct Place {
  std::array<int8_t, kMostStorages> device, host;  // by storage
  size_t next = 0;                                 // operators that have run
  auto operator<=>(const Place&) const = default;
};

enum Engine { kCompute, kOut, kIn, kEngines };
constexpr size_t Made(size_t s) { return kEngines + 2 * s; }
constexpr size_t Copied(size_t s) { return kEngines + 2 * s + 1; }

// When each engine, and each storage's contents and copy, are done. The fewer the better.
using Times = std::array<int32_t, Made(kMostStorages)>;

bool AsGood(const Times& a, const Times& b) {
  int later = 0;  // without a branch: compared some at once
  for (size_t i = 0; i < a.size(); ++i) later |= a[i] > b[i] ? 1 : 0;
  return later == 0;
}

class AllPlans {
 public:
  AllPlans(const Graph& graph, Bytes budget, const BruteForceCopiesOptions& options)
      : graph_(graph),
        budget_(budget),
        options_(options),
        best_(options.faster_than),
        left_(graph.operators.size() + 1) {
    for (size_t op = graph.operators.size(); op-- > 0;) left_[op] = left_[op + 1] + graph.operators[op].cost;
    std::array<int8_t, kMostStorages> now;
    now.fill(kNothing);
    for (size_t s = 0; s < graph.storages.size(); ++s) {
      if (graph.storages[s].given) now[s] = kGivenContents;
    }
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      seen_.push_back(now);
      for (StorageId id : graph.operators[op].writes) now[At(id)] = static_cast<int8_t>(op);
      for (StorageId id : graph.operators[op].updates) now[At(id)] = static_cast<int8_t>(op);
    }
    seen_.push_back(now);
  }

  BruteForceAnswer Run() {
    const size_t count = graph_.storages.size();
    Place first;
    first.device.fill(kNothing), first.host.fill(kNothing);
    for (size_t s = 0; s < count; ++s) {
      if (graph_.storages[s].given) (graph_.storages[s].away ? first.host : first.device)[s] = kGivenContents;
    }
    if (Live(first) > budget_) return {true, {}};
    Reach(first, Times{});
    while (!queue_.empty()) {
      const auto [time, place, times] = queue_.top();
      queue_.pop();
      if (time >= best_) break;
      if (IsBeaten(place, times, false)) continue;
      if (states_ > options_.most_states) return {};
      if (place.next == graph_.operators.size() && IsEnd(place)) {
        best_ = std::min(best_, time);
        continue;
      }
      for (size_t s = 0; s < count; ++s) Move(place, times, s);
      for (size_t op = 0; op <= place.next && op < graph_.operators.size(); ++op) RunOne(place, times, op);
    }
    return {true, best_ == options_.faster_than ? std::nullopt : std::optional(best_)};
  }

 private:
  Bytes Live(const Place& place) const {
    Bytes live = 0;
    for (size_t s = 0; s < graph_.storages.size(); ++s)
      live += place.device[s] == kNothing ? 0 : graph_.storages[s].bytes;
    return live;
  }
  bool IsEnd(const Place& place) const {
    for (size_t s = 0; s < graph_.storages.size(); ++s) {
      const int left = (graph_.storages[s].away ? place.host : place.device)[s];
      if (graph_.storages[s].kept && left != seen_.back()[s]) return false;
    }
    return true;
  }
  // Whether another way to the same place is as good; `add`: notes this one.
  bool IsBeaten(const Place& place, const Times& times, bool add) {
    std::vector<Times>& known = known_[place];
    for (const Times& other : known) {
      if (AsGood(other, times) && (add || other != times)) return true;
    }
    if (!add) return false;
    std::erase_if(known, [&times](const Times& other) { return AsGood(times, other); });
    known.push_back(times);
    ++states_;
    return false;
  }
  void Reach(Place place, Times times) {
    // What lies before the compute engine's time is past: nothing can begin earlier.
    if (times[kIn] <= times[kCompute]) times[kIn] = 0;
    for (size_t s = 0; s < graph_.storages.size(); ++s) {
      const bool nothing = place.device[s] == kNothing, is_copied = place.host[s] == place.device[s];
      const bool past = times[Made(s)] <= times[kCompute] && (is_copied || times[Made(s)] <= times[kOut]);
      if (nothing || past) times[Made(s)] = 0;
      if (times[Copied(s)] <= times[kCompute]) times[Copied(s)] = 0;
    }
    const Nanoseconds time = std::max<Nanoseconds>({times[kCompute] + left_[place.next], times[kOut], times[kIn]});
    if (time >= best_ || IsBeaten(place, times, true)) return;
    queue_.push({time, std::move(place), std::move(times)});
  }
  int32_t CopyTime(size_t s) const {
    return static_cast<int32_t>(std::ceil(static_cast<double>(graph_.storages[s].bytes) / options_.bytes_per_ns));
  }

  void Move(const Place& place, const Times& times, size_t s) {
    const Storage& storage = graph_.storages[s];
    if (storage.bytes == 0) return;
    if (place.device[s] == kNothing) {
      if (place.host[s] == kNothing || Live(place) + storage.bytes > budget_) return;
      Place next = place;
      Times then = times;
      next.device[s] = place.host[s];
      then[kIn] = std::max({times[kIn], times[kCompute], times[Copied(s)]}) + CopyTime(s);
      then[Made(s)] = then[kIn];
      Reach(std::move(next), std::move(then));
      return;
    }
    if (place.host[s] != place.device[s]) {
      Place next = place;
      Times then = times;
      next.host[s] = place.device[s];
      then[kOut] = std::max(times[kOut], times[Made(s)]) + CopyTime(s);
      then[Copied(s)] = then[kOut];
      Reach(std::move(next), std::move(then));
    }
    if (IsHeld(place, s) && !(storage.movable && place.host[s] == place.device[s])) return;
    Place next = place;
    Times then = times;
    next.device[s] = kNothing;
    then[kCompute] = std::max(times[kCompute], times[Copied(s)]);
    Reach(std::move(next), std::move(then));
  }

  bool IsHeld(const Place& place, size_t s) const {
    const OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[s];
    return graph_.storages[s].held && static_cast<OperatorId>(place.next) - 1 < released;
  }

  void RunOne(const Place& place, const Times& times, size_t number) {
    const Operator& op = graph_.operators[number];
    if (number < place.next && op.once) return;
    Place next = place;
    Times then = times;
    int32_t start = times[kCompute];
    for (const auto* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) {
        if (place.device[At(id)] != seen_[number][At(id)]) return;
        start = std::max(start, times[Made(At(id))]);
      }
    }
    for (const auto* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) {
        const bool other = place.device[At(id)] != static_cast<int8_t>(number);
        if (number < place.next && other && IsHeld(place, At(id))) return;
        start = std::max(start, times[Copied(At(id))]);
        next.device[At(id)] = static_cast<int8_t>(number);
      }
    }
    if (Live(next) + op.workspace > budget_) return;
    next.next = std::max(place.next, number + 1);
    then[kCompute] = start + static_cast<int32_t>(op.cost);
    for (const auto* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) then[Made(At(id))] = then[kCompute];
    }
    Reach(std::move(next), std::move(then));
  }

  struct Entry {
    Nanoseconds time;  // at least, to the end
    Place place;
    Times times;
    bool operator<(const Entry& other) const { return time > other.time; }  // least time first
  };

  const Graph& graph_;
  const Bytes budget_;
  const BruteForceCopiesOptions options_;
  size_t states_ = 0;
  Nanoseconds best_;
  std::vector<Nanoseconds> left_;  // by operator: the costs from it to the end
  std::vector<std::array<int8_t, kMostStorages>>
      seen_;  // by operator, and the end: each storage's contents in the program
  std::map<Place, std::vector<Times>> known_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

BruteForceAnswer BruteForceWithCopies(const Graph& graph, Bytes budget, const BruteForceCopiesOptions& options) {
  return AllPlans(graph, budget, options).Run();
}

}  // namespace hotpack::remat
