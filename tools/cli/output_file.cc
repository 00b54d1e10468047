#include "tools/cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"

namespace hotpack {

namespace fs = std::filesystem;

CLI::Option* AddOutputOption(CLI::App* command, const std::string& option, std::string* path,
                             const std::string& meaning) {
  return command->add_option(option, *path, meaning)
      ->check([](const std::string& name) { return name.empty() ? std::string("a file needs a name") : std::string(); })
      ->type_name("FILE");
}

CLI::Option* AddForceFlag(CLI::App* command, bool* force) {
  return command->add_flag("--force", *force, "Write over a file that is there");
}

std::string OutputPath(const std::string& name) { return name == "-" ? "" : name; }

std::string CheckWritable(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return "is a directory";
    return access(path.c_str(), W_OK) == 0 ? "" : strerror(errno);
  }
  if (errno != ENOENT) return strerror(errno);
  if (path.empty() || path.back() == '/') return "is a directory";
  const std::string parent = fs::path(path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  if (stat(directory.c_str(), &status) != 0) return strerror(errno);
  if (!S_ISDIR(status.st_mode)) return strerror(ENOTDIR);
  return access(directory.c_str(), W_OK | X_OK) == 0 ? "" : strerror(errno);
}

absl::Status CheckOutput(const std::string& option, const std::string& path, bool force,
                         const std::vector<std::string>& inputs) {
  if (path.empty()) return absl::OkStatus();
  if (path == "-") {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " -: standard output has something else to hold; ./- is a file of that name"));
  }
  std::error_code error;
  for (const std::string& input : inputs) {
    const bool same = fs::is_regular_file(path, error) && fs::equivalent(path, input, error);
    if (same && !error) return absl::InvalidArgumentError(absl::StrCat(option, " ", path, " is the input"));
  }
  if (const std::string reason = CheckWritable(path); !reason.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", path, ": ", reason));
  }
  if (!force && fs::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", path, ": is there already; --force writes over it"));
  }
  return absl::OkStatus();
}

absl::Status CheckRecordingOutput(const std::string& option, const std::string& path, bool force) {
  const absl::Status status = CheckOutput(option, path, force);
  std::error_code error;
  if (!status.ok() || !fs::exists(path, error) || fs::is_regular_file(path, error)) return status;
  return absl::InvalidArgumentError(absl::StrCat(option, " ", path, ": is no regular file, and a recording needs one"));
}

}  // namespace hotpack
