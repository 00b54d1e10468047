#include "tools/check/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace hotpack::check {

std::string OutputFile::Open(const std::string& path, bool force) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? 0 : O_EXCL);
  const int file = open(path.c_str(), flags, 0644);
  if (file < 0) {
    return errno == EEXIST ? path + " is there already; --force replaces it" : path + ": " + strerror(errno);
  }
  close(file);
  path_ = path;
  return "";
}

std::string OutputFile::Write(const std::string& text) const {
  const std::string fresh = path_ + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file || rename(fresh.c_str(), path_.c_str()) != 0) {
    const std::string reason = path_ + ": " + strerror(errno);
    unlink(fresh.c_str());
    return reason;
  }
  return "";
}

}  // namespace hotpack::check
