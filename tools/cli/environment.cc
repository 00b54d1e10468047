#include "tools/cli/environment.h"

#include <cstdlib>

namespace hotpack {

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

std::string JoinPaths(const std::vector<std::string>& paths) {
  std::string joined;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    if (!joined.empty()) joined += ':';
    joined += path;
  }
  return joined;
}

}  // namespace hotpack
