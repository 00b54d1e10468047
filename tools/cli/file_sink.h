// Text that goes to a file or to standard output piece by piece.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/cli/interrupt.h"

namespace hotpack {

// What was at the path stays there until Close() has succeeded: the text goes to a new file beside it first
// (PATH.partial.PROCESS), which is removed otherwise, also by a signal that ends the program. A link is followed; what
// is replaced hands on its permissions. A path that exists and is not a regular file (a pipe, a terminal) is written to
// directly; an empty path is standard output. Errors are one line, "PATH: reason". Not thread-safe.
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
  std::string target_;   // path_, links followed
  std::string partial_;  // what is written until it is whole; empty if written to directly
  std::optional<RemovedAtSignal> removed_at_signal_;
  FILE* file_ = nullptr;
};

// All of `text` at once.
absl::Status WriteFile(const std::string& path, absl::string_view text);

}  // namespace hotpack
