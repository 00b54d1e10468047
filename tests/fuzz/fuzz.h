// The common part of the fuzz targets. A target is one file with LLVMFuzzerTestOneInput. README.md says how to run
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profiler/event.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hotpack::fuzz {

// Ends the program with SIGABRT, which both drivers report together with the input, unless `holds`. `what` is the
// property in words, `detail` what was seen instead.
void Require(bool holds, std::string_view what, std::string_view detail = {});

// "NAME:LINE:COLUMN: reason": on one line of printable characters, the line one of `text`'s and the column a byte of
// that line or the one behind it.
void RequireErrorAtColumn(std::string_view error, std::string_view name, std::string_view text);

// "NAME: byte N: reason", N at most the length of the file.
void RequireErrorAtByte(std::string_view error, std::string_view name, size_t bytes);

// A block is allocated once and before it is released, is released at most once and then with its size, of 1 byte to
// 2^40.
void RequireValidTrace(const Trace& trace);

void RequireSameTrace(const Trace& a, const Trace& b, std::string_view what);

// A file that exists in memory only, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace hotpack::fuzz
