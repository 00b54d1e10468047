// Bytes that come piece by piece, read once from the front: files of hundreds of megabytes need not fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hotpack {

// Writes up to `most` bytes (at least 1) to `to` and returns their number; 0 at the end. Errors: one line, "FILE:
// reason".
using ByteSource = std::function<absl::StatusOr<size_t>(char* to, size_t most)>;

// Returns a source of the file at `path`, from its beginning. Works for pipes too.
absl::StatusOr<ByteSource> FileSource(const std::string& path);

// Returns a source of `contents`, which must outlive it.
ByteSource MemorySource(std::string_view contents);

// A source with a position. Not thread-safe.
class ByteStream {
 public:
  explicit ByteStream(ByteSource source) : source_(std::move(source)) {}

  // Returns false at the end of the stream and after an error of the source: status() tells which. The bytes before the
  // end are lost.
  bool Read(void* to, uint64_t bytes);
  bool Skip(uint64_t bytes);
  bool ReadByte(uint8_t* byte) {
    if (next_ == end_ && !Fill()) return false;
    *byte = static_cast<uint8_t>(buffer_[next_++]);
    return true;
  }
  // Reads the next line without its end (LF or CRLF). Returns false at the end of the stream and after an error.
  enum class LineEnd { kWhole, kMissing, kTooLong };  // the stream ends first; the line has more than `most` bytes
  bool ReadLine(size_t most, std::string* line, LineEnd* end);

  uint64_t position() const { return filled_before_ + next_; }  // bytes read so far
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
