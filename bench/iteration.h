// A generated iteration as a profile and as a script: for planning, tables, plan files.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/training_sequence.h"
#include "profiler/profile.h"
#include "runtime/script/script.h"

namespace hotpack::bench {

// Returns the profile that the profiler would make of the sequence. O(n).
Profile ProfileOf(const Sequence& sequence);

// Returns the profile packed by the published best fit and compiled. Null: the packer refuses it. O(n log n).
std::shared_ptr<const Script> ScriptOf(const Profile& profile);

}  // namespace hotpack::bench
