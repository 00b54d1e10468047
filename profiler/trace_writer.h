// Writes a trace file as the job runs, so that nothing recorded is lost however the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

struct LaunchWork;  // profiler/trace_record.h

enum class TraceStatus : uint8_t { kOk, kCannotOpen, kNoSpace, kTooLarge };

// The file is written through a shared mapping: what Append has returned from survives _exit, signals and exceptions.
// Space on the disk is claimed before it is mapped, so that a full disk ends the recording and not the process.
// Append: no heap allocation, no system call but once per mebibyte of events. Not thread-safe: the caller locks.
// In a forked child the writer is inert: Append returns false, Close leaves the file alone.
class TraceWriter {
 public:
  // Creates `path`. A file that is there already is replaced by a new one, not overwritten: another process may still
  // be writing it. Null with *status set on failure: kCannotOpen (errno says why; also for anything that is no regular
  // file), kNoSpace, kTooLarge (`limit_bytes` is below kMinLimitBytes). `limit_bytes`: largest file size, after which
  // recording stops (the file stays valid).
  static std::unique_ptr<TraceWriter> Create(const char* path, uint64_t limit_bytes, TraceStatus* status);
  ~TraceWriter();  // Close()
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  static constexpr uint64_t kMinLimitBytes = 4096;

  // False when recording has stopped (disk full, limit reached, closed). O(1), 1 to 40 bytes of file; of a release the
  // size is not written (the reader knows it from the allocation).
  bool Append(const Event& event);

  // Notes, between the events (what is written of each: TraceRecordEncoder). False as above. The first one makes the
  // file one of version 2. Throws bad_alloc before its first record, then never again; O(bytes written). The name's
  // ordinal in this file; kNoName when recording has stopped. One that is too long is cut.
  NameOrdinal AppendName(std::string_view name);
  bool Append(const Launch& launch, const uint64_t* blocks);
  bool Append(const LaunchWork& work);
  bool Append(const RangeEdge& edge);
  bool Append(const BlockStack& stack);
  bool Append(const DriverMemory& memory);
  uint64_t LaunchCount() const;

  void Close();  // cuts the file to its length; idempotent
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
