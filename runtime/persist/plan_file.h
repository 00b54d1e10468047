// The file that a plan is kept in between runs. docs/plan_format.md has it byte by byte. The format, and files; where
// they are and when they are written is preload/serve/plan_store.h's affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/persist/saved_plan.h"

namespace hotpack {

enum class PlanFileStatus : uint8_t {
  kOk,
  kCannotRead,  // errno says why; ENOENT: there is none
  kNotAPlan,    // no plan file at all
  kVersion,     // one of another version
  kDamaged,     // torn, or a byte is not what was written
  kInvalid,     // whole, but what it says is no plan: offsets that collide, ...
};
const char* PlanFileText(PlanFileStatus status);  // a static string in plain words

// The bytes of a file that holds `plan`. Scripts must have no holes. O(size).
std::vector<uint8_t> EncodePlan(const SavedPlan& plan);

// Any bytes are taken or refused: everything is checked, and what follows from the rest (successors, heights) is
// computed anew. Memory: at most some 40 times `size`. O(size log size). *plan is only written if kOk. Throws
// std::bad_alloc.
PlanFileStatus DecodePlan(const uint8_t* data, size_t size, SavedPlan* plan);

// Whether `data` begins as a plan file of any version does.
bool IsPlanFile(const uint8_t* data, size_t size);

inline constexpr size_t kMaxPlanFileBytes = size_t{96} << 20;

// Reads the file at `path`, a regular one of at most kMaxPlanFileBytes.
PlanFileStatus ReadPlanFile(const char* path, SavedPlan* plan);

// Puts a file that holds `plan` in the place of what is at `path`, at once: whoever reads it, after a crash too, sees
// the old one or the new one, whole. A file there that is no plan is left alone (EEXIST). Returns 0 or an errno value.
int WritePlanFile(const char* path, const SavedPlan& plan);

}  // namespace hotpack
