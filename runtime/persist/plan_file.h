// The file format in which a plan is stored between runs; docs/plan_format.md describes each byte.
// preload/serve/plan_store.h decides where the files are and when they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/persist/saved_plan.h"

namespace hotpack {

enum class PlanFileStatus : uint8_t {
  kOk,
  kCannotRead,  // errno says why; ENOENT: there is no file
  kNotAPlan,    // not a plan file
  kVersion,     // a plan file of another version
  kDamaged,     // truncated, or a byte differs from what was written
  kInvalid,     // complete, but its contents are no valid plan: colliding offsets, ...
};
const char* PlanFileText(PlanFileStatus status);  // a static string in plain words

// Returns the bytes of a file that holds `plan`. Scripts must have no fragments. O(size).
std::vector<uint8_t> EncodePlan(const SavedPlan& plan);

// Accepts any bytes as input and checks everything. Derived values (successors, heights) are recomputed. Writes *plan
// only if it returns kOk. Memory: at most about 40 times `size`. O(size log size). Throws std::bad_alloc.
PlanFileStatus DecodePlan(const uint8_t* data, size_t size, SavedPlan* plan);

// Returns whether `data` begins like a plan file of any version.
bool IsPlanFile(const uint8_t* data, size_t size);

inline constexpr size_t kMaxPlanFileBytes = size_t{96} << 20;

// Reads the file at `path`, which must be a regular file of at most kMaxPlanFileBytes.
PlanFileStatus ReadPlanFile(const char* path, SavedPlan* plan);

// Atomically replaces the file at `path` by one that holds `plan`: readers see the complete old or new file, even after
// a crash. An existing file that is no plan is left alone (EEXIST). Returns 0 or an errno value.
int WritePlanFile(const char* path, const SavedPlan& plan);

}  // namespace hotpack
