// A generated iteration as a profile and as a script: for planning, tables, plan files.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/training_sequence.h"
#include "profiler/profile.h"
#include "runtime/script/script.h"

namespace hotpack::bench {

// What the profiler makes of it. O(n).
Profile ProfileOf(const Sequence& sequence);

// The profile packed by the published best fit, and compiled. Null: the packer refuses. O(n log n).
std::shared_ptr<const Script> ScriptOf(const Profile& profile);

}  // namespace hotpack::bench
