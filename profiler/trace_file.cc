#include "profiler/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profiler/event_csv.h"
#include "profiler/trace_format.h"
#include "profiler/trace_reader.h"

namespace hotpack {
namespace {

using namespace trace_format;

template <typename T>
T Get(std::string_view contents, size_t at) {
  T value;
  memcpy(&value, contents.data() + at, sizeof(value));
  return value;
}

absl::Status Malformed(std::string_view name, size_t byte, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": byte ", byte, ": ", reason));
}

// Returns the program's path without characters that break a line or a terminal.
std::string Printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

// Fills in all fields from the header, except `end`.
absl::Status ParseHeader(std::string_view contents, std::string_view name, TraceOrigin* origin) {
  if (contents.size() < kHeaderBytes) {
    return Malformed(name, contents.size(),
                     absl::StrCat("the file ends in the header, which has ", kHeaderBytes, " bytes"));
  }
  if (memcmp(contents.data(), kMagic, sizeof(kMagic)) != 0) return Malformed(name, 0, "this is no hotpack trace");
  if (uint16_t version = Get<uint16_t>(contents, kVersionAt); version != kVersion && version != kVersionWithNotes) {
    return Malformed(name, kVersionAt,
                     absl::StrCat("format version ", version, ", this hotpack reads versions ", kVersion, " and ",
                                  kVersionWithNotes));
  }
  if (Get<uint16_t>(contents, kHeaderBytesAt) != kHeaderBytes) {
    return Malformed(name, kHeaderBytesAt,
                     absl::StrCat("a header of ", Get<uint16_t>(contents, kHeaderBytesAt), " bytes"));
  }
  if (Get<uint32_t>(contents, kStateAt) > kLastState) {
    return Malformed(name, kStateAt, absl::StrCat("unknown state ", Get<uint32_t>(contents, kStateAt)));
  }
  if (Get<uint64_t>(contents, kCommittedAt) < kHeaderBytes) {
    return Malformed(name, kCommittedAt, absl::StrCat("a length of ", Get<uint64_t>(contents, kCommittedAt), " bytes"));
  }
  uint32_t program = Get<uint32_t>(contents, kProgramLengthAt);
  if (program > kProgramMax)
    return Malformed(name, kProgramLengthAt, absl::StrCat("a program name of ", program, " bytes"));
  origin->format = TraceOrigin::Format::kTraceFile;
  origin->program = Printable(contents.substr(kProgramAt, program));
  origin->process = Get<uint32_t>(contents, kProcessAt);
  origin->created_ns = Get<uint64_t>(contents, kCreatedAt);
  return absl::OkStatus();
}

TraceOrigin::End EndOf(uint32_t state) {
  switch (state) {
    case kClosed:
      return TraceOrigin::End::kClosed;
    case kLimitReached:
      return TraceOrigin::End::kLimitReached;
    case kDiskFull:
      return TraceOrigin::End::kDiskFull;
    default:
      return TraceOrigin::End::kNotClosed;
  }
}

}  // namespace

FileFormat RecogniseFormat(std::string_view contents) {
  std::string_view magic(reinterpret_cast<const char*>(kMagic), sizeof(kMagic));
  // A trace that is cut inside its magic is still a trace.
  if (!contents.empty() && magic.substr(0, contents.size()) == contents.substr(0, magic.size())) {
    return FileFormat::kTraceFile;
  }
  constexpr std::string_view kCsv = "event,";
  return contents.substr(0, kCsv.size()) == kCsv ? FileFormat::kEventCsv : FileFormat::kOther;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  auto failure = [&path] { return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno))); };
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure();
  std::string contents;
  constexpr size_t kPiece = size_t{1} << 20;
  for (;;) {
    size_t length = contents.size();
    contents.resize(length + kPiece);
    ssize_t got = read(fd, contents.data() + length, kPiece);
    contents.resize(length + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      absl::Status status = failure();
      close(fd);
      return status;
    }
    if (got == 0) break;
  }
  close(fd);
  return contents;
}

absl::StatusOr<TraceFile> ParseTraceFile(std::string_view contents, std::string_view name) {
  uint64_t committed = 0;
  absl::StatusOr<TraceFile> file = ParseCutTraceFile(contents, name, &committed);
  if (file.ok() && committed > contents.size()) {
    return Malformed(name, contents.size(), absl::StrCat("the file is cut: it had ", committed, " bytes"));
  }
  return file;
}

absl::StatusOr<TraceFile> ParseCutTraceFile(std::string_view contents, std::string_view name, uint64_t* committed) {
  TraceFile file;
  if (absl::Status status = ParseHeader(contents, name, &file.origin); !status.ok()) return status;
  *committed = Get<uint64_t>(contents, kCommittedAt);
  const bool is_cut = *committed > contents.size();
  file.origin.end = is_cut ? TraceOrigin::End::kNotClosed : EndOf(Get<uint32_t>(contents, kStateAt));
  RecordReader reader(contents.substr(0, *committed), kHeaderBytes,
                      Get<uint16_t>(contents, kVersionAt) >= kVersionWithNotes);
  while (!reader.AtEnd()) {
    if (reader.Next(&file)) continue;
    if (is_cut && reader.is_incomplete()) break;
    return Malformed(name, reader.fault_at(), reader.reason());
  }
  std::sort(file.notes.stacks.begin(), file.notes.stacks.end(),
            [](const BlockStack& a, const BlockStack& b) { return a.id < b.id; });
  return file;
}

absl::StatusOr<TraceFile> ParseTrace(std::string_view contents, std::string_view name) {
  switch (RecogniseFormat(contents)) {
    case FileFormat::kTraceFile:
      return ParseTraceFile(contents, name);
    case FileFormat::kEventCsv:
      break;
    case FileFormat::kOther:
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(name), contents.empty() ? ":1:1: the file is empty"
                                              : ":1:1: neither a hotpack trace nor an event CSV (event,id,bytes)"));
  }
  absl::StatusOr<Trace> trace = ParseEventCsv(contents, name);
  if (!trace.ok()) return trace.status();
  TraceFile file;
  file.trace = *std::move(trace);
  file.origin.format = TraceOrigin::Format::kEventCsv;
  return file;
}

absl::StatusOr<TraceFile> LoadTrace(const std::string& path) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  return ParseTrace(*contents, path);
}

}  // namespace hotpack
