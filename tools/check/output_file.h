// The file of the result. Made before the run, so that no run is in vain, and updated while it goes on. At every moment
// it is absent or a whole document: each text goes to a temporary file that takes its place.
#pragma once

#include <string>

namespace hotpack::check {

class OutputFile {
 public:
  // Makes the file with this text. Without `force`, refuses an existing one. Returns an empty string or the error.
  std::string Open(const std::string& path, bool force, const std::string& text);
  // Replaces the contents at once, by renaming. Returns an empty string or the error.
  std::string Write(const std::string& text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hotpack::check
