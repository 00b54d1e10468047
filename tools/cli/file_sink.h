// Writes text to a file or to standard output, piece by piece.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/cli/interrupt.h"

namespace hotpack {

// 1. The old file stays until Close() has succeeded. The text first goes to a new file next to it
//    (PATH.partial.PROCESS), which is removed on failure, also by a signal that ends the program.
// 2. A link is followed. The new file gets the permissions of the old one.
// 3. A path that exists and is no regular file (a pipe, a terminal) is written to directly. An empty path is standard
//    output.
// Errors are one line, "PATH: reason". Not thread-safe.
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
  absl::Status OpenBeside(mode_t mode);

  const std::string path_;
  std::string target_;   // path_ with links followed
  std::string partial_;  // the incomplete file; empty if the output is written directly
  std::optional<RemovedAtSignal> removed_at_signal_;
  FILE* file_ = nullptr;
};

// Writes all of `text` at once.
absl::Status WriteFile(const std::string& path, absl::string_view text);

}  // namespace hotpack
