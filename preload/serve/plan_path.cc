#include "preload/serve/plan_path.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace hotpack {
namespace {

const char* RankOrNull() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}) {
    const char* value = getenv(name);
    if (value != nullptr && value[0] != '\0' && strlen(value) <= 10 && value[strspn(value, "0123456789")] == '\0')
      return value;
  }
  return nullptr;
}

const char* Rank() {
  const char* rank = RankOrNull();
  return rank != nullptr ? rank : "0";
}

}  // namespace

bool IsRank() { return RankOrNull() != nullptr; }

std::string ExpandPlanPath(const char* pattern, int device) {
  std::string path;
  for (const char* at = pattern; *at != '\0'; ++at) {
    const char next = *at == '%' ? at[1] : '\0';
    if (next == 'p') {
      path += std::to_string(getpid());
    } else if (next == 'd') {
      path += std::to_string(device);
    } else if (next == 'r') {
      path += Rank();
    } else if (next == '%') {
      path += '%';
    } else {
      path += *at;
      continue;
    }
    ++at;
  }
  constexpr size_t kSuffix = 48;  // .2, and the suffix of a temporary file
  return path.size() + kSuffix < PATH_MAX ? path : std::string();
}

std::string NumberedPlanPath(const std::string& path, int ordinal) {
  return ordinal <= 1 ? path : path + "." + std::to_string(ordinal);
}

}  // namespace hotpack
