// Writes a trace file as the job runs, so that nothing recorded is lost however the process ends.
#pragma once

#include <cstdint>
#include <memory>

#include "profiler/event.h"

namespace hotpack {

enum class TraceStatus : uint8_t { kOk, kCannotOpen, kNoSpace, kTooLarge };

// The file is written through a shared mapping: what Append has returned from survives _exit, signals and exceptions.
// Append: no heap allocation, no system call but once per mebibyte of events. Not thread-safe: the caller locks.
class TraceWriter {
 public:
  // Creates `path` (an existing file is replaced). Null with *status set on failure. `limit_bytes`: largest file size,
  // after which recording stops (the file stays valid).
  static std::unique_ptr<TraceWriter> Create(const char* path, uint64_t limit_bytes, TraceStatus* status);
  ~TraceWriter();  // Close()

  // False when recording has stopped (disk full, limit reached, closed).
  bool Append(const Event& event);
  void Close();  // cuts the file to its length; idempotent
  uint64_t EventCount() const;

 private:
  TraceWriter();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack
