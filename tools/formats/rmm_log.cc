#include "tools/formats/rmm_log.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profiler/trace_file.h"
#include "tools/recording/recording_builder.h"

namespace hotpack {
namespace {

constexpr size_t kColumns = 6;
constexpr size_t kLongestLine = 4096;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kDayNs = 86400 * kSecondNs;

enum Column : size_t { kThread, kTime, kAction, kPointer, kBytes, kStream };

// Parses a whole field of digits.
std::optional<uint64_t> Digits(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses a pointer in the formats of different C libraries.
std::optional<uint64_t> Pointer(std::string_view text) {
  if (text == "(nil)" || text == "nullptr") return 0;
  if (text.substr(0, 2) == "0x") return Digits(text.substr(2), 16);
  return Digits(text, 10);
}

// Parses the digits after the decimal point of a second.
std::optional<uint64_t> Fraction(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  std::optional<uint64_t> value = Digits(text, 10);
  for (size_t i = text.size(); value && i < 9; ++i) *value *= 10;
  return value;
}

// Returns nanoseconds since midnight ("HH:MM:SS.ffffff", "HH:MM:SS:ffffff"), or since another moment (seconds with a
// fraction).
std::optional<uint64_t> Time(std::string_view text) {
  const size_t last = text.find_last_of(".:");
  const bool is_clock = text.size() > 8 && text[2] == ':' && text[5] == ':';
  if (!is_clock) {
    const std::optional<uint64_t> seconds = Digits(text.substr(0, last), 10);
    const std::optional<uint64_t> rest = last == std::string_view::npos ? 0 : Fraction(text.substr(last + 1));
    if (!seconds || !rest || *seconds > UINT64_MAX / kSecondNs - 1) return std::nullopt;
    return *seconds * kSecondNs + *rest;
  }
  const std::optional<uint64_t> hours = Digits(text.substr(0, 2), 10), minutes = Digits(text.substr(3, 2), 10),
                                seconds = Digits(text.substr(6, 2), 10);
  if (!hours || !minutes || !seconds || last != 8) return std::nullopt;
  const std::optional<uint64_t> rest = Fraction(text.substr(9));
  if (!rest || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  return ((*hours * 60 + *minutes) * 60 + *seconds) * kSecondNs + *rest;
}

class LogReader {
 public:
  LogReader(ByteSource source, std::string_view name) : stream_(std::move(source)), name_(name) {}
  absl::StatusOr<ImportedLog> Read();

 private:
  absl::Status At(size_t column, const std::string& reason) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", line_, ":", column, ": ", reason));
  }
  absl::Status Event(std::string_view line);
  uint64_t SinceBegin(uint64_t time);

  ByteStream stream_;
  const std::string name_;
  uint64_t line_ = 0;
  std::optional<uint64_t> last_time_;
  uint64_t elapsed_ = 0;
  RecordingBuilder builder_;
  ImportedLog result_;
};

// A clock that goes back by more than half a day has passed midnight. Smaller steps back are threads written out of
// order.
uint64_t LogReader::SinceBegin(uint64_t time) {
  if (last_time_) {
    if (time >= *last_time_) {
      elapsed_ += time - *last_time_;
    } else if (*last_time_<kDayNs&& * last_time_ - time> kDayNs / 2) {
      elapsed_ += time + kDayNs - *last_time_;
    } else {
      return elapsed_;
    }
  }
  last_time_ = time;
  return elapsed_;
}

absl::Status LogReader::Event(std::string_view line) {
  std::array<std::string_view, kColumns> fields;
  std::array<size_t, kColumns> column;  // the start of each, from 1
  size_t begin = 0;
  for (size_t i = 0; i < kColumns; ++i) {
    const size_t end = i + 1 < kColumns ? line.find(',', begin) : line.size();
    if (end == std::string_view::npos) {
      return At(line.size() + 1, absl::StrCat(i + 1, " columns, 6 expected: ", std::string(kRmmLogHeader)));
    }
    fields[i] = line.substr(begin, end - begin);
    column[i] = begin + 1;
    begin = end + 1;
  }
  const std::string_view action = fields[kAction];
  const bool allocates = action == "allocate";
  if (action == "allocate failure") return ++result_.failed, absl::OkStatus();
  if (!allocates && action != "free" && action != "deallocate") {
    return At(column[kAction], "the action is not allocate, free or allocate failure");
  }
  const std::optional<uint64_t> thread = Digits(fields[kThread], 10), time = Time(fields[kTime]),
                                pointer = Pointer(fields[kPointer]), bytes = Digits(fields[kBytes], 10),
                                stream = Pointer(fields[kStream]);
  if (!thread) return At(column[kThread], "the thread is no number");
  if (!time) return At(column[kTime], "the time is neither HH:MM:SS.ffffff nor seconds");
  if (!pointer) return At(column[kPointer], "the pointer is no address");
  if (!bytes || *bytes > kMaxRecordedBytes) {
    return At(column[kBytes], absl::StrCat("the size is no whole number from 0 to ", kMaxRecordedBytes));
  }
  if (!stream) return At(column[kStream], "the stream is no address");
  const EventContext context = {.stream = *stream, .thread = *thread, .time_ns = SinceBegin(*time)};
  if (*bytes == 0) return absl::OkStatus();
  if (allocates) {
    builder_.Allocate(*pointer, *bytes, context);
  } else {
    builder_.Release(*pointer, *bytes, context);
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportedLog> LogReader::Read() {
  std::string line;
  ByteStream::LineEnd end;
  while (++line_, stream_.ReadLine(kLongestLine, &line, &end)) {
    if (end == ByteStream::LineEnd::kTooLong) {
      return At(1, absl::StrCat("the line is longer than ", kLongestLine, " bytes"));
    }
    if (end == ByteStream::LineEnd::kMissing) {  // the program was killed while writing: a number may lack digits
      result_.is_cut = true;
      break;
    }
    if (line.empty() || (line_ == 1 && line == kRmmLogHeader)) continue;
    if (absl::Status status = Event(line); !status.ok()) return status;
  }
  if (!stream_.status().ok()) return stream_.status();
  result_.allocations = builder_.allocations();
  result_.live_before = builder_.live_before();
  result_.missed_releases = builder_.missed_releases();
  result_.trace = builder_.Finish();
  if (result_.trace.events.empty()) return line_ = 1, At(1, "there are no allocations in it");
  return std::move(result_);
}

}  // namespace

absl::StatusOr<ImportedLog> ReadRmmLog(ByteSource source, std::string_view name) {
  return LogReader(std::move(source), name).Read();
}

}  // namespace hotpack
