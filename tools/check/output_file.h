// The file of the result: taken before the run, so that no run is in vain, and brought up to date while it goes on.
#pragma once

#include <string>

namespace hotpack::check {

class OutputFile {
 public:
  // Makes the file, empty. Without `force` one that is there is left alone. Empty, or why not.
  std::string Open(const std::string& path, bool force);
  // Replaces its contents at once, by renaming. Empty, or why not.
  std::string Write(const std::string& text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hotpack::check
