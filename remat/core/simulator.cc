#include "remat/core/simulator.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

constexpr int32_t kNowhere = -1;

class Simulator {
 public:
  Simulator(const Graph& graph, const Machine& machine)
      : graph_(graph), machine_(machine), places_(graph.storages.size()), has_run_(graph.operators.size()) {}

  absl::StatusOr<Outcome> Run(const Schedule& schedule) {
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      const Storage& storage = graph_.storages[id];
      if (storage.away) {
        places_[id].on_host = true;
        host_ += storage.bytes;
      } else if (storage.given) {
        Allocate(static_cast<StorageId>(id)), places_[id].filled = true;
      }
    }
    outcome_.host_peak = host_;
    if (host_ > machine_.host_memory) return absl::InvalidArgumentError(absl::StrCat(host_, " bytes on the host"));
    clock_ = 1;
    for (size_t i = 0; i < schedule.actions.size(); ++i) {
      if (std::string fault = Do(schedule.actions[i]); !fault.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("action ", i, ": ", fault));
      }
    }
    return End();
  }

 private:
  struct Place {
    int32_t stay = kNowhere;  // index in outcome_.residencies
    int32_t last_stay = kNowhere;
    bool filled = false;  // the device's memory holds contents
    bool on_host = false;
    Nanoseconds made = 0;    // when the device's contents are complete
    Nanoseconds copied = 0;  // when the last copy to the host is complete
  };

  Place& At(StorageId id) { return places_[static_cast<size_t>(id)]; }
  const Storage& Of(StorageId id) const { return graph_.storages[static_cast<size_t>(id)]; }
  std::string Named(StorageId id) const { return absl::StrCat("'", Of(id).name, "'"); }

  void Allocate(StorageId id, int32_t continues = kNowhere) {
    At(id).stay = At(id).last_stay = static_cast<int32_t>(outcome_.residencies.size());
    outcome_.residencies.push_back({id, Of(id).bytes, clock_, clock_, continues});
    Grow(Of(id).bytes);
  }
  void Grow(Bytes bytes) { outcome_.live_peak = std::max(outcome_.live_peak, live_ += bytes); }
  void Leave(StorageId id) {
    Place& place = At(id);
    StorageResidency& stay = outcome_.residencies[static_cast<size_t>(place.stay)];
    stay.end = clock_;
    live_ -= stay.bytes;
    place.stay = kNowhere;
    place.filled = false;
  }

  std::string Do(const Action& action) {
    const size_t targets = action.kind == ActionKind::kRun ? graph_.operators.size() : graph_.storages.size();
    if (action.target < 0 || static_cast<size_t>(action.target) >= targets)
      return absl::StrCat("there is no ", action.target);
    switch (action.kind) {
      case ActionKind::kRun:
        return RunOperator(action);
      case ActionKind::kDrop:
        return Drop(action.target);
      case ActionKind::kOffload:
        return Offload(action.target);
      case ActionKind::kPrefetch:
        return Prefetch(action.target);
      case ActionKind::kForget:
        return Forget(action.target);
    }
    return "unknown";
  }

  std::string RunOperator(const Action& action) {
    const Operator& op = graph_.operators[static_cast<size_t>(action.target)];
    Nanoseconds start = compute_;
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) {
        if (!At(id).filled) return absl::StrCat(op.name, " uses ", Named(id), ", which is not on the device");
        start = std::max(start, At(id).made);
      }
    }
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) {
        start = std::max(start, At(id).copied);  // the copy reads what this run overwrites
      }
    }
    for (int32_t pair : action.in_place) {
      if (pair >= 0 && static_cast<size_t>(pair) < op.in_place.size())
        start = std::max(start, At(op.in_place[static_cast<size_t>(pair)].read).copied);
      if (std::string fault = TakeOver(op, pair); !fault.empty()) return fault;
    }
    for (StorageId id : op.writes) {
      if (At(id).stay == kNowhere) Allocate(id);
    }
    if (op.workspace > 0) {
      outcome_.residencies.push_back({kWorkspaceOf, op.workspace, clock_, clock_ + 1, kNowhere});
      Grow(op.workspace);
      live_ -= op.workspace;
    }
    compute_ = start + op.cost;
    outcome_.compute += op.cost;
    for (const std::vector<StorageId>* changed : {&op.writes, &op.updates}) {
      for (StorageId id : *changed) At(id).filled = true, At(id).made = compute_;
    }
    if (has_run_[static_cast<size_t>(action.target)]) ++outcome_.runs_again;
    has_run_[static_cast<size_t>(action.target)] = true;
    ++clock_;
    return "";
  }

  // The result takes over the operand's memory.
  std::string TakeOver(const Operator& op, int32_t index) {
    if (index < 0 || static_cast<size_t>(index) >= op.in_place.size())
      return absl::StrCat(op.name, " has no such pair in place");
    const InPlace pair = op.in_place[static_cast<size_t>(index)];
    if (At(pair.read).stay == kNowhere || At(pair.made).stay != kNowhere)
      return absl::StrCat(op.name, " cannot work in place");
    std::swap(At(pair.made).stay, At(pair.read).stay);
    At(pair.made).last_stay = At(pair.made).stay;
    At(pair.read).filled = false;
    return "";
  }

  std::string Drop(StorageId id) {
    if (At(id).stay == kNowhere) return absl::StrCat("drops ", Named(id), ", which has no memory on the device");
    compute_ = std::max(compute_, At(id).copied);
    Leave(id);
    return "";
  }

  static Nanoseconds CopyTime(Bytes bytes, double bytes_per_ns) {
    return static_cast<Nanoseconds>(std::ceil(static_cast<double>(bytes) / bytes_per_ns));
  }

  std::string Offload(StorageId id) {
    Place& place = At(id);
    if (!place.filled) return absl::StrCat("offloads ", Named(id), ", which is not on the device");
    if (!place.on_host) host_ += Of(id).bytes;
    if (host_ > machine_.host_memory) return absl::StrCat("offloads ", Named(id), ": ", host_, " bytes on the host");
    outcome_.host_peak = std::max(outcome_.host_peak, host_);
    place.on_host = true;
    place.copied = to_host_ = std::max(to_host_, place.made) + CopyTime(Of(id).bytes, machine_.bytes_per_ns_to_host);
    ++outcome_.copies;
    return "";
  }

  std::string Prefetch(StorageId id) {
    Place& place = At(id);
    if (!place.on_host) return absl::StrCat("prefetches ", Named(id), ", of which the host has no copy");
    if (place.stay != kNowhere) return absl::StrCat("prefetches ", Named(id), ", which is on the device");
    Allocate(id, place.last_stay);
    place.filled = true;
    place.made = to_device_ =
        std::max({to_device_, compute_, place.copied}) + CopyTime(Of(id).bytes, machine_.bytes_per_ns_to_device);
    ++outcome_.copies;
    ++clock_;
    return "";
  }

  std::string Forget(StorageId id) {
    if (!At(id).on_host) return absl::StrCat("forgets ", Named(id), ", of which the host has no copy");
    At(id).on_host = false;
    host_ -= Of(id).bytes;
    return "";
  }

  absl::StatusOr<Outcome> End() {
    outcome_.time = std::max({compute_, to_host_, to_device_});
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      if (!has_run_[i])
        return absl::InvalidArgumentError(absl::StrCat("operator ", i, " (", graph_.operators[i].name, ") never runs"));
    }
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      const auto storage = static_cast<StorageId>(id);
      if (Of(storage).away && !At(storage).on_host)
        return absl::InvalidArgumentError(absl::StrCat("at the end ", Named(storage), " is not on the host"));
      if (Of(storage).kept && !Of(storage).away && !At(storage).filled) {
        return absl::InvalidArgumentError(absl::StrCat("at the end ", Named(storage), " is not on the device"));
      }
      if (At(storage).stay != kNowhere) Leave(storage);
    }
    return std::move(outcome_);
  }

  const Graph& graph_;
  const Machine& machine_;
  std::vector<Place> places_;
  std::vector<bool> has_run_;
  Outcome outcome_;
  Clock clock_ = 0;
  Bytes live_ = 0, host_ = 0;
  Nanoseconds compute_ = 0, to_host_ = 0, to_device_ = 0;  // when each engine has ended the work issued so far
};

}  // namespace

absl::StatusOr<Outcome> Simulate(const Graph& graph, const Schedule& schedule, const Machine& machine) {
  return Simulator(graph, machine).Run(schedule);
}

Instance ToInstance(const std::vector<StorageResidency>& residencies, Bytes granularity) {
  Instance instance;
  std::vector<int32_t> block_of(residencies.size(), kNowhere);
  for (size_t i = 0; i < residencies.size(); ++i) {
    const StorageResidency& stay = residencies[i];
    if (stay.bytes == 0 || stay.begin == stay.end) continue;
    const int32_t before = stay.continues == kNowhere ? kNowhere : block_of[static_cast<size_t>(stay.continues)];
    if (before != kNowhere) {
      block_of[i] = before;
      auto& residency = instance.blocks[static_cast<size_t>(before)].residency;
      if (residency.back().end == stay.begin) {
        residency.back().end = stay.end;
      } else {
        residency.push_back({stay.begin, stay.end});
      }
      continue;
    }
    block_of[i] = static_cast<int32_t>(instance.blocks.size());
    Block block;
    block.size = RoundUp(stay.bytes, granularity);
    block.alignment = granularity;
    block.residency.push_back({stay.begin, stay.end});
    instance.blocks.push_back(block);
  }
  return instance;
}

}  // namespace hotpack::remat
