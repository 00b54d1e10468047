#include "remat/baselines/wait_for_memory.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace hotpack::remat {
namespace {

constexpr int32_t kNone = -1;

bool Uses(const Graph& graph, const Action& action, StorageId id) {
  if (action.kind != ActionKind::kRun) return action.target == id;
  const Operator& op = graph.operators[static_cast<size_t>(action.target)];
  const auto in = [id](const std::vector<StorageId>& list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  return in(op.reads) || in(op.writes) || in(op.updates);
}

// Adds drops for storages that are copied to the host and never dropped, because their use comes before the copy's end.
// The copy back follows right before that use. `added`: indices of the drops; the copy back is the next action.
Schedule WithAllDrops(const Graph& graph, const Schedule& schedule, std::vector<size_t>* added) {
  std::vector<std::vector<StorageId>> before(schedule.actions.size());
  for (size_t i = 0; i < schedule.actions.size(); ++i) {
    if (schedule.actions[i].kind != ActionKind::kOffload) continue;
    const StorageId id = schedule.actions[i].target;
    size_t next = i + 1;
    while (next < schedule.actions.size() && !Uses(graph, schedule.actions[next], id)) ++next;
    if (next == schedule.actions.size() || schedule.actions[next].kind != ActionKind::kRun) continue;
    const std::vector<StorageId>& made = graph.operators[static_cast<size_t>(schedule.actions[next].target)].writes;
    if (std::find(made.begin(), made.end(), id) == made.end()) before[next].push_back(id);
  }
  Schedule all = {.actions = {}, .saved_states = schedule.saved_states};
  for (size_t i = 0; i < before.size(); ++i) {
    for (StorageId id : before[i]) {
      added->push_back(all.actions.size());
      all.actions.push_back({ActionKind::kDrop, id});
      all.actions.push_back({ActionKind::kPrefetch, id});
    }
    all.actions.push_back(schedule.actions[i]);
  }
  return all;
}

class Mover {
 public:
  Mover(const Graph& graph, const Schedule& schedule, const std::vector<size_t>& added, Bytes budget)
      : graph_(graph),
        schedule_(schedule),
        added_(added),
        budget_(budget),
        bytes_(graph.storages.size()),
        there_(graph.storages.size()),
        copied_(graph.storages.size()),
        last_(graph.storages.size()),
        open_(graph.storages.size(), kNone) {}

  Schedule Run() {
    Measure();
    for (size_t i = 0; i < load_.size(); ++i) DropBefore(i);
    std::stable_sort(prefetches_.begin(), prefetches_.end(),
                     [](const Prefetch& a, const Prefetch& b) { return a.until > b.until; });
    for (const Prefetch& prefetch : prefetches_) Delay(prefetch);
    DropInVain();
    return Ordered();
  }

 private:
  struct CopiedDrop {
    size_t action;
    StorageId storage;
    size_t after;  // the last action before it that uses the storage
    bool moved = false;
  };
  struct Prefetch {
    size_t action;
    StorageId storage;
    size_t until;  // the first action that uses it
  };
  // The new position of an action: before the action `at` of the original schedule, drops first, then copies back.
  struct Place {
    size_t at;
    int rank;
    size_t order;
    bool operator<(const Place& other) const {
      return std::tie(at, rank, order) < std::tie(other.at, other.rank, other.order);
    }
  };
  static constexpr int kMovedDrop = 0, kMovedPrefetch = 1, kAsItWas = 2, kTakenOut = 3;

  Bytes BytesOf(StorageId id) const { return graph_.storages[static_cast<size_t>(id)].bytes; }

  void Allocate(StorageId id) {
    const auto index = static_cast<size_t>(id);
    if (there_[index]) return;
    there_[index] = true;
    live_ += bytes_[index] = BytesOf(id);
  }
  void Release(StorageId id) {
    const auto index = static_cast<size_t>(id);
    there_[index] = false;
    live_ -= std::exchange(bytes_[index], 0);
  }
  void Touch(StorageId id, size_t action) {
    last_[static_cast<size_t>(id)] = action;
    const int32_t prefetch = std::exchange(open_[static_cast<size_t>(id)], kNone);
    if (prefetch != kNone) prefetches_[static_cast<size_t>(prefetch)].until = action;
  }

  // Computes the bytes resident during each action, and the actions that may move.
  void Measure() {
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      if (graph_.storages[id].given) Allocate(static_cast<StorageId>(id));
    }
    for (size_t i = 0; i < schedule_.actions.size(); ++i) {
      places_.push_back({i, kAsItWas, 0});
      const Action& action = schedule_.actions[i];
      if (action.kind == ActionKind::kRun) {
        MeasureRun(action, i);
        continue;
      }
      const auto target = static_cast<size_t>(action.target);
      if (action.kind == ActionKind::kDrop && copied_[target]) drops_.push_back({i, action.target, last_[target]});
      Touch(action.target, i);
      if (action.kind == ActionKind::kOffload) copied_[target] = true;
      if (action.kind == ActionKind::kPrefetch) {
        open_[target] = static_cast<int32_t>(prefetches_.size());
        prefetches_.push_back({i, action.target, schedule_.actions.size()});
        Allocate(action.target);
      }
      load_.push_back(live_);
      if (action.kind == ActionKind::kDrop) Release(action.target);
    }
  }
  void MeasureRun(const Action& action, size_t index) {
    const Operator& op = graph_.operators[static_cast<size_t>(action.target)];
    for (int32_t pair : action.in_place) {
      const auto read = static_cast<size_t>(op.in_place[static_cast<size_t>(pair)].read);
      const auto made = static_cast<size_t>(op.in_place[static_cast<size_t>(pair)].made);
      bytes_[made] = std::exchange(bytes_[read], 0);
      there_[made] = true;
      there_[read] = false;
    }
    for (StorageId id : op.writes) Allocate(id);
    for (const std::vector<StorageId>* list : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *list) Touch(id, index);
    }
    for (const std::vector<StorageId>* list : {&op.writes, &op.updates}) {
      for (StorageId id : *list) copied_[static_cast<size_t>(id)] = false;
    }
    load_.push_back(live_ + op.workspace);
  }

  // Moves drops ahead of the action `index`, the first issued copies first.
  void DropBefore(size_t index) {
    for (CopiedDrop& drop : drops_) {
      if (load_[index] <= budget_) return;
      if (drop.moved || drop.after >= index || drop.action <= index) continue;
      drop.moved = true;
      places_[drop.action] = {index, kMovedDrop, drop.after};
      for (size_t i = index; i <= drop.action; ++i) load_[i] -= BytesOf(drop.storage);
    }
  }
  void Delay(const Prefetch& prefetch) {
    size_t last = prefetch.until;
    while (last > prefetch.action && load_[last - 1] <= budget_) --last;
    if (last == prefetch.action) return;
    places_[prefetch.action] = {last, kMovedPrefetch, prefetch.until};
    for (size_t i = prefetch.action; i < last; ++i) load_[i] -= BytesOf(prefetch.storage);
  }

  // Removes added drops that did not move, with their copies back.
  void DropInVain() {
    for (size_t drop : added_) {
      if (places_[drop].rank == kAsItWas && places_[drop + 1].rank == kAsItWas)
        places_[drop].rank = places_[drop + 1].rank = kTakenOut;
    }
  }

  Schedule Ordered() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].rank != kTakenOut) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return places_[a] < places_[b]; });
    Schedule moved = {.actions = {}, .saved_states = schedule_.saved_states};
    for (size_t i : order) moved.actions.push_back(schedule_.actions[i]);
    return moved;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const std::vector<size_t>& added_;  // indices of added drops
  const Bytes budget_;
  Bytes live_ = 0;
  std::vector<Bytes> bytes_;  // by storage: bytes of its memory
  std::vector<bool> there_, copied_;
  std::vector<size_t> last_;   // by storage: the last action that used it
  std::vector<int32_t> open_;  // by storage: its pending prefetch, not yet used
  std::vector<Bytes> load_;    // by action
  std::vector<Place> places_;  // by action
  std::vector<CopiedDrop> drops_;
  std::vector<Prefetch> prefetches_;
};

}  // namespace

Schedule WaitForMemory(const Graph& graph, const Schedule& schedule, Bytes budget) {
  std::vector<size_t> added;
  const Schedule all = WithAllDrops(graph, schedule, &added);
  return Mover(graph, all, added, budget).Run();
}

}  // namespace hotpack::remat
