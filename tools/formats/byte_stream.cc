#include "tools/formats/byte_stream.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hotpack {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

absl::Status FileError(const std::string& path, int error) {
  return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<ByteSource> FileSource(const std::string& path) {
  std::shared_ptr<FILE> file(std::fopen(path.c_str(), "rb"), [](FILE* open) {
    if (open != nullptr) std::fclose(open);
  });
  if (file == nullptr) return FileError(path, errno);
  struct stat info;
  if (fstat(fileno(file.get()), &info) == 0 && S_ISDIR(info.st_mode)) return FileError(path, EISDIR);
  return ByteSource([file, path](char* to, size_t most) -> absl::StatusOr<size_t> {
    errno = 0;
    const size_t bytes = std::fread(to, 1, most, file.get());
    if (bytes == 0 && std::ferror(file.get()) != 0) return FileError(path, errno);
    return bytes;
  });
}

ByteSource MemorySource(std::string_view contents) {
  return [contents](char* to, size_t most) mutable -> absl::StatusOr<size_t> {
    const size_t bytes = std::min(most, contents.size());
    if (bytes > 0) std::memcpy(to, contents.data(), bytes);
    contents.remove_prefix(bytes);
    return bytes;
  };
}

bool ByteStream::Fill() {
  if (!status_.ok()) return false;
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  filled_before_ += end_;
  next_ = end_ = 0;
  absl::StatusOr<size_t> bytes = source_(buffer_.data(), buffer_.size());
  if (!bytes.ok()) {
    status_ = bytes.status();
    return false;
  }
  end_ = *bytes;
  return end_ > 0;
}

bool ByteStream::Read(void* to, uint64_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (next_ == end_ && !Fill()) return false;
    const size_t now = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - next_));
    std::memcpy(at, buffer_.data() + next_, now);
    next_ += now;
    at += now;
    bytes -= now;
  }
  return true;
}

bool ByteStream::Skip(uint64_t bytes) {
  while (bytes > 0) {
    if (next_ == end_ && !Fill()) return false;
    const size_t now = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - next_));
    next_ += now;
    bytes -= now;
  }
  return true;
}

bool ByteStream::ReadLine(size_t most, std::string* line, LineEnd* end) {
  line->clear();
  *end = LineEnd::kMissing;
  uint8_t byte;
  while (ReadByte(&byte)) {
    if (byte == '\n') {
      if (!line->empty() && line->back() == '\r') line->pop_back();
      *end = LineEnd::kWhole;
      return true;
    }
    if (line->size() == most) {
      *end = LineEnd::kTooLong;
      return true;
    }
    line->push_back(static_cast<char>(byte));
  }
  return status_.ok() && !line->empty();
}

}  // namespace hotpack
