// Writes a trace file while the job runs, so that no recorded event is lost however the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

struct LaunchWork;  // profiler/trace_record.h

enum class TraceStatus : uint8_t { kOk, kCannotOpen, kNoSpace, kTooLarge };

// Writes the file through a shared mapping. So every event for which Append has returned survives _exit, signals and
// exceptions. Disk space is claimed before it is mapped, so that a full disk ends the recording and not the process.
// Append makes no heap allocation, and a system call only once per mebibyte of events. Not thread-safe: the caller
// locks. In a forked child the writer is inert: Append returns false, and Close leaves the file alone.
class TraceWriter {
 public:
  // Creates `path`. Replaces an existing file by a new one instead of overwriting it: another process may still be
  // writing the old one. `limit_bytes`: maximum file size, after which recording stops (the file stays valid). Returns
  // null and sets *status on failure:
  // - kCannotOpen: errno says why; also for anything but a regular file;
  // - kNoSpace;
  // - kTooLarge: `limit_bytes` is below kMinLimitBytes.
  static std::unique_ptr<TraceWriter> Create(const char* path, uint64_t limit_bytes, TraceStatus* status);
  ~TraceWriter();  // Close()
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  static constexpr uint64_t kMinLimitBytes = 4096;

  // Appends an event. Returns false if recording has stopped (disk full, limit reached, closed). O(1), 1 to 40 bytes of
  // file. The size of a release is not written (the reader knows it from the allocation).
  bool Append(const Event& event);

  // Append notes between the events (TraceRecordEncoder says what is written). Return false as above. The first note
  // makes the file version 2. May throw bad_alloc before its first record, never later. O(bytes written). AppendName
  // returns the name's ordinal in this file; kNoName if recording has stopped. It cuts names that are too long.
  NameOrdinal AppendName(std::string_view name);
  bool Append(const Launch& launch, const uint64_t* blocks);
  bool Append(const LaunchWork& work);
  bool Append(const RangeEdge& edge);
  bool Append(const BlockStack& stack);
  bool Append(const DriverMemory& memory);
  uint64_t LaunchCount() const;

  void Close();  // truncates the file to its length; idempotent
  uint64_t EventCount() const;

 private:
  TraceWriter();
  template <typename Encode>
  bool AppendNote(Encode encode);
  template <typename Note>
  bool AppendOne(const Note& note);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hotpack
