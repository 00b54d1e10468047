// Reads recordings: trace files (docs/trace_format.md) and event CSVs, told apart by their content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

// No block of a recording is larger (1 TiB); a larger size is taken for a malformed file.
inline constexpr uint64_t kMaxRecordedBytes = uint64_t{1} << 40;

// Where a recording comes from. Of an event CSV only `format` is known.
struct TraceOrigin {
  enum class Format { kTraceFile, kEventCsv };
  enum class End {
    kClosed,        // the program ended the recording, or the file cannot say (event CSV)
    kNotClosed,     // the program ended without closing it, or still runs: whole events up to that moment
    kLimitReached,  // the size limit ended it
    kDiskFull,
  };
  Format format = Format::kTraceFile;
  End end = End::kClosed;
  std::string program;      // path of the recorded program, empty if not known
  uint32_t process = 0;     // its process id
  uint64_t created_ns = 0;  // since 1970
};

struct TraceFile {
  Trace trace;  // every release has its allocation before it, and its size; no id is used twice
  TraceOrigin origin;
  Notes notes;  // empty where no collector was on, and of an event CSV
};

enum class FileFormat { kTraceFile, kEventCsv, kOther };

// What `contents` begins like. kOther is not necessarily wrong: a minimalloc CSV, for one.
FileFormat RecogniseFormat(std::string_view contents);

// The whole of a file. Errors, as everywhere below, are one line without a line end: "FILE: reason".
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// Decodes a trace file. One that is cut anywhere after its header gives the events before the cut; one that is
// malformed the error "NAME: byte N: reason". `name` is only for that. O(events).
absl::StatusOr<TraceFile> ParseTraceFile(std::string_view contents, std::string_view name);

// Decodes a recording in either format. Errors: those of ParseTraceFile and ParseEventCsv; `name` is only for them.
absl::StatusOr<TraceFile> ParseTrace(std::string_view contents, std::string_view name);

// Reads the recording at `path`, whichever format it has. Errors: "FILE: reason", "FILE: byte N: reason",
// "FILE:LINE:COLUMN: reason".
absl::StatusOr<TraceFile> LoadTrace(const std::string& path);

}  // namespace hotpack
