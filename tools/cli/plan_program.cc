#include "tools/cli/plan_program.h"

#include <filesystem>
#include <system_error>

namespace hotpack {

std::string PlanProgram() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : (own.parent_path() / "hotpack-remat").string();
}

}  // namespace hotpack
