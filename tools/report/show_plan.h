// The contents of a plan file, for `hotpack show`.
#pragma once

#include <cstdint>
#include <string>

namespace hotpack {

// Returns whether the file begins as plan files do. Returns false if it cannot be read, or for a pipe, which is not
// read.
bool LooksLikePlan(const std::string& path);

// Prints the plan in `path`, in words or as one JSON object. Returns the exit code: 0, or 2 with one line on stderr.
int ShowPlan(const std::string& path, bool json);

// Returns the time as in 2026-01-31T12:00:00Z.
std::string UtcText(uint64_t ns_since_1970);

}  // namespace hotpack
