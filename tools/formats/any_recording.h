// Reads recordings of every kind that `hotpack import` reads, for all subcommands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profiler/trace_file.h"
#include "tools/formats/byte_stream.h"

namespace hotpack {

struct Imported {
  Trace trace;
  Notes notes;
  uint64_t began_ns = 0;
  std::string summary;   // the contents in words
  std::string left_out;  // contents that were skipped; empty: none
};

// Reads a PyTorch snapshot (`device`: as of ReadSnapshot) or an RMM log. `path`: for errors, which are one line.
absl::StatusOr<Imported> ImportSnapshot(const std::string& path, std::optional<int> device, ByteSource source);
absl::StatusOr<Imported> ImportRmmLog(const std::string& path, ByteSource source);

// Both tell a file by its first bytes; 256 suffice.
bool LooksLikeSnapshot(std::string_view begin);
bool LooksLikeRmmLog(std::string_view begin);

// Returns what a file is that no subcommand reads as a recording, in words with what to do: a compressed file, a plan,
// a program, JSON, a page, an empty file, bytes that are no text. Empty: unknown. `begin`: as above.
std::string OtherKindOfFile(std::string_view begin);

struct AnyRecording {
  TraceFile file;
  std::string what;    // of an imported one: its contents in words
  std::string remark;  // what of the file is not in it; empty: nothing
};

// Reads a trace file, an event CSV, a PyTorch snapshot or an RMM log from its contents.
//  - Of a snapshot the device with most entries.
//  - A trace file that is cut after its header is read up to the cut; its end is then kNotClosed.
// Errors: those of ParseTrace (profiler/trace_file.h), of ImportSnapshot and ImportRmmLog, or "PATH: reason" with what
// the file is. O(bytes).
absl::StatusOr<AnyRecording> ParseAnyRecording(std::string_view contents, const std::string& path);

// The same for the file at `path`.
absl::StatusOr<AnyRecording> LoadAnyRecording(const std::string& path);

// As LoadAnyRecording. The remark goes to stderr in one line, "hotpack COMMAND: PATH: remark".
absl::StatusOr<TraceFile> LoadForCommand(const char* command, const std::string& path);

}  // namespace hotpack
