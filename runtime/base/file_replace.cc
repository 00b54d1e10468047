#include "runtime/base/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace hotpack {
namespace {

int WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

// Returns the target of a symbolic link, because renaming onto the link would replace the link itself. Returns the path
// itself if it is no link.
std::string Target(const char* path) {
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* real = realpath(path, nullptr);
  std::string target = real != nullptr ? real : path;
  free(real);
  return target;
}

// Makes the rename durable by syncing the directory. Some file systems cannot; the file is complete anyway.
void SyncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Writing beyond this limit would raise SIGXFSZ.
bool TooLarge(size_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

}  // namespace

int ReplaceFile(const char* path, const void* data, size_t size) {
  static constinit std::atomic<unsigned> next{0};
  if (path == nullptr || path[0] == '\0') return ENOENT;
  if (TooLarge(size)) return EFBIG;
  const std::string target = Target(path);
  struct stat info;
  if (stat(target.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    if (access(target.c_str(), W_OK) != 0) return errno;  // a rename would not check that
  }
  const std::string temporary = target + ".tmp." + std::to_string(getpid()) + "." + std::to_string(next.fetch_add(1));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  int error = WriteAll(fd, data, size);
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    return error;
  }
  SyncDirectoryOf(target);
  return 0;
}

}  // namespace hotpack
