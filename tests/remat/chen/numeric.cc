#include "tests/remat/chen/numeric.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hotpack::remat {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

struct Cell {
  Numbers device, host;
};

Operands OperandsOf(const Operator& op, std::vector<Cell>* cells) {
  Operands operands;
  for (const std::vector<StorageId>* used : {&op.reads, &op.writes, &op.updates}) {
    for (StorageId id : *used) operands[id] = (*cells)[static_cast<size_t>(id)].device.data();
  }
  return operands;
}

void Poison(Numbers* numbers) { std::fill(numbers->begin(), numbers->end(), kPoison); }

}  // namespace

std::vector<Numbers> Execute(const Computable& step, const Schedule& schedule) {
  std::vector<Cell> cells(step.graph.storages.size());
  for (size_t id = 0; id < cells.size(); ++id)
    cells[id].device.assign(step.elements[id], step.graph.storages[id].given ? 0 : kPoison);
  for (const auto& [id, numbers] : step.given) cells[static_cast<size_t>(id)].device = numbers;
  uint64_t generator = 42;
  std::map<OperatorId, uint64_t> saved;
  for (const Action& action : schedule.actions) {
    Cell& cell = cells[static_cast<size_t>(action.kind == ActionKind::kRun ? 0 : action.target)];
    switch (action.kind) {
      case ActionKind::kDrop:
        Poison(&cell.device);
        break;
      case ActionKind::kOffload:
        cell.host = cell.device;
        break;
      case ActionKind::kPrefetch:
        cell.device = cell.host;
        break;
      case ActionKind::kForget:
        Poison(&cell.host);
        break;
      case ActionKind::kRun: {
        const Operator& op = step.graph.operators[static_cast<size_t>(action.target)];
        for (int32_t pair : action.in_place) {
          const auto [read, made] = op.in_place[static_cast<size_t>(pair)];
          std::swap(cells[static_cast<size_t>(read)].device, cells[static_cast<size_t>(made)].device);
        }
        Operands operands = OperandsOf(op, &cells);
        for (int32_t pair : action.in_place) {
          const auto [read, made] = op.in_place[static_cast<size_t>(pair)];
          operands[read] = operands[made];
          Poison(&cells[static_cast<size_t>(read)].device);
        }
        const bool keeps =
            op.random && std::binary_search(schedule.saved_states.begin(), schedule.saved_states.end(), action.target);
        uint64_t* random = &generator;
        uint64_t state = generator;
        if (keeps && saved.contains(action.target)) {
          state = saved[action.target];
          random = &state;
        } else if (keeps) {
          saved[action.target] = generator;
        }
        step.kernels[static_cast<size_t>(action.target)](operands, random);
        break;
      }
    }
  }
  std::vector<Numbers> kept(cells.size());
  for (size_t id = 0; id < cells.size(); ++id) {
    if (step.graph.storages[id].kept) kept[id] = cells[id].device;
  }
  return kept;
}

bool SameNumbers(const std::vector<Numbers>& a, const std::vector<Numbers>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].empty() && b[i].empty()) continue;  // nothing to be compared, and nowhere
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

Computable MirroredComputable(const Computable& step, const MirroredGraph& mirrored) {
  Computable result;
  result.graph = mirrored.graph;
  result.given = step.given;
  for (StorageId of : mirrored.storage_of) {
    result.elements.push_back(of < 0 ? kRandomStateBytes / sizeof(float) : step.elements[static_cast<size_t>(of)]);
  }
  for (size_t i = 0; i < mirrored.graph.operators.size(); ++i) {
    const auto number = static_cast<size_t>(mirrored.operator_of[i]);
    const bool is_copy = mirrored.is_copy[i];
    result.kernels.push_back([op = mirrored.graph.operators[i], program = step.graph.operators[number],
                              kernel = step.kernels[number], state = mirrored.state_of[i],
                              is_copy](const Operands& operands, uint64_t* random) {
      Operands named;
      const auto name = [&](const std::vector<StorageId>& theirs, const std::vector<StorageId>& ours) {
        for (size_t k = 0; k < ours.size(); ++k) named[ours[k]] = operands.at(theirs[k]);
      };
      name(op.reads, program.reads);
      name(op.writes, program.writes);
      name(op.updates, program.updates);
      uint64_t own = 0;
      if (state >= 0 && is_copy) std::memcpy(&own, operands.at(state), sizeof own);
      if (state >= 0 && !is_copy) std::memcpy(operands.at(state), random, sizeof own);
      kernel(named, is_copy ? &own : random);
    });
  }
  return result;
}

}  // namespace hotpack::remat
