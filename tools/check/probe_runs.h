// The cases of gpu_probe as steps of a group.
#pragma once

#include <string>
#include <vector>

#include "tools/check/session.h"

namespace hotpack::check {

// Returns the cases that `program` lists. Adds a failed step if it lists none.
std::vector<std::string> ProbeCases(Session& session, const std::string& group, const std::string& program);

// Runs a case without hotpack and under it; with both kinds of arena where its result depends on them. `limit`: seconds
// a run. Returns the run without hotpack and the first one under it; null for a run that did not take place.
struct ProbeSteps {
  Step* without = nullptr;
  Step* hotpack = nullptr;
};
ProbeSteps RunProbeCase(Session& session, const std::string& group, const std::string& program, const std::string& name,
                        double limit);

// Returns whether one of the parts before `probes` runs this case (step_parts.cc).
bool HasOwnPart(const std::string& name);

// Returns whether the program with the shared runtime is enough for this case, because the driver's own work is
// measured or the whole memory taken.
bool NeedsOneProgramOnly(const std::string& name);

}  // namespace hotpack::check
