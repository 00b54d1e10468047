#include "tests/remat/dqn/sequences.h"

namespace hotpack::remat {

Sequence WorkedExample() {
  Sequence sequence;
  sequence.memories = {{1, 0, 0}, {10, kSecond * 3 / 2, kSecond * 3 / 2}, {10, kSecond, kSecond}};
  sequence.variables = {{0, -1}, {1, 0}, {2, -1}};
  sequence.makers = {{2 * kSecond, {0}, {1}}};
  sequence.given = {0};
  using enum OperationKind;
  const std::pair<OperationKind, int32_t> nodes[] = {{kRead, 0},  {kMalloc, 1}, {kWrite, 1}, {kRead, 1}, {kMalloc, 2},
                                                     {kWrite, 2}, {kRead, 2},   {kFree, 2},  {kRead, 1}, {kFree, 1}};
  for (const auto& [kind, variable] : nodes) sequence.operations.push_back({kind, variable, kSecond});
  sequence.absences = {{.variable = 1, .access = 3, .open = 3, .after = 3, .before = 8}};
  AssignActions(&sequence);
  return sequence;
}

Sequence RandomChain(std::mt19937_64& random, int layers) {
  const auto draw = [&random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  Sequence sequence;
  const auto variable = [&](Bytes bytes, int32_t maker) {
    sequence.memories.push_back({bytes, bytes * draw(1, 3), bytes * draw(1, 3)});
    sequence.variables.push_back({static_cast<int32_t>(sequence.memories.size()) - 1, maker});
    return static_cast<int32_t>(sequence.variables.size()) - 1;
  };
  const auto add = [&](OperationKind kind, int32_t of, Nanoseconds duration = 0) {
    sequence.operations.push_back({kind, of, duration});
    return static_cast<int32_t>(sequence.operations.size()) - 1;
  };
  sequence.given.push_back(variable(draw(1, 10), -1));
  add(OperationKind::kRead, 0);
  for (int32_t i = 1; i <= layers; ++i) {
    variable(10 * draw(1, 8), i - 1);
    sequence.makers.push_back({draw(5, 60), {i - 1}, {i}});
    add(OperationKind::kMalloc, i);
    const int32_t read = add(OperationKind::kRead, i - 1);
    const int32_t write = add(OperationKind::kWrite, i, sequence.makers.back().cost);
    if (i > 1) sequence.absences.push_back({.variable = i - 1, .access = read, .open = read, .after = write});
    if (i == layers) sequence.absences.push_back({.variable = i, .access = write, .open = write + 1, .after = write});
  }
  add(OperationKind::kRead, 0, draw(10, 50));  // the loss
  for (int32_t i = layers; i >= 1; --i) {
    sequence.absences[static_cast<size_t>(i) - 1].before = add(OperationKind::kRead, i, draw(10, 100));
    add(OperationKind::kFree, i);
  }
  AssignActions(&sequence);
  return sequence;
}

}  // namespace hotpack::remat
