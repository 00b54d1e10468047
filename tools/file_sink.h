// Text that goes to a file or to standard output piece by piece.
#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hotpack {

// What was at the path stays there until Close() has succeeded: the text goes to PATH.partial first, which is removed
// otherwise. A path that exists and is not a regular file (a pipe, a terminal) is written to directly; an empty path is
// standard output. Errors are one line, "PATH: reason". Not thread-safe.
class FileSink {
 public:
  explicit FileSink(std::string path);
  ~FileSink();
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  absl::Status Append(absl::string_view text);  // opens the file at the first call
  absl::Status Close();

 private:
  absl::Status Failure() const;  // of errno
  absl::Status Open();

  const std::string path_;
  std::string written_path_;  // path_ or PATH.partial; empty for standard output
  FILE* file_ = nullptr;
};

}  // namespace hotpack
