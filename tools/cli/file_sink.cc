#include "tools/cli/file_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

constexpr mode_t kPermissions = 07777;

}  // namespace

FileSink::FileSink(std::string path) : path_(std::move(path)) {}

FileSink::~FileSink() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  if (!partial_.empty()) std::remove(partial_.c_str());
}

absl::Status FileSink::Append(absl::string_view text) {
  if (file_ == nullptr) {
    if (absl::Status status = Open(); !status.ok()) return status;
  }
  return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? absl::OkStatus() : Failure();
}

absl::Status FileSink::Close() {
  if (file_ == nullptr) {
    if (absl::Status status = Open(); !status.ok()) return status;
  }
  if (std::fflush(file_) != 0) return Failure();
  FILE* const file = std::exchange(file_, nullptr);
  if (file == stdout) return absl::OkStatus();
  absl::Status result;
  if (std::fclose(file) != 0 || (!partial_.empty() && std::rename(partial_.c_str(), target_.c_str()) != 0)) {
    result = Failure();
    if (!partial_.empty()) std::remove(partial_.c_str());
  }
  removed_at_signal_.reset();
  return result;
}

absl::Status FileSink::Failure() const {
  return absl::PermissionDeniedError(
      absl::StrCat(path_.empty() ? "standard output" : path_, ": cannot be written: ", std::strerror(errno)));
}

absl::Status FileSink::Open() {
  if (path_.empty()) {
    file_ = stdout;
    return absl::OkStatus();
  }
  struct stat status;
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (!exists || S_ISREG(status.st_mode)) return OpenBeside(exists ? status.st_mode & kPermissions : 0);
  file_ = std::fopen(path_.c_str(), "wb");
  return file_ == nullptr ? Failure() : absl::OkStatus();
}

// `mode`: of the file to replace; 0: there is none.
absl::Status FileSink::OpenBeside(mode_t mode) {
  std::error_code error;
  const std::filesystem::path followed = std::filesystem::weakly_canonical(path_, error);
  target_ = error ? path_ : followed.string();
  partial_ = absl::StrCat(target_, ".partial.", getpid());
  removed_at_signal_.emplace(partial_);
  const int fd = open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0) file_ = fdopen(fd, "wb");
  if (file_ == nullptr) {
    absl::Status failure = Failure();
    removed_at_signal_.reset();
    return failure;
  }
  if (mode != 0) [[maybe_unused]]
    const int ignored = fchmod(fd, mode);  // fails on a file system without permissions
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  FileSink file(path);
  if (absl::Status status = file.Append(text); !status.ok()) return status;
  return file.Close();
}

}  // namespace hotpack
