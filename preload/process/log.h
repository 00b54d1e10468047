// Writes one line to stderr from inside a hook: no stdio, no heap, safe in any state of the process.
#pragma once

#include <unistd.h>

#include <cstdio>

namespace hotpack {

template <typename... Args>
void Log(const char* format, Args... args) {
  char line[512] = "hotpack: ";
  constexpr int kPrefix = 9;
  const int length = snprintf(line + kPrefix, sizeof(line) - kPrefix - 1, format, args...);
  if (length < 0) return;
  const size_t end = kPrefix + (static_cast<size_t>(length) < sizeof(line) - kPrefix - 2 ? static_cast<size_t>(length)
                                                                                         : sizeof(line) - kPrefix - 2);
  line[end] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, end + 1);
}

}  // namespace hotpack
