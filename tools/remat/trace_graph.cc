#include "tools/remat/trace_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "profiler/uses.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

using remat::Graph;
using remat::Operator;
using remat::OperatorId;
using remat::Storage;
using remat::StorageId;

constexpr std::string_view kGraphLaunch = "graph";  // docs/collectors.md

struct Window {
  uint64_t begin = 0, end = 0;  // positions of events
  bool Has(const Launch& launch) const { return launch.position > begin && launch.position <= end; }
};

// Returns the window from the iteration's first request to the first one after it.
Window FindWindow(const Trace& trace) {
  Window window = {0, trace.events.size()};
  std::optional<HotIteration> found = MarkedIteration(trace);
  if (!found) found = DetectedIteration(trace);
  if (!found) return window;
  uint64_t requests = 0;
  bool interrupted = false;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const EventKind kind = trace.events[i].kind;
    if (kind == EventKind::kInterrupt || kind == EventKind::kResume) interrupted = kind == EventKind::kInterrupt;
    if (kind != EventKind::kAllocate || interrupted) continue;
    if (requests == found->end - found->period.length) window.begin = i;
    if (requests == found->end) window.end = i;
    ++requests;
  }
  return window;
}

class Maker {
 public:
  Maker(const TraceFile& file, const TraceGraphOptions& options)
      : notes_(file.notes),
        options_(options),
        uses_(FindUses(file.trace, file.notes)),
        window_(FindWindow(file.trace)) {}

  absl::StatusOr<Graph> Make(std::string_view name) {
    const auto error = [name](const char* reason) {
      return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", reason));
    };
    if (notes_.launches.empty()) return error("the recording has no launches (hotpack run --trace FILE --launches)");
    if (notes_.launch_blocks.empty())
      return error("no launch of the recording names a block (that takes a driver of CUDA 12.4)");
    AddOperators();
    if (graph_.operators.empty()) return error("no launch lies in the recording's iteration");
    AddStorages();
    if (graph_.storages.empty()) return error("no launch of the recording's iteration names a block");
    Connect();
    for (size_t i = 0; i < costless_.size(); ++i) {
      if (costless_[i]) graph_.operators[i].cost = CostOf(graph_.operators[i]);
    }
    if (absl::Status status = Check(graph_); !status.ok())
      return absl::InternalError(absl::StrCat(std::string(name), ": ", std::string(status.message())));
    return std::move(graph_);
  }

 private:
  void AddOperators() {
    operator_of_.assign(notes_.launches.size(), -1);
    for (size_t i = 0; i < notes_.launches.size(); ++i) {
      const Launch& launch = notes_.launches[i];
      if (!window_.Has(launch)) continue;
      operator_of_[i] = static_cast<OperatorId>(graph_.operators.size());
      positions_.push_back(launch.position);
      Operator& op = graph_.operators.emplace_back();
      op.name = launch.name == kNoName ? "launch" : notes_.names[launch.name];
      op.once = true;
      op.cost = static_cast<remat::Nanoseconds>(launch.end_ns - launch.start_ns);
      costless_.push_back(launch.end_ns <= launch.start_ns);
      of_graph_.push_back(launch.blocks == 0 && op.name == kGraphLaunch);
    }
  }

  // Returns the operators that run before the event at `position`.
  OperatorId OperatorsBefore(uint64_t position) const {
    return static_cast<OperatorId>(std::upper_bound(positions_.begin(), positions_.end(), position) -
                                   positions_.begin());
  }

  void AddStorages() {
    std::vector<Bytes> unnamed(graph_.operators.size() + 1);  // changes of the live bytes of unnamed blocks
    for (const BlockUses& block : uses_.blocks) {
      if (block.allocated >= window_.end || block.released <= window_.begin) continue;
      const OperatorId begin = OperatorsBefore(block.allocated),
                       end = OperatorsBefore(std::min(block.released, window_.end));
      std::vector<OperatorId> named;
      for (uint64_t u = block.first; u < block.first + block.count; ++u) {
        const OperatorId op = operator_of_[uses_.launches[u]];
        if (op >= 0 && (named.empty() || named.back() != op)) named.push_back(op);
      }
      if (named.empty()) {
        unnamed[static_cast<size_t>(begin)] += static_cast<Bytes>(block.bytes);
        unnamed[static_cast<size_t>(end)] -= static_cast<Bytes>(block.bytes);
        continue;
      }
      Storage& storage = graph_.storages.emplace_back();
      storage.name = absl::StrCat("block ", block.id);
      storage.bytes = static_cast<Bytes>(block.bytes);
      storage.given = block.allocated < window_.begin;
      storage.kept = block.released >= window_.end;
      if (storage.given && storage.kept) storage.kind = remat::StorageKind::kWeight;
      graph_.released_after.push_back(storage.kept ? remat::kNever : end - 1);
      for (OperatorId op = begin; op < end; ++op) {  // graphs may use it as well
        if (of_graph_[static_cast<size_t>(op)]) named.push_back(op);
      }
      std::sort(named.begin(), named.end());
      named_by_.push_back(std::move(named));
    }
    Bytes now = 0;
    for (size_t i = 0; i < graph_.operators.size(); ++i) graph_.operators[i].workspace = now += unnamed[i];
  }

  void Connect() {
    for (size_t id = 0; id < graph_.storages.size(); ++id) {
      bool made = graph_.storages[id].given;
      for (OperatorId number : named_by_[id]) {
        Operator& op = graph_.operators[static_cast<size_t>(number)];
        (made ? op.updates : op.writes).push_back(static_cast<StorageId>(id));
        made = true;
      }
    }
  }

  remat::Nanoseconds CostOf(const Operator& op) const {
    Bytes bytes = 0;
    for (const std::vector<StorageId>* list : {&op.writes, &op.updates}) {
      for (StorageId id : *list) bytes += graph_.storages[static_cast<size_t>(id)].bytes;
    }
    return static_cast<remat::Nanoseconds>(std::ceil(static_cast<double>(bytes) / options_.bytes_per_ns));
  }

  const Notes& notes_;
  const TraceGraphOptions& options_;
  const Uses uses_;
  const Window window_;
  Graph graph_;
  std::vector<OperatorId> operator_of_;            // by launch of the recording, -1: not in the window
  std::vector<uint64_t> positions_;                // by operator
  std::vector<bool> costless_, of_graph_;          // by operator
  std::vector<std::vector<OperatorId>> named_by_;  // by storage, ascending
};

}  // namespace

absl::StatusOr<Graph> GraphFromTrace(const TraceFile& file, std::string_view name, const TraceGraphOptions& options) {
  return Maker(file, options).Make(name);
}

}  // namespace hotpack
