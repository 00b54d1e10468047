#include "profiler/event_csv.h"

#include <charconv>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profiler/trace_file.h"

namespace hotpack {
namespace {

constexpr char kHeader[] = "event,id,bytes";

// A field and its column.
struct Field {
  std::string_view text;
  size_t column = 1;
};

// Returns the text in a form fit for an error line: short, and without control characters.
std::string Quoted(std::string_view text) {
  constexpr size_t kMax = 24;
  std::string result = "'";
  for (char c : text.substr(0, kMax)) {
    bool plain = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
    result += plain ? c : '?';
  }
  if (text.size() > kMax) result += "...";
  return result + "'";
}

class CsvReader {
 public:
  CsvReader(std::string_view contents, std::string_view name) : rest_(contents), name_(name) {}
  absl::StatusOr<Trace> Read();

 private:
  struct Known {
    uint64_t ordinal = 0;  // the block with the file's id now, or the last one
    uint64_t bytes = 0;
    uint64_t line = 0;  // of the last event with this id
    bool live = false;
  };

  absl::Status At(size_t column, const std::string& reason) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", line_, ":", column, ": ", reason));
  }
  absl::StatusOr<std::string_view> NextLine();
  absl::Status Split(std::string_view line, Field (&fields)[3]) const;
  absl::StatusOr<uint64_t> Number(const Field& field, const char* what, uint64_t limit) const;
  absl::Status Allocation(const Field (&fields)[3]);
  absl::Status Release(const Field (&fields)[3]);
  absl::Status Mark(const Field (&fields)[3]);

  std::string_view rest_;
  std::string name_;
  uint64_t line_ = 0;
  uint64_t allocations_ = 0;
  absl::flat_hash_map<uint64_t, Known> known_;
  Trace trace_;
};

absl::StatusOr<std::string_view> CsvReader::NextLine() {
  ++line_;
  size_t end = rest_.find('\n');
  if (end == std::string_view::npos) return At(rest_.size() + 1, "the line has no end: the file is cut");
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

absl::Status CsvReader::Split(std::string_view line, Field (&fields)[3]) const {
  size_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    size_t end = i < 2 ? line.find(',', begin) : line.size();
    if (end == std::string_view::npos) {
      return At(line.size() + 1, absl::StrCat(i + 1, " columns, 3 expected: ", kHeader));
    }
    fields[i] = {line.substr(begin, end - begin), begin + 1};
    begin = end + 1;
  }
  if (size_t comma = fields[2].text.find(','); comma != std::string_view::npos) {
    return At(fields[2].column + comma, "more than 3 columns");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CsvReader::Number(const Field& field, const char* what, uint64_t limit) const {
  if (field.text.empty()) return At(field.column, absl::StrCat(what, " is missing"));
  const char* end = field.text.data() + field.text.size();
  uint64_t value = 0;
  auto [stop, error] = std::from_chars(field.text.data(), end, value);
  if (error == std::errc::result_out_of_range || (error == std::errc() && stop == end && value > limit)) {
    return At(field.column, absl::StrCat(what, " ", Quoted(field.text), " is more than ", limit));
  }
  if (error != std::errc() || stop != end) {
    return At(field.column, absl::StrCat(what, " ", Quoted(field.text), " is no whole number from 0"));
  }
  return value;
}

absl::Status CsvReader::Allocation(const Field (&fields)[3]) {
  absl::StatusOr<uint64_t> id = Number(fields[1], "the id", UINT64_MAX);
  if (!id.ok()) return id.status();
  absl::StatusOr<uint64_t> bytes = Number(fields[2], "the size", kMaxRecordedBytes);
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) return At(fields[2].column, "an allocation of 0 bytes");
  Known& known = known_[*id];
  if (known.live) {
    return At(fields[1].column, absl::StrCat("block ", *id, " is live already, since line ", known.line));
  }
  known = {allocations_++, *bytes, line_, true};
  trace_.events.push_back({.kind = EventKind::kAllocate, .id = known.ordinal, .bytes = known.bytes});
  return absl::OkStatus();
}

absl::Status CsvReader::Release(const Field (&fields)[3]) {
  absl::StatusOr<uint64_t> id = Number(fields[1], "the id", UINT64_MAX);
  if (!id.ok()) return id.status();
  auto found = known_.find(*id);
  if (found == known_.end()) {
    return At(fields[1].column, absl::StrCat("block ", *id, " is freed but was never allocated"));
  }
  Known& known = found->second;
  if (!known.live) {
    return At(fields[1].column, absl::StrCat("block ", *id, " is freed twice, first in line ", known.line));
  }
  if (!fields[2].text.empty()) {
    absl::StatusOr<uint64_t> bytes = Number(fields[2], "the size", kMaxRecordedBytes);
    if (!bytes.ok()) return bytes.status();
    if (*bytes != known.bytes) {
      return At(fields[2].column, absl::StrCat("block ", *id, " has ", known.bytes, " bytes, not ", *bytes));
    }
  }
  known.live = false;
  known.line = line_;
  trace_.events.push_back({.kind = EventKind::kRelease, .id = known.ordinal, .bytes = known.bytes});
  return absl::OkStatus();
}

absl::Status CsvReader::Mark(const Field (&fields)[3]) {
  if (!fields[2].text.empty()) return At(fields[2].column, "a mark has no size");
  EventKind kind = EventKind::kMark;
  if (fields[1].text == "interrupt") kind = EventKind::kInterrupt;
  if (fields[1].text == "resume") kind = EventKind::kResume;
  if (fields[1].text == "expect") kind = EventKind::kExpect;
  trace_.events.push_back({.kind = kind});
  return absl::OkStatus();
}

absl::StatusOr<Trace> CsvReader::Read() {
  if (rest_.empty()) {
    line_ = 1;
    return At(1, "the file is empty");
  }
  absl::StatusOr<std::string_view> line = NextLine();
  if (!line.ok()) return line.status();
  if (*line != kHeader) return At(1, absl::StrCat("the first line is ", Quoted(*line), ", not ", kHeader));
  while (!rest_.empty()) {
    line = NextLine();
    if (!line.ok()) return line.status();
    if (line->empty()) return At(1, "the line is empty");
    Field fields[3];
    if (absl::Status status = Split(*line, fields); !status.ok()) return status;
    absl::Status status;
    if (fields[0].text == "alloc") {
      status = Allocation(fields);
    } else if (fields[0].text == "free") {
      status = Release(fields);
    } else if (fields[0].text == "mark") {
      status = Mark(fields);
    } else {
      status = At(1, absl::StrCat("the event ", Quoted(fields[0].text), " is not alloc, free or mark"));
    }
    if (!status.ok()) return status;
  }
  if (trace_.events.empty()) return At(1, "no events follow the first line");
  return std::move(trace_);
}

}  // namespace

absl::StatusOr<Trace> ParseEventCsv(std::string_view contents, std::string_view name) {
  return CsvReader(contents, name).Read();
}

std::string FormatEventCsv(const Trace& trace) {
  std::string out = absl::StrCat(kHeader, "\n");
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    switch (event.kind) {
      case EventKind::kAllocate:
        absl::StrAppend(&out, "alloc,", event.id, ",", event.bytes, "\n");
        break;
      case EventKind::kRelease:
        absl::StrAppend(&out, "free,", event.id, ",\n");
        break;
      case EventKind::kMark:
        out += i + 1 == trace.events.size() ? "mark,end,\n" : "mark,step,\n";
        break;
      case EventKind::kInterrupt:
        out += "mark,interrupt,\n";
        break;
      case EventKind::kResume:
        out += "mark,resume,\n";
        break;
      case EventKind::kExpect:
        out += "mark,expect,\n";
        break;
    }
  }
  return out;
}

}  // namespace hotpack
