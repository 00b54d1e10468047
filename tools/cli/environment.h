// The environment of this process, and the search paths in it.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

// The value of the variable `name`, empty if it is not set. Not safe while another thread sets a variable.
std::string Environment(const char* name);

// Joins `paths` by colons, without those that are empty: LD_LIBRARY_PATH, LD_PRELOAD. O(length).
std::string JoinPaths(const std::vector<std::string>& paths);

}  // namespace hotpack
