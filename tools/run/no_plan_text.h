// Why a run was served without a plan, in words.
#pragma once

#include <string>

#include "runtime/include/hotpack.h"

namespace hotpack {

// Returns one clause for the figures' no_plan_reason; empty if requests were served by a plan, or if the figure is none
// that this version knows. O(1).
std::string NoPlanText(const hotpack_stats& stats);

}  // namespace hotpack
