#include "tools/file_sink.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack {

FileSink::FileSink(std::string path) : path_(std::move(path)) {}

FileSink::~FileSink() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  if (written_path_ != path_) std::remove(written_path_.c_str());
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
  if (std::fclose(file) != 0 || (written_path_ != path_ && std::rename(written_path_.c_str(), path_.c_str()) != 0)) {
    const absl::Status failure = Failure();
    if (written_path_ != path_) std::remove(written_path_.c_str());
    return failure;
  }
  return absl::OkStatus();
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
  const bool direct = stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  written_path_ = direct ? path_ : path_ + ".partial";
  file_ = std::fopen(written_path_.c_str(), "wb");
  return file_ == nullptr ? Failure() : absl::OkStatus();
}

}  // namespace hotpack
