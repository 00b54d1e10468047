// Reads recordings: trace files (docs/trace_format.md) and event CSVs, distinguished by their content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/event.h"
#include "profiler/notes.h"

namespace hotpack {

// The largest block of a recording (1 TiB). A larger size means a malformed file.
inline constexpr uint64_t kMaxRecordedBytes = uint64_t{1} << 40;

// The origin of a recording. For an event CSV only `format` is known.
struct TraceOrigin {
  enum class Format { kTraceFile, kEventCsv };
  enum class End {
    kClosed,        // the program closed the recording, or the file does not say (event CSV)
    kNotClosed,     // the program ended without closing it, or still runs: complete events up to that moment
    kLimitReached,  // the size limit ended it
    kDiskFull,
  };
  Format format = Format::kTraceFile;
  End end = End::kClosed;
  std::string program;      // path of the recorded program; empty: unknown
  uint32_t process = 0;     // its process id
  uint64_t created_ns = 0;  // since 1970
};

struct TraceFile {
  Trace trace;  // every release follows its allocation and has its size; no id is used twice
  TraceOrigin origin;
  Notes notes;  // empty if no collector was on, and for an event CSV
};

enum class FileFormat { kTraceFile, kEventCsv, kOther };

// Returns the format that `contents` begins with. kOther may still be valid elsewhere: a minimalloc CSV, for example.
FileFormat RecogniseFormat(std::string_view contents);

// Reads a whole file. Errors, here and in all functions below, are one line without a line end: "FILE: reason".
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// Decodes a trace file. If it is malformed or cut, returns the error "NAME: byte N: reason"; `name` is used only for
// that. O(events).
absl::StatusOr<TraceFile> ParseTraceFile(std::string_view contents, std::string_view name);

// As ParseTraceFile. Of a file that is cut after its header (a copy that ended early) it returns the events before the
// cut, with the end kNotClosed. *committed: the bytes that the whole file had; more than `contents` has: it is cut.
absl::StatusOr<TraceFile> ParseCutTraceFile(std::string_view contents, std::string_view name, uint64_t* committed);

// Decodes a recording in either format. Errors: those of ParseTraceFile and ParseEventCsv; `name` is used only for
// them.
absl::StatusOr<TraceFile> ParseTrace(std::string_view contents, std::string_view name);

// Reads the recording at `path` in either format. Errors: "FILE: reason", "FILE: byte N: reason", "FILE:LINE:COLUMN:
// reason".
absl::StatusOr<TraceFile> LoadTrace(const std::string& path);

}  // namespace hotpack
