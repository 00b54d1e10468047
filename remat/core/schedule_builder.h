// Builds a schedule from one decision per gap: keep, recompute or offload.
#pragma once

#include <vector>

#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

enum class GapAction : uint8_t {
  kKeep,
  // Dropped where the gap begins. Recomputed for the use at its end, or earlier if another recomputation needs it: then
  // held.
  kRecompute,
  // Like kRecompute, but not held: a value recomputed for others within the gap is dropped at once.
  kRecomputeOnce,
  // Copied to the host where the gap begins, and copied back in time for its end.
  kOffload,
};

struct BuiltSchedule {
  Schedule schedule;
  // Gaps that had to be held, whatever `ways` says.
  std::vector<GapId> held;
};

// Returns a schedule with every operator in the program's order, and reruns before the operators that need dropped
// values. It passes Verify(). `ways` has one entry per gap. O(actions + values visited to find missing ones).
// Thread-safe.
//
// Rules:
//  1. A dropped value is recomputed by its operators. Operands that are missing are recomputed first, in the same way.
//  2. An operand of a rerun is held beyond its last use if nothing can recompute it: it is given, or its operator may
//     run only once.
//  3. A gap is held if its value cannot be recomputed: its operator needs contents that are overwritten by then, or
//     would overwrite contents that are still wanted.
//  4. `may_run_again`, by operator; null: all may. Results of the others are held as long as values are recomputed from
//     them.
//  5. Storages are dropped after their last use. What the program holds is never dropped without a copy on the host.
//  6. Memory is taken over in place where the graph allows it, the operand is used up, and the sizes are equal.
BuiltSchedule BuildSchedule(const Graph& graph, const Values& values, const std::vector<GapAction>& ways,
                            const Machine& machine = {}, const std::vector<bool>* may_run_again = nullptr);

}  // namespace hotpack::remat
