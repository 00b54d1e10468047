// Bytes that come piece by piece, read once from the front: files of hundreds of megabytes need not be in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hotpack {

// Puts up to `most` bytes (at least 1) at `to` and returns how many; 0 at the end. Errors are one line, "FILE: reason".
using ByteSource = std::function<absl::StatusOr<size_t>(char* to, size_t most)>;

// The file at `path`, read from its beginning. Also for pipes.
absl::StatusOr<ByteSource> FileSource(const std::string& path);

// `contents`, which must outlive the source.
ByteSource MemorySource(std::string_view contents);

// A source with a place in it. Not thread-safe.
class ByteStream {
 public:
  explicit ByteStream(ByteSource source) : source_(std::move(source)) {}

  // False at the end of the stream, and after an error of the source: status() says which. What was there before the
  // end is lost.
  bool Read(void* to, uint64_t bytes);
  bool Skip(uint64_t bytes);
  bool ReadByte(uint8_t* byte) {
    if (next_ == end_ && !Fill()) return false;
    *byte = static_cast<uint8_t>(buffer_[next_++]);
    return true;
  }
  // The next line without its end (LF or CRLF). False at the end of the stream, and after an error of the source.
  enum class LineEnd { kWhole, kMissing, kTooLong };  // the stream ends first; the line has more than `most` bytes
  bool ReadLine(size_t most, std::string* line, LineEnd* end);

  uint64_t position() const { return filled_before_ + next_; }  // bytes that were read
  const absl::Status& status() const { return status_; }

 private:
  bool Fill();

  ByteSource source_;
  absl::Status status_;
  std::string buffer_;
  size_t next_ = 0, end_ = 0;
  uint64_t filled_before_ = 0;  // bytes of the stream before buffer_
};

}  // namespace hotpack
