// What a plan file holds, for `hotpack show`.
#pragma once

#include <cstdint>
#include <string>

namespace hotpack {

// Whether the file begins as plan files do. False also if it cannot be read, or is a pipe, which is left as it is.
bool LooksLikePlan(const std::string& path);

// Prints the plan in `path`, in words or as one JSON object. The exit code: 0, or 2 with one line on stderr.
int ShowPlan(const std::string& path, bool json);

// The time as in 2026-01-31T12:00:00Z.
std::string UtcText(uint64_t ns_since_1970);

}  // namespace hotpack
