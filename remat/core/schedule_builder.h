// From what to hold, to make again and to copy out, gap by gap, to a schedule.
#pragma once

#include <vector>

#include "remat/core/schedule.h"
#include "remat/core/simulator.h"
#include "remat/core/values.h"

namespace hotpack::remat {

enum class GapAction : uint8_t {
  kKeep,
  kRecompute,  // let go where the gap begins; made again for the use at its end, or before if something else needs it: then held
  kRecomputeOnce,  // the same, but not held: what is made again for others in the gap goes at once
  kOffload,        // copied to the host where the gap begins, and brought back in time for its end
};

struct BuiltSchedule {
  Schedule schedule;
  std::vector<GapId> held;  // gaps that had to be held, whatever `ways` says
};

// Every operator of the graph in its order, and runs of some again before the ones that need what was let go. `ways`:
// one entry a gap. What was let go is made by its operators, after what they need and is not there has been made in the
// same way; values that are needed so are held beyond their last use if nothing can make them again (given, or made by
// an operator that may run once only). A gap is held if its value cannot be made again: its operator needs contents
// that are overwritten by then, or would overwrite such. `may_run_again`, if it is given, says it by operator: of the
// others the results are held as long as something is made again from them. Storages are dropped after their last use,
// and memory is taken over in place where the graph allows it, the value is used up and the sizes are equal. The
// schedule passes Verify(). O(actions + what is looked at to find what is missing). Thread-safe.
BuiltSchedule BuildSchedule(const Graph& graph, const Values& values, const std::vector<GapAction>& ways,
                            const Machine& machine = {}, const std::vector<bool>* may_run_again = nullptr);

}  // namespace hotpack::remat
