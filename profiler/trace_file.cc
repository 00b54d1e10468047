#include "profiler/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profiler/event_csv.h"
#include "profiler/trace_format.h"

namespace hotpack {
namespace {

using namespace trace_format;

// Why a record could not be decoded.
enum class Fault { kNone, kMalformed };

// Decodes the records of one file, in order.
class RecordReader {
 public:
  RecordReader(std::string_view bytes, size_t begin) : bytes_(bytes), at_(begin) {}

  bool AtEnd() const { return at_ == bytes_.size(); }
  size_t fault_at() const { return fault_at_; }
  const std::string& reason() const { return reason_; }

  // Decodes the next record. At a fault the reader stays where it is.
  Fault Next(Event* event);

 private:
  Fault Fail(size_t at, std::string reason) {
    fault_at_ = at;
    reason_ = std::move(reason);
    return Fault::kMalformed;
  }
  Fault Short() { return Fail(at_, "the last record is incomplete"); }
  Fault Byte(uint8_t* value);
  Fault Varint(uint64_t limit, const char* what, uint64_t* value);
  Fault Context(Event* event);
  Fault Allocation(uint8_t tag, Event* event);
  Fault Release(Event* event);

  std::string_view bytes_;
  size_t at_;
  size_t cursor_ = 0;  // inside the record at at_
  size_t fault_at_ = 0;
  std::string reason_;
  Event last_;                // what the next record is coded against
  uint64_t last_id_ = UINT64_MAX;
  // Of each block that was allocated: its size, 0 once it is released (an id is not used twice).
  absl::flat_hash_map<uint64_t, uint64_t> blocks_;
};

Fault RecordReader::Byte(uint8_t* value) {
  if (cursor_ == bytes_.size()) return Short();
  *value = static_cast<uint8_t>(bytes_[cursor_++]);
  return Fault::kNone;
}

Fault RecordReader::Varint(uint64_t limit, const char* what, uint64_t* value) {
  size_t begin = cursor_;
  *value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte;
    if (Fault fault = Byte(&byte); fault != Fault::kNone) return fault;
    if (shift == 63 && byte > 1) return Fail(begin, absl::StrCat(what, " has more than 64 bits"));
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (*value > limit) return Fail(begin, absl::StrCat(what, " is ", *value, ", more than ", limit));
  return Fault::kNone;
}

Fault RecordReader::Context(Event* event) {
  uint64_t thread, stream;
  if (Fault fault = Byte(&event->flags); fault != Fault::kNone) return fault;
  if (Fault fault = Varint(UINT16_MAX, "the thread", &thread); fault != Fault::kNone) return fault;
  if (Fault fault = Varint(UINT32_MAX, "the stream", &stream); fault != Fault::kNone) return fault;
  event->thread = static_cast<uint16_t>(thread);
  event->stream = static_cast<uint32_t>(stream);
  return Fault::kNone;
}

Fault RecordReader::Allocation(uint8_t tag, Event* event) {
  if (tag & kNextId) {
    event->id = last_id_ + 1;
  } else {
    uint64_t difference;
    if (Fault fault = Varint(UINT64_MAX, "the id", &difference); fault != Fault::kNone) return fault;
    event->id = last_id_ + UnZigZag(difference);
  }
  uint64_t scale = tag & kUnits ? kUnitBytes : 1;
  size_t size_at = cursor_;
  uint64_t size;
  if (Fault fault = Varint(kMaxRecordedBytes / scale, "the size", &size); fault != Fault::kNone) return fault;
  if (size == 0) return Fail(size_at, "an allocation of 0 bytes");
  event->bytes = size * scale;
  if (!blocks_.try_emplace(event->id, event->bytes).second) {
    return Fail(at_, absl::StrCat("block ", event->id, " is allocated a second time"));
  }
  last_id_ = event->id;
  return Fault::kNone;
}

Fault RecordReader::Release(Event* event) {
  uint64_t difference;
  if (Fault fault = Varint(UINT64_MAX, "the id", &difference); fault != Fault::kNone) return fault;
  event->id = last_id_ - UnZigZag(difference);
  auto block = blocks_.find(event->id);
  if (block == blocks_.end()) {
    return Fail(at_, absl::StrCat("block ", event->id, " is released but was never allocated"));
  }
  if (block->second == 0) return Fail(at_, absl::StrCat("block ", event->id, " is released twice"));
  event->bytes = std::exchange(block->second, 0);
  return Fault::kNone;
}

Fault RecordReader::Next(Event* event) {
  cursor_ = at_;
  uint8_t tag;
  if (Fault fault = Byte(&tag); fault != Fault::kNone) return fault;
  uint8_t kind = tag & kKindMask;
  if (kind < 1 || kind > 5 || (tag & kReserved) != 0) return Fail(at_, absl::StrCat("no record begins with ", tag));
  if (kind != 1 && (tag & (kNextId | kUnits)) != 0) return Fail(at_, absl::StrCat("no record begins with ", tag));
  *event = last_;
  event->kind = static_cast<EventKind>(kind);
  event->id = 0;
  event->bytes = 0;
  if (tag & kHasContext) {
    if (Fault fault = Context(event); fault != Fault::kNone) return fault;
  }
  if (tag & kHasTime) {
    uint64_t difference;
    if (Fault fault = Varint(UINT64_MAX, "the time", &difference); fault != Fault::kNone) return fault;
    event->time_ns += UnZigZag(difference);
  }
  Fault fault = Fault::kNone;
  if (event->kind == EventKind::kAllocate) fault = Allocation(tag, event);
  if (event->kind == EventKind::kRelease) fault = Release(event);
  if (fault != Fault::kNone) return fault;
  last_ = *event;
  at_ = cursor_;
  return Fault::kNone;
}

template <typename T>
T Get(std::string_view contents, size_t at) {
  T value;
  memcpy(&value, contents.data() + at, sizeof(value));
  return value;
}

absl::Status Malformed(std::string_view name, size_t byte, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": byte ", byte, ": ", reason));
}

// The program's path without what would break a line or a terminal.
std::string Printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

// Fills in everything but `end` from the header.
absl::Status ParseHeader(std::string_view contents, std::string_view name, TraceOrigin* origin) {
  if (contents.size() < kHeaderBytes) {
    return Malformed(name, contents.size(), absl::StrCat("the file ends in the header, which has ", kHeaderBytes, " bytes"));
  }
  if (memcmp(contents.data(), kMagic, sizeof(kMagic)) != 0) return Malformed(name, 0, "this is no hotpack trace");
  if (uint16_t version = Get<uint16_t>(contents, kVersionAt); version != kVersion) {
    return Malformed(name, kVersionAt, absl::StrCat("format version ", version, ", this hotpack reads version ", kVersion));
  }
  if (Get<uint16_t>(contents, kHeaderBytesAt) != kHeaderBytes) {
    return Malformed(name, kHeaderBytesAt, absl::StrCat("a header of ", Get<uint16_t>(contents, kHeaderBytesAt), " bytes"));
  }
  if (Get<uint32_t>(contents, kStateAt) > kLastState) {
    return Malformed(name, kStateAt, absl::StrCat("unknown state ", Get<uint32_t>(contents, kStateAt)));
  }
  if (Get<uint64_t>(contents, kCommittedAt) < kHeaderBytes) {
    return Malformed(name, kCommittedAt, absl::StrCat("a length of ", Get<uint64_t>(contents, kCommittedAt), " bytes"));
  }
  uint32_t program = Get<uint32_t>(contents, kProgramLengthAt);
  if (program > kProgramMax) return Malformed(name, kProgramLengthAt, absl::StrCat("a program name of ", program, " bytes"));
  origin->format = TraceOrigin::Format::kTraceFile;
  origin->program = Printable(contents.substr(kProgramAt, program));
  origin->process = Get<uint32_t>(contents, kProcessAt);
  origin->created_ns = Get<uint64_t>(contents, kCreatedAt);
  return absl::OkStatus();
}

TraceOrigin::End EndOf(uint32_t state) {
  switch (state) {
    case kClosed: return TraceOrigin::End::kClosed;
    case kLimitReached: return TraceOrigin::End::kLimitReached;
    case kDiskFull: return TraceOrigin::End::kDiskFull;
    default: return TraceOrigin::End::kNotClosed;
  }
}

}  // namespace

FileFormat RecogniseFormat(std::string_view contents) {
  std::string_view magic(reinterpret_cast<const char*>(kMagic), sizeof(kMagic));
  // A trace that is cut inside its magic is still one.
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
  TraceFile file;
  if (absl::Status status = ParseHeader(contents, name, &file.origin); !status.ok()) return status;
  uint64_t committed = Get<uint64_t>(contents, kCommittedAt);
  if (committed > contents.size()) {
    return Malformed(name, contents.size(), absl::StrCat("the file is cut: it had ", committed, " bytes"));
  }
  file.origin.end = EndOf(Get<uint32_t>(contents, kStateAt));
  RecordReader reader(contents.substr(0, committed), kHeaderBytes);
  Event event;
  while (!reader.AtEnd()) {
    Fault fault = reader.Next(&event);
    if (fault == Fault::kMalformed) return Malformed(name, reader.fault_at(), reader.reason());
    file.trace.events.push_back(event);
  }
  return file;
}

absl::StatusOr<TraceFile> ParseTrace(std::string_view contents, std::string_view name) {
  switch (RecogniseFormat(contents)) {
    case FileFormat::kTraceFile: return ParseTraceFile(contents, name);
    case FileFormat::kEventCsv: break;
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
