#include "remat/core/update_slices.h"

#include <algorithm>
#include <utility>

namespace hotpack::remat {
namespace {

using OperandLists = std::vector<StorageId> Operator::*;
constexpr OperandLists kOperands[] = {&Operator::reads, &Operator::writes, &Operator::updates};

Bytes BytesOf(const Graph& graph, const Operator& op, const std::vector<int32_t>& slice_of, int32_t slice) {
  Bytes bytes = 0;
  for (const OperandLists list : kOperands) {
    for (StorageId id : op.*list) bytes += slice_of[At(id)] == slice ? graph.storages[At(id)].bytes : 0;
  }
  return bytes;
}

// Writes the operators of one graph with its updates in slices.
class Slicer {
 public:
  Slicer(const Graph& graph, Bytes slice_bytes)
      : graph_(graph), slice_bytes_(slice_bytes), place_(graph.operators.size()) {
    result_.graph.storages = graph.storages;
    result_.graph.released_after = graph.released_after;
  }

  SlicedGraph Run() {
    OperatorId next = 0;
    for (const DivisibleUpdate& update : graph_.updates) {
      for (; next < update.begin; ++next) Add(next, graph_.operators[At(next)]);
      Divide(update);
      next = update.end;
    }
    for (; next < static_cast<OperatorId>(graph_.operators.size()); ++next) Add(next, graph_.operators[At(next)]);
    for (size_t id = 0; id < graph_.released_after.size(); ++id) {
      OperatorId& after = result_.graph.released_after[id];
      if (after != kNever && after >= 0) after = Last(after, static_cast<StorageId>(id));
    }
    return std::move(result_);
  }

 private:
  void Add(OperatorId number, Operator op, int32_t slice = -1) {
    place_[At(number)] = static_cast<OperatorId>(result_.graph.operators.size());
    result_.graph.operators.push_back(std::move(op));
    result_.original.push_back(number);
    slice_.push_back(slice);
  }

  // Returns the operator after which a storage goes that the original frees after `released`.
  OperatorId Last(OperatorId released, StorageId id) const {
    for (const Range& range : ranges_) {
      if (released < range.begin || released >= range.end) continue;
      const int32_t own = range.slice_of[At(id)];
      if (own < 0) return std::max(range.last - 1, 0);  // all slices may use it
      OperatorId last = range.first;
      for (OperatorId i = range.first; i < range.last; ++i) {
        if (result_.original[At(i)] <= released && (slice_[At(i)] < 0 || slice_[At(i)] == own)) last = i;
      }
      return last;
    }
    return place_[At(released)];
  }

  // Joins parts to slices in their order. Returns the slice of each part, numbered from `slices` on.
  std::vector<int32_t> Join(const DivisibleUpdate& update) {
    std::vector<Bytes> bytes(At(update.parts));
    for (size_t id = 0; id < update.part_of.size(); ++id) {
      if (update.part_of[id] >= 0) bytes[At(update.part_of[id])] += graph_.storages[id].bytes;
    }
    std::vector<int32_t> slice(bytes.size());
    Bytes open = slice_bytes_;
    for (size_t part = 0; part < bytes.size(); ++part) {
      if (part == 0 || open >= slice_bytes_) result_.slices.emplace_back(), open = 0;
      slice[part] = static_cast<int32_t>(result_.slices.size()) - 1;
      open += bytes[part];
    }
    return slice;
  }

  void Divide(const DivisibleUpdate& update) {
    const auto first_slice = static_cast<int32_t>(result_.slices.size());
    const std::vector<int32_t> slice_of_part = Join(update);
    slice_of_.assign(graph_.storages.size(), -1);
    for (size_t id = 0; id < update.part_of.size(); ++id) {
      if (update.part_of[id] < 0) continue;
      slice_of_[id] = slice_of_part[At(update.part_of[id])];
      result_.slices[At(slice_of_[id])].push_back(static_cast<StorageId>(id));
    }
    const auto first = static_cast<OperatorId>(result_.graph.operators.size());
    // Operators of no slice come first: slices only read what they make.
    std::vector<OperatorId> divided;
    for (OperatorId number = update.begin; number < update.end; ++number) {
      const Operator& op = graph_.operators[At(number)];
      const bool has_slices = std::any_of(std::begin(kOperands), std::end(kOperands), [&](OperandLists list) {
        return std::any_of((op.*list).begin(), (op.*list).end(), [&](StorageId id) { return slice_of_[At(id)] >= 0; });
      });
      if (has_slices) {
        divided.push_back(number);
      } else {
        Add(number, op);
      }
    }
    std::vector<Bytes> left(divided.size(), 0);
    std::vector<Nanoseconds> cost(divided.size());
    for (size_t i = 0; i < divided.size(); ++i) {
      const Operator& op = graph_.operators[At(divided[i])];
      cost[i] = op.cost;
      for (auto slice = first_slice; slice < static_cast<int32_t>(result_.slices.size()); ++slice)
        left[i] += BytesOf(graph_, op, slice_of_, slice);
    }
    for (auto slice = first_slice; slice < static_cast<int32_t>(result_.slices.size()); ++slice) {
      OperatorId joined = -1;
      for (size_t i = 0; i < divided.size(); ++i) AddPart(divided[i], slice, &left[i], &cost[i], &joined);
    }
    ranges_.push_back({.begin = update.begin,
                       .end = update.end,
                       .first = first,
                       .last = static_cast<OperatorId>(result_.graph.operators.size()),
                       .slice_of = slice_of_});
  }

  // Adds the operator's part of the slice, if it has one. `left`, `cost`: bytes and cost of its parts that are to come.
  void AddPart(OperatorId number, int32_t slice, Bytes* left, Nanoseconds* cost, OperatorId* joined) {
    const Operator& whole = graph_.operators[At(number)];
    Operator part = {
        .name = whole.name, .phase = whole.phase, .heavy = whole.heavy, .random = whole.random, .once = whole.once};
    bool has_slice = false, is_last = true;
    for (const OperandLists list : kOperands) {
      for (StorageId id : whole.*list) {
        has_slice = has_slice || slice_of_[At(id)] == slice;
        is_last = is_last && slice_of_[At(id)] <= slice;
        if (slice_of_[At(id)] == slice || slice_of_[At(id)] < 0) (part.*list).push_back(id);
      }
    }
    if (!has_slice) return;
    const auto has = [&](StorageId id) { return slice_of_[At(id)] == slice || slice_of_[At(id)] < 0; };
    for (StorageId id : whole.masks) {
      if (has(id)) part.masks.push_back(id);
    }
    for (const InPlace& pair : whole.in_place) {
      if (has(pair.read) && has(pair.made)) part.in_place.push_back(pair);
    }
    const Bytes bytes = BytesOf(graph_, whole, slice_of_, slice);
    const double share = *left == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(*left);
    part.cost = is_last ? *cost : static_cast<Nanoseconds>(static_cast<double>(*cost) * share);
    *cost -= part.cost;
    *left -= bytes;
    part.workspace = whole.workspace;
    const bool idle = part.cost == 0 && part.workspace == 0 && part.writes.empty() && part.updates.empty();
    if (idle && *joined >= 0) {
      Operator& before = result_.graph.operators[At(*joined)];
      before.once = before.once || part.once;
      before.random = before.random || part.random;
      for (StorageId id : part.reads) {
        if (std::find(before.reads.begin(), before.reads.end(), id) == before.reads.end()) before.reads.push_back(id);
      }
      return;
    }
    *joined = idle ? static_cast<OperatorId>(result_.graph.operators.size()) : -1;
    Add(number, std::move(part), slice);
  }

  struct Range {
    OperatorId begin, end;          // of the original
    OperatorId first, last;         // of the result
    std::vector<int32_t> slice_of;  // by storage; -1: none
  };

  const Graph& graph_;
  const Bytes slice_bytes_;
  SlicedGraph result_;
  std::vector<Range> ranges_;
  std::vector<OperatorId> place_;  // by operator of the original: its last part in the result
  std::vector<int32_t> slice_of_;  // by storage, of the last update
  std::vector<int32_t> slice_;     // by operator of the result; -1: none
};

}  // namespace

SlicedGraph SliceUpdates(const Graph& graph, Bytes slice_bytes) { return Slicer(graph, slice_bytes).Run(); }

std::vector<std::vector<StorageId>> WholeUpdates(const std::vector<DivisibleUpdate>& updates) {
  std::vector<std::vector<StorageId>> slices;
  for (const DivisibleUpdate& update : updates) {
    std::vector<StorageId>& slice = slices.emplace_back();
    for (size_t id = 0; id < update.part_of.size(); ++id) {
      if (update.part_of[id] >= 0) slice.push_back(static_cast<StorageId>(id));
    }
  }
  return slices;
}

bool SendStateAway(const std::vector<std::vector<StorageId>>& slices, size_t count, Graph* graph) {
  bool any = false;
  for (size_t slice = 0; slice < std::min(count, slices.size()); ++slice) {
    for (StorageId id : slices[slice]) {
      Storage& storage = graph->storages[At(id)];
      if (!storage.movable || storage.held || !storage.given || storage.bytes == 0) continue;
      any = storage.away = true;
    }
  }
  return any;
}

Bytes SliceBytes(const Graph& graph, int count) {
  Bytes most = 0;
  for (const DivisibleUpdate& update : graph.updates) {
    Bytes bytes = 0;
    for (size_t id = 0; id < update.part_of.size(); ++id)
      bytes += update.part_of[id] >= 0 ? graph.storages[id].bytes : 0;
    most = std::max(most, bytes);
  }
  return most / std::max(count, 1);
}

}  // namespace hotpack::remat
