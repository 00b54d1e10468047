#include "tools/check/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace hotpack::check {

namespace {

// Writes a temporary file next to `path`, named *fresh. Returns false, with errno, if that fails.
bool WriteFresh(const std::string& path, const std::string& text, std::string* fresh) {
  *fresh = path + ".new";
  std::ofstream file(*fresh, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return static_cast<bool>(file);
}

// As rename, but fails with EEXIST if there is such a file. A file system that cannot do so at once is asked first.
int RenameToNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (access(to.c_str(), F_OK) == 0) {
    errno = EEXIST;
    return -1;
  }
  return rename(from.c_str(), to.c_str());
}

}  // namespace

std::string OutputFile::Open(const std::string& path, bool force, const std::string& text) {
  if (!force && access(path.c_str(), F_OK) == 0) return path + " is there already; --force replaces it";
  std::string fresh, reason;
  if (!WriteFresh(path, text, &fresh) ||
      (force ? rename(fresh.c_str(), path.c_str()) : RenameToNew(fresh, path)) != 0) {
    reason = errno == EEXIST ? path + " is there already; --force replaces it" : path + ": " + strerror(errno);
    unlink(fresh.c_str());
    return reason;
  }
  path_ = path;
  return "";
}

std::string OutputFile::Write(const std::string& text) const {
  std::string fresh;
  if (!WriteFresh(path_, text, &fresh) || rename(fresh.c_str(), path_.c_str()) != 0) {
    const std::string reason = path_ + ": " + strerror(errno);
    unlink(fresh.c_str());
    return reason;
  }
  return "";
}

}  // namespace hotpack::check
