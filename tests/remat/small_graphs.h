// Graphs and schedules in few words, for the tests of this folder.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "remat/core/graph.h"
#include "remat/core/schedule.h"

namespace hotpack::remat {

// x0 (given) → f1 → x1 → ... → fn → xn; loss(xn) → gn; bi(x(i-1), gi) → g(i-1); g0 is kept. Each storage 100 bytes,
// each operator 10 ns. Storages: x0..xn are 0..n, gn..g0 are n+1..2n+1. Operators: f1..fn are 0..n-1, loss n, bn..b1
// n+1..2n.
Graph Chain(int layers, Bytes bytes = 100, Nanoseconds cost = 10);

inline Action Op(OperatorId op, std::vector<int32_t> in_place = {}) {
  return {ActionKind::kRun, op, std::move(in_place)};
}
inline Action Drop(StorageId id) { return {ActionKind::kDrop, id}; }
inline Action Offload(StorageId id) { return {ActionKind::kOffload, id}; }
inline Action Prefetch(StorageId id) { return {ActionKind::kPrefetch, id}; }
inline Action Forget(StorageId id) { return {ActionKind::kForget, id}; }

// Returns a step of up to `operators` operators that read, make, overwrite and change storages. Some are random, may
// run only once, or work in place. It passes Check().
Graph RandomGraph(std::mt19937_64& random, int operators);

// A step of `parameters`: forward and backward make the gradients; then the optimizer's operators go over all of them:
// temporary = gradient + parameter; state is changed by the temporary; the parameter by the state.
Graph UpdateStep(int parameters, Bytes bytes);

}  // namespace hotpack::remat
