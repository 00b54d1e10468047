#include "tests/remat/chen/chain.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "remat/core/verifier.h"

namespace hotpack::remat {
namespace {

// Returns by operator of the forward pass the first one of its segment.
std::vector<OperatorId> SegmentsOf(const Graph& graph, const std::vector<bool>& ends) {
  std::vector<OperatorId> begins;
  OperatorId begin = 0;
  for (size_t i = 0; i < graph.operators.size() && graph.operators[i].phase == Phase::kForward; ++i) {
    begins.push_back(begin);
    if (ends[i]) begin = static_cast<OperatorId>(i) + 1;
  }
  return begins;
}

std::string NoChain(const Graph& graph, const Values& values, OperatorId forward) {
  for (OperatorId op = 0; op < forward; ++op) {
    for (ValueId input : values.inputs[static_cast<size_t>(op)]) {
      const OperatorId maker = values.values[static_cast<size_t>(input)].maker;
      if (maker < 0 || maker == op - 1) continue;
      return absl::StrCat("no chain: ", graph.operators[static_cast<size_t>(op)].name, " reads what ",
                          graph.operators[static_cast<size_t>(maker)].name, " has made");
    }
  }
  return "";
}

// Returns the operators in the order in which they run.
std::vector<OperatorId> RunsOf(const Graph& graph, const Values& values, const std::vector<OperatorId>& begins) {
  const auto forward = static_cast<OperatorId>(begins.size());
  std::vector<OperatorId> runs;
  std::vector<bool> again(graph.operators.size());  // by the first operator of a segment: the segment has run again
  for (OperatorId op = 0; op < static_cast<OperatorId>(graph.operators.size()); ++op) {
    for (ValueId input : op < forward ? std::vector<ValueId>() : values.inputs[static_cast<size_t>(op)]) {
      const OperatorId maker = values.values[static_cast<size_t>(input)].maker;
      if (maker < 0 || maker >= forward) continue;
      const OperatorId begin = begins[static_cast<size_t>(maker)];
      // Its result is kept: temp[k + 1].
      const bool ends_segment = maker + 1 == forward || begins[static_cast<size_t>(maker) + 1] == maker + 1;
      if (ends_segment || again[static_cast<size_t>(begin)]) continue;
      again[static_cast<size_t>(begin)] = true;
      for (OperatorId layer = begin; layer < forward && begins[static_cast<size_t>(layer)] == begin; ++layer)
        runs.push_back(layer);
    }
    runs.push_back(op);
  }
  return runs;
}

// Drops a storage behind each run that touches it, if no later run reads it before it is written again.
Schedule WithDrops(const Graph& graph, const std::vector<OperatorId>& runs) {
  std::vector<bool> wanted(graph.storages.size());  // by later runs
  for (size_t id = 0; id < wanted.size(); ++id) wanted[id] = graph.storages[id].kept;
  std::vector<Action> backwards;
  std::vector<bool> has_run(graph.operators.size());
  Schedule schedule;
  for (size_t i = runs.size(); i-- > 0;) {
    const Operator& op = graph.operators[static_cast<size_t>(runs[i])];
    for (const std::vector<StorageId>* used : {&op.reads, &op.writes, &op.updates}) {
      for (StorageId id : *used) {
        if (!wanted[static_cast<size_t>(id)]) backwards.push_back({ActionKind::kDrop, id});
      }
    }
    backwards.push_back({ActionKind::kRun, runs[i]});
    for (StorageId id : op.writes) wanted[static_cast<size_t>(id)] = false;
    for (const std::vector<StorageId>* used : {&op.reads, &op.updates}) {
      for (StorageId id : *used) wanted[static_cast<size_t>(id)] = true;
    }
    if (op.random && has_run[static_cast<size_t>(runs[i])]) schedule.saved_states.push_back(runs[i]);
    has_run[static_cast<size_t>(runs[i])] = true;
  }
  schedule.actions.assign(backwards.rbegin(), backwards.rend());
  std::sort(schedule.saved_states.begin(), schedule.saved_states.end());
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> ScheduleByAlgorithm1(const Graph& graph, const Values& values, const std::vector<bool>& ends) {
  const std::vector<OperatorId> begins = SegmentsOf(graph, ends);
  std::string fault = NoChain(graph, values, static_cast<OperatorId>(begins.size()));
  if (!fault.empty()) return absl::InvalidArgumentError(fault);
  Schedule schedule = WithDrops(graph, RunsOf(graph, values, begins));
  fault = Verify(graph, schedule);
  if (!fault.empty()) return absl::InvalidArgumentError(absl::StrCat("its segments cannot run again: ", fault));
  return schedule;
}

}  // namespace hotpack::remat
