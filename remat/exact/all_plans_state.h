// Parts of the search over all plans of a small step (remat/exact/all_plans.h): its states, what does not change
// between them, and the least time of plans that go on from a state. Times in ns, from the beginning of the step.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "remat/core/graph.h"
#include "remat/core/schedule.h"
#include "remat/exact/all_plans.h"

namespace hotpack::remat::all_plans {

inline constexpr size_t kMostStorages = 32, kMostOperators = 100;
using Contents = int8_t;  // the operator that made them
inline constexpr Contents kNothing = -2, kGiven = -1;
constexpr size_t ContentsIndex(Contents contents) { return static_cast<size_t>(contents + 1); }

enum Engine : size_t { kCompute, kOut, kIn, kEngines };
constexpr size_t Made(size_t s) { return kEngines + 2 * s; }
constexpr size_t Copied(size_t s) { return Made(s) + 1; }

using StorageSet = std::bitset<kMostStorages>;

struct PlanState {
  std::array<Contents, kMostStorages> device, host;  // by storage
  size_t next = 0;                                   // operators that have run
  std::array<Nanoseconds, Made(kMostStorages)> times = {};
  Bytes live = 0;               // on the device
  std::vector<Action> actions;  // of the last move
};

// What does not change: what each operator finds, what is wanted when, what a copy takes.
class StepFacts {
 public:
  StepFacts(const Graph& graph, const AllPlansOptions& options);

  size_t count() const { return count_; }
  size_t operators() const { return operators_; }
  Bytes BytesOf(size_t s) const { return graph_.storages[s].bytes; }
  // What a copy of the storage takes, to the host and to the device.
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
  bool IsUnique(size_t next, size_t s, Contents contents) const;
  bool IsHeld(size_t next, size_t s) const {
    const OperatorId released = graph_.released_after.empty() ? kNever : graph_.released_after[s];
    return graph_.storages[s].held && static_cast<OperatorId>(next) - 1 < released;
  }
  // Returns the least time of any plan that goes on from a state; INT64_MAX: none does.
  Nanoseconds Bound(const PlanState& state) const;

 private:
  void FindContents();
  void FindWanted();
  // Between an operator and a later one: what has to be there by then and cannot be next to the first one's operands.
  void FindWaits(const Machine& machine);

  using ContentsSet = std::bitset<kMostOperators + 1>;

  const Graph& graph_;
  const size_t count_, operators_;
  const Bytes budget_;
  std::vector<Nanoseconds> out_, in_;  // by storage: what a copy takes
  std::vector<std::array<Contents, kMostStorages>> seen_;
  std::vector<StorageSet> used_, changed_, own_;
  std::vector<std::array<ContentsSet, kMostStorages>> wanted_;
  std::vector<std::vector<Nanoseconds>> waits_;  // by operator, and a later one or the end
};

}  // namespace hotpack::remat::all_plans
